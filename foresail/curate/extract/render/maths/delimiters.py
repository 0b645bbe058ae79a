r"""Delimiters of raw TeX and AsciiMath in running text become dollars.

dollars(r"where \(x\) and \[y\]")        -> "where $x$ and $$y$$"
dollars("`1/2`", asciimath=True)         -> r"$\frac{1}{2}$"
"""

from __future__ import annotations

import re

from foresail.curate.extract.render.maths.asciimath import asciimath_to_latex

# A formula ends before the next one begins: a page of a million "\(" costs one pass. "\\" is a line end of TeX.
INLINE = re.compile(r"(?<!\\)\\\(([^\\]*(?:\\[^()][^\\]*)*)\\\)")
DISPLAY = re.compile(r"(?<!\\)\\\[([^\\]*(?:\\[^\[\]][^\\]*)*)\\\]")
NAMES = "tex|itex|latex|math|imath|dmath"
TAGS = re.compile(rf"\[({NAMES})\]([^\[]+(?:\[(?!/?(?:{NAMES})\])[^\[]*)*)\[/\1\]", re.IGNORECASE)
BACKTICKS = re.compile(r"(?<!\\)`([^`]+?)(?<!\\)`")


def dollars(text: str, *, asciimath: bool = False) -> str:
    if "\\(" in text:
        text = INLINE.sub(lambda match: between(match[0], match[1], "$"), text)
    if "\\[" in text:
        text = DISPLAY.sub(lambda match: between(match[0], match[1], "$$"), text)
    if "[/" in text:
        text = TAGS.sub(lambda match: between(match[0], match[2], "$"), text)
    if asciimath and "`" in text:
        text = BACKTICKS.sub(
            lambda match: f"${' '.join(asciimath_to_latex(match[1]).split())}$", text
        ).replace("\\`", "`")
    return text


def between(whole: str, formula: str, mark: str) -> str:
    """An empty pair stays as it is: "$$" would open a formula."""
    return f"{mark}{formula.strip()}{mark}" if formula.strip() else whole
