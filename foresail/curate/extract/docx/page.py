"""A Word document as a simple page of HTML: docx_page(content) -> "<h1>Title</h1><p>Text …" """

from __future__ import annotations

from foresail.curate.extract.docx.body import BodyReader, NoteReader
from foresail.curate.extract.docx.styles import read_styles
from foresail.curate.extract.package import Package
from foresail.curate.extract.refused import Refused
from foresail.curate.extract.xml_events import read_xml

MAX_UNPACKED = 2**28
NOTES = (("word/footnotes.xml", ""), ("word/endnotes.xml", "e"))


def docx_page(content: bytes) -> str:
    """The document as HTML; `Refused` where it is none."""
    package = Package(content, MAX_UNPACKED)
    styles = read_styles(package)
    body = BodyReader(styles)
    complete = read_xml(package.parts("word/document.xml"), body)
    page = body.page()
    if not page and not complete:
        raise Refused("damaged", "word/document.xml is no XML")
    for name, kind in NOTES:
        if name in package:
            notes = NoteReader(kind)
            read_xml(package.parts(name), notes)
            page += notes.page()
    return page
