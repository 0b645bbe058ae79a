"""AsciiMath to LaTeX."""

from __future__ import annotations


def asciimath_to_latex(source: str) -> str:
    return source
