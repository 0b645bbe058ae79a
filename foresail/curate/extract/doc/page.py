"""A .doc file as a simple page of HTML, as `docx/page.py` makes of newer files.

doc_page(content) -> "<h1>Title</h1><p>Text<br>…</p><table>…"

Field codes, drawings, headers and footers are left out; footnotes stand at the end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from html import escape

from foresail.curate.extract.doc.pieces import Paragraph, WordFile

HEADINGS = 6
SIGNS = str.maketrans({"\x0b": "\n", "\x1e": "-", "\x1f": None, "\xa0": " ", "\x0e": "\n"})
CONTROLS = re.compile(r"[\x00-\x01\x03-\x08\x0f-\x12\x16-\x1d]")
FIELD_MARKS = re.compile(r"[\x13\x14\x15]")


def doc_page(content: bytes) -> str:
    """The document as HTML; `Refused` where it is none."""
    word = WordFile(content)
    writer = Writer()
    body = writer.blocks(word.paragraphs(0, word.text_end))
    notes = (
        paragraph
        for first, stop in ((word.text_end, word.footnotes_end), (word.endnotes, word.end))
        for paragraph in word.paragraphs(first, stop)
    )
    return "".join([*body, *writer.notes(notes)])


class Writer:
    def __init__(self) -> None:
        self.fields: list[bool] = []  # of each open field: is this its result?
        self.references = 0

    def blocks(self, paragraphs: Iterable[Paragraph]) -> Iterator[str]:
        cells: list[str] = []
        cell: list[str] = []
        rows: list[str] = []
        for paragraph in paragraphs:
            text, properties = self.inline(paragraph.text), paragraph.properties
            in_table = properties.in_table or paragraph.end == "\x07"
            if rows and not in_table:
                yield f"<table>{''.join(rows)}</table>"
                rows = []
            if properties.is_row_end:
                rows.append(f"<tr>{''.join(cells)}</tr>")
                cells, cell = [], []
            elif paragraph.end == "\x07":
                cells.append(f"<td>{'<br>'.join([*cell, text])}</td>")
                cell = []
            elif in_table:
                cell.append(text)
            elif text:
                yield block(text, paragraph)
        if cells:
            rows.append(f"<tr>{''.join(cells)}</tr>")
        if rows:
            yield f"<table>{''.join(rows)}</table>"

    def notes(self, paragraphs: Iterable[Paragraph]) -> Iterator[str]:
        self.references, self.fields = 0, []
        for paragraph in paragraphs:
            text = re.sub(r"^\[\^(\d+)\]", r"[^\1]:", self.inline(paragraph.text))
            if text:
                yield f"<p>{text}</p>"

    def inline(self, text: str) -> str:
        text = "".join(self.results(text)) if self.fields or "\x13" in text else text
        parts = CONTROLS.sub("", text.translate(SIGNS)).split("\x02")
        out = [escape(parts[0], quote=False)]
        for part in parts[1:]:
            self.references += 1
            out.append(f"[^{self.references}]{escape(part, quote=False)}")
        return "".join(out).strip().replace("\n", "<br>")

    def results(self, text: str) -> Iterator[str]:
        """What fields show, without what they say: PAGEREF, HYPERLINK …"""
        for part in re.split(r"([\x13\x14\x15])", text):
            if part == "\x13":
                self.fields.append(False)
            elif part == "\x14" and self.fields:
                self.fields[-1] = True
            elif part == "\x15" and self.fields:
                self.fields.pop()
            elif not FIELD_MARKS.match(part) and all(self.fields):
                yield part


def block(text: str, paragraph: Paragraph) -> str:
    properties = paragraph.properties
    if 1 <= properties.style <= 9:  # these numbers belong to headings
        level = min(properties.style, HEADINGS)
        return f"<h{level}>{text}</h{level}>"
    if properties.is_item:
        depth = properties.level + 1
        return f"{'<ul>' * depth}<li>{text}</li>{'</ul>' * depth}"
    return f"<p>{text}</p>"
