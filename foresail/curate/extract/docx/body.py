"""The body of a DOCX as a simple page of HTML: headings, lists, tables, footnotes, formulas as MathML.

reader = BodyReader(styles)
read_xml(package.parts("word/document.xml"), reader)
reader.page() -> "<h1>Title</h1><p>Text<sup>[^2]</sup> …</p><ul><li>…"

Word writes lists as paragraphs with a level, and text boxes as paragraphs inside of paragraphs. Deleted text, field
codes and the second copy of what older versions cannot draw are left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape

from foresail.curate.extract.docx.omml import Formula
from foresail.curate.extract.docx.styles import Styles, value_of
from foresail.curate.extract.refused import Refused
from foresail.curate.extract.xml_events import Handler

SKIPPED = frozenset("del delText moveFrom instrText Fallback pPrChange rPrChange sdtPr sectPrChange".split())
MAX_CHARS = 20_000_000
MAX_SPAN = 100


@dataclass
class Paragraph:
    parts: list[str] = field(default_factory=list)
    style: str = ""
    list: str = ""
    level: int = 0
    heading: int = 0


@dataclass
class Table:
    """A table that is being written. A cell's tag waits for its properties, which stand inside of it."""

    outer_lists: list[str]
    columns: int = 1
    is_cell_open: bool = True


class BodyReader(Handler):
    def __init__(self, styles: Styles) -> None:
        self.styles = styles
        self.out: list[str] = []
        self.size = 0
        self.paragraphs: list[Paragraph] = []
        self.open_lists: list[str] = []  # "ul" or "ol" of each level
        self.tables: list[Table] = []
        self.skipping = 0
        self.formula: Formula | None = None
        self.formula_depth = 0
        self.is_display = False
        self.text_depth = 0  # inside <w:t>

    def begin(self, name: str, attributes: dict[str, str]) -> None:
        space, _, tag = name.rpartition("}")
        if self.skipping or tag in SKIPPED:
            self.skipping += 1
        elif self.formula is not None:
            self.formula_depth += 1
            self.formula.begin(tag, attributes)
        elif space.endswith("/math"):
            self.begin_math(tag)
        elif "wordprocessingml" in space:
            self.begin_word(tag, attributes)

    def begin_math(self, tag: str) -> None:
        if tag == "oMathPara":
            self.is_display = True
        elif tag == "oMath":
            self.formula = Formula()
            self.formula_depth = 0

    def begin_word(self, tag: str, attributes: dict[str, str]) -> None:
        paragraph = self.paragraphs[-1] if self.paragraphs else None
        match tag:
            case "p":
                self.paragraphs.append(Paragraph())
            case "t":
                self.text_depth += 1
            case "tbl":
                self.begin_table()
            case "tr":
                self.emit("<tr>")
            case "tc":
                if self.tables:
                    self.tables[-1].columns, self.tables[-1].is_cell_open = 1, False
            case "gridSpan" if self.tables:
                columns = value_of(attributes)
                self.tables[-1].columns = min(int(columns[:4]), MAX_SPAN) if columns.isdecimal() else 1
            case _ if paragraph is not None:
                self.inside_paragraph(tag, attributes, paragraph)

    def inside_paragraph(self, tag: str, attributes: dict[str, str], paragraph: Paragraph) -> None:
        match tag:
            case "pStyle":
                paragraph.style = value_of(attributes)
            case "outlineLvl":
                level = value_of(attributes)
                paragraph.heading = int(level[:2]) + 1 if level.isdecimal() and int(level[:2]) < 6 else 0
            case "numId":
                paragraph.list = value_of(attributes)
            case "ilvl":
                level = value_of(attributes)
                paragraph.level = min(int(level[:2]), 8) if level.isdecimal() else 0
            case "tab":
                paragraph.parts.append(" ")
            case "br" | "cr":
                paragraph.parts.append("<br>")
            case "noBreakHyphen":
                paragraph.parts.append("-")
            case "footnoteReference" | "endnoteReference":
                note = value_of(attributes, "id")
                kind = "" if tag == "footnoteReference" else "e"
                if note.isdecimal():
                    paragraph.parts.append(f"[^{kind}{note[:6]}]")
            case "sym":
                code = value_of(attributes, "char")
                if 0 < len(code) <= 4 and all(letter in "0123456789abcdefABCDEF" for letter in code):
                    letter = chr(int(code, 16))
                    paragraph.parts.append("" if "\ud800" <= letter <= "\uf8ff" else escape(letter))

    def text(self, text: str) -> None:
        if self.skipping:
            return
        if self.formula is not None:
            self.formula.text(text)
        elif self.text_depth and self.paragraphs:
            self.grow(len(text))
            self.paragraphs[-1].parts.append(escape(text, quote=False))

    def end(self, name: str) -> None:
        space, _, tag = name.rpartition("}")
        if self.skipping:
            self.skipping -= 1
        elif self.formula is not None:
            if self.formula_depth == 0:
                self.end_formula()
            else:
                self.formula_depth -= 1
                self.formula.end()
        elif space.endswith("/math"):
            if tag == "oMathPara":
                self.is_display = False
        elif "wordprocessingml" in space:
            self.end_word(tag)

    def end_formula(self) -> None:
        assert self.formula is not None
        formula = self.formula.mathml(display=self.is_display)
        self.formula = None
        self.grow(len(formula))
        if self.paragraphs:
            self.paragraphs[-1].parts.append(formula)
        else:
            self.emit(f"<p>{formula}</p>")

    def end_word(self, tag: str) -> None:
        match tag:
            case "p" if self.paragraphs:
                self.end_paragraph(self.paragraphs.pop())
            case "t" if self.text_depth:
                self.text_depth -= 1
            case "tbl" if self.tables:
                self.close_lists(0)
                self.open_lists = self.tables.pop().outer_lists
                self.emit("</table>")
            case "tr" if self.tables:
                self.emit("</tr>")
            case "tc" if self.tables:
                self.end_cell()

    def begin_table(self) -> None:
        self.open_cell()
        self.close_lists(0)
        self.emit("<table>")
        self.tables.append(Table(self.open_lists))
        self.open_lists = []

    def end_cell(self) -> None:
        self.open_cell()
        self.close_lists(0)
        self.emit("</td>")

    def open_cell(self) -> None:
        if self.tables and not self.tables[-1].is_cell_open:
            self.tables[-1].is_cell_open = True
            columns = self.tables[-1].columns
            self.emit(f'<td colspan="{columns}">' if columns > 1 else "<td>")

    def end_paragraph(self, paragraph: Paragraph) -> None:
        content = "".join(paragraph.parts).strip()
        if self.paragraphs:  # a text box: its text goes behind the paragraph that holds it
            self.paragraphs[-1].parts.append(f"<br>{content}" if content else "")
            return
        self.open_cell()
        if not content:
            return
        heading = paragraph.heading or self.styles.headings.get(paragraph.style, 0)
        is_item = paragraph.list not in ("", "0") or paragraph.style in self.styles.lists
        if is_item and not heading:
            self.open_lists_to(paragraph.level + 1, (paragraph.list, paragraph.level) in self.styles.ordered)
            self.emit(f"<li>{content}</li>")
            return
        self.close_lists(0)
        self.emit(f"<h{heading}>{content}</h{heading}>" if heading else f"<p>{content}</p>")

    def open_lists_to(self, depth: int, ordered: bool) -> None:
        kind = "ol" if ordered else "ul"
        self.close_lists(depth)
        if len(self.open_lists) == depth and self.open_lists[-1] != kind:
            self.close_lists(depth - 1)
        while len(self.open_lists) < depth:
            self.open_lists.append(kind)
            self.emit(f"<{kind}>")

    def close_lists(self, depth: int) -> None:
        while len(self.open_lists) > depth:
            self.emit(f"</{self.open_lists.pop()}>")

    def emit(self, html: str) -> None:
        self.grow(len(html))
        self.out.append(html)

    def grow(self, chars: int) -> None:
        self.size += chars
        if self.size > 2 * MAX_CHARS:
            raise Refused("too_large", f"more than {MAX_CHARS:,} characters")

    def page(self) -> str:
        """What was read so far, also where the file breaks off."""
        while self.paragraphs:
            self.end_paragraph(self.paragraphs.pop())
        self.close_lists(0)
        return "".join(self.out)


class NoteReader(Handler):
    """Footnotes: "[^2]: the text", those of separators aside."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.notes: dict[str, BodyReader] = {}
        self.note: BodyReader | None = None

    def begin(self, name: str, attributes: dict[str, str]) -> None:
        if name.rpartition("}")[2] in ("footnote", "endnote") and "wordprocessingml" in name:
            id = value_of(attributes, "id")
            is_text = id.isdecimal() and value_of(attributes, "type") in ("", "normal")
            self.note = self.notes.setdefault(id[:6], BodyReader(Styles())) if is_text else None
        elif self.note is not None:
            self.note.begin(name, attributes)

    def end(self, name: str) -> None:
        if name.rpartition("}")[2] in ("footnote", "endnote") and "wordprocessingml" in name:
            self.note = None
        elif self.note is not None:
            self.note.end(name)

    def text(self, text: str) -> None:
        if self.note is not None:
            self.note.text(text)

    def page(self) -> str:
        notes = []
        for id, note in self.notes.items():
            content = note.page().removeprefix("<p>").removesuffix("</p>")
            if content:
                notes.append(f"<p>[^{self.kind}{id}]: {content}</p>")
        return "".join(notes)
