"""How a page is written: Markdown or plain text, and what of it."""

from __future__ import annotations

from pydantic import Field

from foresail.recipe.tables.part import Part


class Rendering(Part):
    """Formulas are LaTeX and code keeps its indentation in either form."""

    markup: bool = Field(
        True, description="Markdown: headings, emphasis, fences, tables; otherwise plain text"
    )
    links: bool = Field(False, description="[text](address) instead of the text alone (Markdown only)")
    emphasis: bool = Field(True, description="**bold** and *italic* (Markdown only)")
    authors: bool = Field(False, description="of a thread's posts: a heading with name and likes for each")
