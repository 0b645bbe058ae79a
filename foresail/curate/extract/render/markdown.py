"""A page, or parts of it, as Markdown or plain text.

render(read_page("<h1>A</h1><ul><li>b<li>c</ul>"))   ->   "# A\\n\\n- b\\n- c"

The tree is walked once, without recursion: what an element opens is closed when the walk passes its end. Only the
cells of a table of data are walked on their own, and such a table holds no other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence

from foresail.curate.extract.page import Page
from foresail.curate.extract.render.code import (
    EDITOR,
    GHOST,
    code_text,
    editor,
    fence,
    inline_code,
    is_prose,
)
from foresail.curate.extract.render.language import language
from foresail.curate.extract.render.lines import BREAK, Lines
from foresail.curate.extract.render.maths.formula import HINT, Formula, read_formula
from foresail.curate.extract.render.rendering import Rendering
from foresail.curate.extract.render.scripts import raised
from foresail.curate.extract.render.table import code_table, grid, is_block_cell, pipes, read_table

SKIPPED = frozenset(
    "script style template head title noscript svg canvas audio video object embed iframe map textarea select"
    " datalist input button option optgroup progress meter dialog link meta base frameset noframes rp".split()
)
PARAGRAPHS = frozenset(
    "p figure section article blockquote header footer main aside form details table".split()
)
BLOCKS = frozenset(
    "div address figcaption fieldset legend nav summary hgroup center tbody thead tfoot tr caption dir menu search"
    " optgroup body html xmp listing plaintext".split()
)
HEADINGS = {f"h{level}": level for level in range(1, 7)}
PERMALINKS = frozenset(["¶", "#", "§", "🔗", "", "\uf0c1", "link", "Link", "Permalink", "[edit]", "Anchor"])
MAYBE_EDITOR = re.compile("CodeMirror|cm-content|ace_|view-lines|crayon")
Close = Callable[[], None]


def render(
    page: Page,
    roots: Sequence[int] = (0,),
    *,
    dropped: Collection[int] = frozenset(),
    headings: Mapping[int, str] | None = None,
    rendering: Rendering | None = None,
) -> str:
    """The subtrees of `roots` in their order, without those of `dropped` (best a set).

    `headings` are lines to write before a node: what `read_thread` says of a post.
    """
    walker = Walker(page, dropped, headings or {}, rendering or Rendering())
    for root in roots:
        walker.walk(root, page.ends[root])
        walker.lines.flush(2)
    return walker.lines.text()


class Walker:
    def __init__(
        self, page: Page, dropped: Collection[int], headings: Mapping[int, str], rendering: Rendering
    ) -> None:
        self.page = page
        self.dropped = dropped
        self.headings = headings
        self.rendering = rendering
        self.lines = Lines()
        self.lines.asciimath = uses_asciimath(page)
        self.closers: list[tuple[int, Close]] = []
        self.lists: list[list[int]] = []  # the next number of each open list; -1: bullets
        self.terms: list[bool] = []  # of each open <dl>: has it had a <dt>
        self.in_cell = False
        self.bold = self.italic = 0

    def walk(self, at: int, last: int) -> None:
        page = self.page
        names, data, ends = page.names, page.data, page.ends
        dropped, headings, closers, lines = self.dropped, self.headings, self.closers, self.lines
        add, handlers = lines.add, HANDLERS
        depth = len(closers)
        next_close = last
        while True:
            while at >= next_close and len(closers) > depth:
                closers.pop()[1]()
                next_close = closers[-1][0] if len(closers) > depth else last
            if at >= last:
                break
            if headings and at in headings:
                self.heading_line(headings[at])
            name = names[at]
            if not name:
                add(data[at])
                at += 1
                continue
            if at in dropped:
                at = ends[at]
                continue
            attributes = data[at]
            if (attributes and HINT.search(attributes)) or name == "math" or name == "script":
                formula = read_formula(page, at)
                if formula is not None:
                    self.formula(formula, at)
                    at = formula.end
                    continue
            handler = handlers.get(name)
            if handler is not None:
                at = handler(self, at)
                next_close = closers[-1][0] if len(closers) > depth else last
            elif ":" in name and name.endswith(":math") and (formula := read_formula(page, at)):
                self.formula(formula, at)
                at = formula.end
            else:
                at += 1

    def close_at(self, node: int, close: Close) -> None:
        self.closers.append((self.page.ends[node], close))

    # Blocks

    def skip(self, node: int) -> int:
        return self.page.ends[node]

    def block(self, node: int) -> int:
        attributes = self.page.data[node]
        if attributes and MAYBE_EDITOR.search(attributes):
            if GHOST.search(attributes):
                return self.page.ends[node]
            if EDITOR.search(attributes):
                return self.code_block(node)
        self.lines.flush()
        self.close_at(node, self.lines.flush)
        return node + 1

    def paragraph(self, node: int) -> int:
        self.lines.flush(2)
        self.close_at(node, self.end_paragraph)
        return node + 1

    def end_paragraph(self) -> None:
        self.lines.flush(2)

    def line_break(self, node: int) -> int:
        self.lines.add(BREAK)
        return node + 1

    def rule(self, node: int) -> int:
        self.lines.flush(2)
        return node + 1

    def heading(self, node: int) -> int:
        lines, level = self.lines, int(self.page.names[node][1])
        lines.flush(2)
        if not self.in_cell:
            self.bold += 1
            self.close_at(node, lambda: self.end_heading(level))
        else:
            self.close_at(node, self.end_paragraph)
        return node + 1

    def end_heading(self, level: int) -> None:
        lines = self.lines
        self.bold -= 1
        text = " ".join(lines.take().split("\n"))
        if text:
            lines.emit([f"{'#' * level} {text}" if self.rendering.markup else text])
        lines.flush(2)

    def heading_line(self, text: str) -> None:
        self.lines.flush(2)
        self.lines.emit([f"## {text}" if self.rendering.markup else text])
        self.lines.flush(2)

    def quote(self, node: int) -> int:
        self.lines.flush(2)
        if self.rendering.markup and not self.in_cell:
            self.lines.push("> ", "> ")
            self.close_at(node, self.end_container)
        else:
            self.close_at(node, self.end_paragraph)
        return node + 1

    def end_container(self) -> None:
        self.lines.flush(2)
        self.lines.pop()

    # Lists

    def open_list(self, node: int) -> int:
        lines = self.lines
        lines.flush(1 if self.lists else 2)
        if self.page.names[node] == "ol":
            start = self.page.attribute(node, "start") if self.page.data[node] else ""
            self.lists.append([int(start) if start.isdecimal() and len(start) < 10 else 1])
        else:
            self.lists.append([-1])
        self.close_at(node, self.close_list)
        return node + 1

    def close_list(self) -> None:
        self.lists.pop()
        self.lines.flush(1 if self.lists else 2)

    def item(self, node: int) -> int:
        lines = self.lines
        lines.flush()
        if self.in_cell:
            self.close_at(node, lines.flush)
            return node + 1
        marker = "- "
        if self.lists:
            counter = self.lists[-1]
            if counter[0] >= 0:
                value = self.page.attribute(node, "value") if self.page.data[node] else ""
                if value.isdecimal() and len(value) < 10:
                    counter[0] = int(value)
                marker = f"{counter[0]}. "
                counter[0] += 1
        lines.push(marker, " " * len(marker))
        self.close_at(node, self.end_item)
        return node + 1

    def end_item(self) -> None:
        self.lines.flush()
        self.lines.pop()
        self.lines.gap = 1

    def definitions(self, node: int) -> int:
        self.lines.flush(2)
        self.terms.append(False)
        self.close_at(node, self.end_definitions)
        return node + 1

    def end_definitions(self) -> None:
        self.terms.pop()
        self.lines.flush(2)

    def term(self, node: int) -> int:
        if self.terms:
            self.terms[-1] = True
        return self.block(node)

    def definition(self, node: int) -> int:
        lines = self.lines
        lines.flush()
        if self.in_cell or not self.terms or not self.terms[-1]:
            self.close_at(node, lines.flush)
        else:
            lines.gap = min(lines.gap, 1)
            lines.push(": " if self.rendering.markup else "  ", "  ")
            self.close_at(node, self.end_item)
        return node + 1

    # Code

    def pre(self, node: int) -> int:
        if is_prose(self.page, node):
            return self.paragraph(node)
        return self.code_block(node)

    def code_block(self, node: int) -> int:
        text = code_text(self.page, editor(self.page, node))
        self.write_code(text, language(self.page, node) if self.rendering.markup else "")
        return self.page.ends[node]

    def write_code(self, text: str, name: str) -> None:
        if not text.strip():
            return
        lines = self.lines
        if self.in_cell:
            lines.protect(inline_code(" ".join(text.split())) if self.rendering.markup else text)
            return
        lines.flush(2)
        if self.rendering.markup:
            mark = fence(text)
            lines.emit([mark + name, *text.split("\n"), mark])
        else:
            lines.emit(text.split("\n"))
        lines.flush(2)

    def code(self, node: int) -> int:
        """Inline, unless it holds lines."""
        page = self.page
        inside = page.names[node + 1 : page.ends[node]]
        if "pre" in inside or "table" in inside or "img" in inside or "math" in inside:
            return node + 1
        if "br" in inside or "div" in inside:
            return self.code_block(node)
        text = page.text(node)
        if "\n" in text.strip() and has_code_lines(text, page.data[node]):
            return self.code_block(node)
        text = " ".join(text.split())
        if text:
            self.lines.protect(inline_code(text) if self.rendering.markup else text)
        return page.ends[node]

    # Formulas

    def formula(self, formula: Formula, node: int) -> None:
        latex, lines = formula.latex, self.lines
        if not latex:
            return
        if formula.is_display and not self.in_cell:
            lines.flush(2)
            lines.emit(f"$$\n{latex}\n$$".split("\n"))
            lines.flush(2)
        else:
            lines.protect(f"${' '.join(latex.split())}$")

    def image(self, node: int) -> int:
        formula = read_formula(self.page, node)
        if formula is not None:
            self.formula(formula, node)
        return node + 1

    # Inline

    def strong(self, node: int) -> int:
        return self.emphasize(node, "**") if not self.bold else node + 1

    def em(self, node: int) -> int:
        return self.emphasize(node, "*") if not self.italic else node + 1

    def emphasize(self, node: int, mark: str) -> int:
        if not (self.rendering.markup and self.rendering.emphasis):
            return node + 1
        pieces = self.lines.pieces
        start, lines_before = len(pieces), len(self.lines.done)
        if mark == "*":
            self.italic += 1
        else:
            self.bold += 1
        self.close_at(node, lambda: self.end_emphasis(mark, start, lines_before))
        return node + 1

    def end_emphasis(self, mark: str, start: int, lines_before: int) -> None:
        """Marks stand next to words: <b> a </b>b becomes " **a** b"."""
        if mark == "*":
            self.italic -= 1
        else:
            self.bold -= 1
        pieces = self.lines.pieces
        if len(self.lines.done) != lines_before or len(pieces) <= start:
            return
        text = "".join(pieces[start:])
        inner = text.strip()
        if inner and BREAK not in inner:
            head, tail = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
            pieces[start:] = [f"{head}{mark}{inner}{mark}{tail}"]

    def link(self, node: int) -> int:
        page = self.page
        end = page.ends[node]
        if (
            end <= node + 2
            and (self.bold or "headerlink" in page.data[node] or "anchor" in page.data[node])
            and page.text(node).strip() in PERMALINKS
        ):
            return end
        if not (self.rendering.links and self.rendering.markup):
            return node + 1
        address = page.attribute(node, "href")
        if not address or address.startswith(("#", "javascript:")):
            return node + 1
        pieces = self.lines.pieces
        start, lines_before = len(pieces), len(self.lines.done)
        self.close_at(node, lambda: self.end_link(address, start, lines_before))
        return node + 1

    def end_link(self, address: str, start: int, lines_before: int) -> None:
        pieces = self.lines.pieces
        if len(self.lines.done) != lines_before or len(pieces) <= start:
            return
        text = "".join(pieces[start:])
        if text.strip() and BREAK not in text:
            pieces[start:] = [f"[{text}](", *self.link_address(address)]

    def link_address(self, address: str) -> list[str]:
        lines = self.lines
        lines.protected.append(address.replace(" ", "%20").replace(")", "%29"))
        return [f"\0{len(lines.protected) - 1};", ")"]

    def superscript(self, node: int) -> int:
        return self.raise_text(node, "sup")

    def subscript(self, node: int) -> int:
        return self.raise_text(node, "sub")

    def raise_text(self, node: int, kind: str) -> int:
        """x<sup>2</sup> becomes x²: without it the number would be another one."""
        page = self.page
        end = page.ends[node]
        if end - node > 6:
            return node + 1
        if "a" in page.names[node + 1 : end]:
            text = page.text(node).strip()
            if text.isdecimal():  # a footnote's number does not belong to the word before it
                self.lines.add(f"[{text}]")
                return end
            return node + 1
        small = raised(page.text(node), kind)
        if small is None:
            return node + 1
        self.lines.add(small)
        return end

    # Tables

    def table(self, node: int) -> int:
        page, lines = self.page, self.lines
        table = read_table(page, node)
        code = code_table(page, node, table)
        if code is not None:
            self.write_code(code, language(page, node) if self.rendering.markup else "")
            return page.ends[node]
        if not table.is_data or self.in_cell:
            return self.paragraph(node)
        lines.flush(2)
        if table.caption is not None and table.caption not in self.dropped:
            text = self.cell(table.caption)
            if text:
                lines.emit([text])
                lines.flush(2)
        texts = {cell: self.cell(cell) for row in table.rows for cell in row}
        rows = grid(page, table, texts)
        if rows:
            lines.emit(pipes(rows) if self.rendering.markup else ["\t".join(row).rstrip() for row in rows])
        lines.flush(2)
        return page.ends[node]

    def cell(self, cell: int) -> str:
        """Its text on one line."""
        if cell in self.dropped:
            return ""
        outside = self.lines, self.in_cell
        inner = Lines()
        inner.asciimath = outside[0].asciimath
        self.lines, self.in_cell = inner, True
        self.walk(cell + 1, self.page.ends[cell])
        inner.flush()
        self.lines, self.in_cell = outside
        return " ".join(line.strip() for part in inner.done for line in part.split("\n") if line.strip())

    def layout_cell(self, node: int) -> int:
        if is_block_cell(self.page, node):
            return self.block(node)
        self.lines.add(" ")
        self.close_at(node, lambda: self.lines.add(" "))
        return node + 1


def uses_asciimath(page: Page) -> bool:
    """A script of the page turns backticks into formulas."""
    for at, name in enumerate(page.names):
        if name == "script" and ("asciimath" in page.data[at].lower() or "AM_" in page.data[at]):
            return True
        if name == "" and page.parents[at] >= 0 and page.names[page.parents[at]] == "script":
            text = page.data[at]
            if "asciimath2jax" in text or "input/asciimath" in text or "AMdelimiter" in text:
                return True
    return False


def has_code_lines(text: str, attributes: str) -> bool:
    """Some line is indented, or the element says what language it holds."""
    lines = text.strip("\n").split("\n")
    return (
        "language-" in attributes
        or "white-space: pre" in attributes
        or "white-space:pre" in attributes
        or (
            len(lines) > 2
            and any(line[:1] in " \t" for line in lines[1:])
            and any(line[:1] not in (" ", "\t", "") for line in lines)
        )
    )


Handler = Callable[[Walker, int], int]
HANDLERS: Mapping[str, Handler] = (
    dict.fromkeys(SKIPPED, Walker.skip)
    | dict.fromkeys(BLOCKS, Walker.block)
    | dict.fromkeys(PARAGRAPHS, Walker.paragraph)
    | dict.fromkeys(HEADINGS, Walker.heading)
    | dict.fromkeys(("ul", "ol", "menu", "dir"), Walker.open_list)
    | dict.fromkeys(("strong", "b"), Walker.strong)
    | dict.fromkeys(("em", "i"), Walker.em)
    | dict.fromkeys(("code", "samp", "tt"), Walker.code)
    | dict.fromkeys(("pre", "listing", "xmp", "plaintext"), Walker.pre)
    | dict.fromkeys(("td", "th"), Walker.layout_cell)
    | {
        "br": Walker.line_break,
        "hr": Walker.rule,
        "li": Walker.item,
        "dl": Walker.definitions,
        "dt": Walker.term,
        "dd": Walker.definition,
        "blockquote": Walker.quote,
        "img": Walker.image,
        "a": Walker.link,
        "sup": Walker.superscript,
        "sub": Walker.subscript,
        "table": Walker.table,
    }
)
