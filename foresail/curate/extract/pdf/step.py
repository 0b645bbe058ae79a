"""ExtractPdf: the text of a PDF in reading order, by pypdfium2.

[[steps]]
step = "extract_pdf"
max_pages = 500
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from pydantic import Field

from foresail.curate.document import Document, Drop
from foresail.curate.extract.pdf.glyphs import Segment, page_segments
from foresail.curate.extract.pdf.layout import reading_order
from foresail.curate.extract.pdf.memory import at_most
from foresail.curate.extract.pdf.paragraphs import join_lines
from foresail.curate.extract.pdf.repeats import drop_repeats
from foresail.curate.extract.pdf.streams import check_streams
from foresail.curate.extract.refused import Refused
from foresail.curate.step import StepFunction
from foresail.recipe.tables.part import Part

MAX_CHARS = 30_000_000  # of a document: a thousand novels are no document
MEMORY = 2**31  # bytes; drawings that draw each other without end take more, and their process ends (crashed)
UNREADABLE = 0.3  # of the characters: their fonts do not say which letters they are


class ExtractPdf(Part):
    """Text of PDFs: columns, hyphens, headers and footers."""

    markup: bool = Field(True, description="headings by the size of letters, as Markdown")
    max_pages: int = Field(2000, ge=1, description="PDFs with more pages are dropped")

    def open(self) -> StepFunction:
        return partial(extract_pdf, settings=self)


def extract_pdf(document: Document, settings: ExtractPdf) -> Document | Drop:
    """A document that is no PDF is left as it is."""
    if document.media_type != "application/pdf":
        return document
    with at_most(MEMORY):
        outcome = pdf_text(document.content, settings)
    if isinstance(outcome, Drop):
        return outcome
    text, num_pages = outcome
    return replace(
        document,
        text=text,
        content=b"",
        media_type="text/markdown" if settings.markup else "text/plain",
        metadata=document.metadata | {"pages": num_pages},
    )


def pdf_text(content: bytes, settings: ExtractPdf) -> tuple[str, int] | Drop:
    import pypdfium2

    try:
        check_streams(content)
    except Refused as refusal:
        return refusal.drop
    try:
        pdf = pypdfium2.PdfDocument(content)
    except pypdfium2.PdfiumError as error:
        reason = "encrypted" if "assword" in str(error) else "damaged"
        return Drop(reason, str(error)[:200])
    try:
        if len(pdf) > settings.max_pages:
            return Drop("too_large", f"{len(pdf)} pages; {settings.max_pages} are allowed")
        pages = read_pages(pdf)
    except pypdfium2.PdfiumError as error:
        return Drop("damaged", str(error)[:200])
    finally:
        pdf.close()
    if isinstance(pages, Drop):
        return pages
    segments, heights = pages
    letters = "".join(segment.text for page in segments for segment in page)
    if not letters.strip():
        return Drop("no_text_layer", "pages are pictures; recognise their text first (OCR)")
    unreadable = sum(letter == "\ufffd" or "\ue000" <= letter <= "\uf8ff" for letter in letters)
    if unreadable > UNREADABLE * len(letters):
        return Drop("no_text_layer", "its fonts do not say which letters they are; recognise its text (OCR)")
    lines = [reading_order(page) for page in drop_repeats(segments, heights)]
    paragraphs = join_lines(lines, headings=settings.markup)
    if not paragraphs:
        return Drop("empty")
    return "\n\n".join(paragraphs), len(segments)


def read_pages(pdf: Any) -> tuple[list[list[Segment]], list[float]] | Drop:
    """Segments and height of every page; a page that cannot be read is empty."""
    import pypdfium2

    segments: list[list[Segment]] = []
    heights: list[float] = []
    chars = failures = 0
    for number in range(len(pdf)):
        try:
            page = pdf[number]
        except pypdfium2.PdfiumError:
            failures += 1
            continue
        try:
            heights.append(page.get_height())
            segments.append(page_segments(page))
        finally:
            page.close()
        chars += sum(len(segment.text) for segment in segments[-1])
        if chars > MAX_CHARS:
            return Drop("too_large", f"more than {MAX_CHARS:,} characters")
    if failures and not any(segments):
        return Drop("damaged", f"none of {failures} pages can be read")
    return segments, heights
