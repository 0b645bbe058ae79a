"""Extract: the text of whatever a document is: a page, a PDF, a book, a Word document. Texts pass as they are.

[[step]]
name = "extract"
links = true
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Literal

from pydantic import Field

from foresail.curate.document import Document, Drop
from foresail.curate.extract.doc.step import extract_doc
from foresail.curate.extract.docx.step import extract_docx
from foresail.curate.extract.epub.step import extract_epub
from foresail.curate.extract.main_text import main_text
from foresail.curate.extract.pdf.step import ExtractPdf
from foresail.curate.extract.refused import Refused
from foresail.curate.extract.render.rendering import Rendering
from foresail.curate.extract.whole_page import page_text, text_type
from foresail.curate.read.encoding import declared_charset, decode_text
from foresail.curate.read.kinds import MEDIA_TYPES
from foresail.curate.step import Outcome, StepFunction


class Extract(Rendering):
    """Text of pages, PDFs, books and Word documents, by media type."""

    scope: Literal["main", "whole"] = Field(
        "main", description="of a page: its main content, or all of its text"
    )
    max_pages: int = Field(2000, ge=1, description="PDFs with more pages are dropped")

    def open(self) -> StepFunction:
        extractors: dict[str, StepFunction] = {
            MEDIA_TYPES["html"]: partial(extract_page, settings=self),
            MEDIA_TYPES["pdf"]: ExtractPdf(markup=self.markup, max_pages=self.max_pages).open(),
            MEDIA_TYPES["epub"]: partial(extract_epub, settings=self),
            MEDIA_TYPES["docx"]: partial(extract_docx, settings=self),
            MEDIA_TYPES["doc"]: partial(extract_doc, settings=self),
        }
        return partial(dispatch, extractors=extractors)


def dispatch(document: Document, extractors: dict[str, StepFunction]) -> Outcome:
    if (extract := extractors.get(document.media_type)) is not None:
        return extract(document)
    if document.content and not document.text:
        return Drop("media_type", document.media_type)
    return document


def extract_page(document: Document, settings: Extract) -> Document | Drop:
    hint = str(document.metadata.get("charset", "")) or declared_charset(document.content)
    html, _ = decode_text(document.content, hint=hint)
    metadata = document.metadata
    try:
        if settings.scope == "whole":
            text = page_text(html, settings)
        else:
            text, page_type = main_text(html, document.url, settings)
            metadata = {**metadata, "page_type": page_type}
    except Refused as refusal:
        return refusal.drop
    if not text:
        return Drop("empty", "a page without text" if settings.scope == "whole" else "no main content")
    return replace(document, text=text, content=b"", media_type=text_type(settings), metadata=metadata)
