"""ExtractDoc: the text of Word documents of 1997 to 2003, with headings, lists, tables and footnotes.

[[step]]
name = "extract_doc"
"""

from __future__ import annotations

import struct
from dataclasses import replace
from functools import partial

from foresail.curate.document import Document, Drop
from foresail.curate.extract.doc.page import doc_page
from foresail.curate.extract.refused import Refused
from foresail.curate.extract.render.rendering import Rendering
from foresail.curate.extract.whole_page import page_text, text_type
from foresail.curate.read.kinds import MEDIA_TYPES
from foresail.curate.step import StepFunction


class ExtractDoc(Rendering):
    """Text of Word documents before 2007, as Markdown or plain text."""

    def open(self) -> StepFunction:
        return partial(extract_doc, settings=self)


def extract_doc(document: Document, settings: Rendering) -> Document | Drop:
    """A document that is none of old Word's is left as it is."""
    if document.media_type != MEDIA_TYPES["doc"]:
        return document
    try:
        text = page_text(doc_page(document.content), settings)
    except Refused as refusal:
        return refusal.drop
    except struct.error as error:
        return Drop("damaged", f"its tables break off: {error}"[:200])
    if not text:
        return Drop("empty")
    return replace(document, text=text, content=b"", media_type=text_type(settings))
