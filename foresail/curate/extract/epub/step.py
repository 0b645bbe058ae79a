"""ExtractEpub: the chapters of a book, one after the other.

[[steps]]
step = "extract_epub"
links = false
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from foresail.curate.document import Document, Drop
from foresail.curate.extract.epub.book import chapters
from foresail.curate.extract.epub.chapter import chapter_html
from foresail.curate.extract.refused import Refused
from foresail.curate.extract.render.rendering import Rendering
from foresail.curate.extract.whole_page import page_text, text_type
from foresail.curate.read.kinds import MEDIA_TYPES
from foresail.curate.step import StepFunction


class ExtractEpub(Rendering):
    """Text of books: all chapters, as Markdown or plain text."""

    def open(self) -> StepFunction:
        return partial(extract_epub, settings=self)


def extract_epub(document: Document, settings: Rendering) -> Document | Drop:
    """A document that is no book is left as it is."""
    if document.media_type != MEDIA_TYPES["epub"]:
        return document
    try:
        pages, labels = chapters(document.content)
        text = "\n\n".join(text for text in chapter_texts(pages, settings) if text)
    except Refused as refusal:
        return refusal.drop
    if not text:
        return Drop("empty", f"{len(pages)} chapters without text")
    return replace(
        document,
        text=text,
        content=b"",
        media_type=text_type(settings),
        metadata=document.metadata | labels,
    )


def chapter_texts(pages: Sequence[bytes], settings: Rendering) -> Iterator[str]:
    """One chapter that is too much does not lose the book, unless it is the only one."""
    for page in pages:
        try:
            yield page_text(chapter_html(page), settings)
        except Refused:
            if len(pages) == 1:
                raise
