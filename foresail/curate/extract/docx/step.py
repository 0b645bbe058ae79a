"""ExtractDocx: the text of a Word document, through a simple HTML page and the renderer of pages.

[[steps]]
step = "extract_docx"
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from foresail.curate.document import Document, Drop
from foresail.curate.extract.docx.page import docx_page
from foresail.curate.extract.refused import Refused
from foresail.curate.extract.render.rendering import Rendering
from foresail.curate.extract.whole_page import page_text, text_type
from foresail.curate.read.kinds import MEDIA_TYPES
from foresail.curate.step import StepFunction


class ExtractDocx(Rendering):
    """Text of Word documents, as Markdown or plain text."""

    def open(self) -> StepFunction:
        return partial(extract_docx, settings=self)


def extract_docx(document: Document, settings: Rendering) -> Document | Drop:
    """A document that is none of Word's is left as it is."""
    if document.media_type != MEDIA_TYPES["docx"]:
        return document
    try:
        text = page_text(docx_page(document.content), settings)
    except Refused as refusal:
        return refusal.drop
    if not text:
        return Drop("empty")
    return replace(document, text=text, content=b"", media_type=text_type(settings))
