"""All of an HTML page as text: for chapters of books, Word documents, and pages that hold nothing but their text.

page_text("<h1>A</h1><p>b", Rendering()) -> "# A\\n\\nb"
"""

from __future__ import annotations

from foresail.curate.extract.page import read_page
from foresail.curate.extract.render.markdown import render
from foresail.curate.extract.render.rendering import Rendering


def page_text(html: str, rendering: Rendering) -> str:
    return render(read_page(html), rendering=rendering)


def text_type(rendering: Rendering) -> str:
    return "text/markdown" if rendering.markup else "text/plain"
