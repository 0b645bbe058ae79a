"""One step for whatever a document is."""

from __future__ import annotations

import pytest
from small_docx import make_docx, make_zip, p, t
from small_pdf import make_pdf

from foresail.curate.document import Document, Drop
from foresail.curate.extract.step import Extract
from foresail.curate.read.kinds import DOCX

BOOK = {"a.xhtml": b"<p>sail</p>"}


@pytest.mark.parametrize(
    ("media_type", "content"),
    [
        ("text/html", b"<!doctype html><html><body><main><p>sail</p></main></body></html>"),
        ("application/pdf", make_pdf([[(60.0, 100.0, 10.0, "sail")]])),
        (DOCX, make_docx(p(t("sail")))),
        ("application/epub+zip", make_zip(BOOK)),
    ],
)
def test_a_document_is_extracted_by_its_type(media_type: str, content: bytes):
    written = Extract().open()(Document(id="a", content=content, media_type=media_type, metadata={"n": 1}))
    assert isinstance(written, Document)
    assert (written.text, written.content, written.metadata["n"]) == ("sail", b"", 1)
    assert written.media_type == "text/markdown"
    plain = Extract(markup=False).open()(Document(id="a", content=content, media_type=media_type))
    assert isinstance(plain, Document) and plain.media_type == "text/plain"


def test_texts_pass_and_unknown_types_are_dropped():
    extract = Extract().open()
    text = Document(id="a", text="sail", media_type="text/markdown")
    assert extract(text) is text
    unknown = extract(Document(id="a", content=b"?", media_type="image/png"))
    assert isinstance(unknown, Drop) and unknown.reason == "media_type"
