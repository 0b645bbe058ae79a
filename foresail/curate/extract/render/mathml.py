"""MathML to LaTeX."""

from __future__ import annotations

from foresail.curate.extract.page import Page


def mathml_to_latex(page: Page, node: int) -> str:
    return " ".join(page.text(node).split())
