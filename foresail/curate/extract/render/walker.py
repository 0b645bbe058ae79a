"""The walk over a page's nodes that writes lines, and what the handlers of elements share.

A handler takes the walker and a node, and returns the node to go on with: `node + 1` to walk its content,
`ends[node]` to pass over it. What is to happen at an element's end is left with `close_at`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from foresail.curate.extract.page import Page
from foresail.curate.extract.render.ahead import Ahead
from foresail.curate.extract.render.lines import Lines
from foresail.curate.extract.render.marks import Marks, find_marks
from foresail.curate.extract.render.maths.formula import Formula
from foresail.curate.extract.render.rendering import Rendering

PROSE = frozenset("h1 h2 h3 h4 h5 h6 ul ol section article form nav".split())
BLOCKS_IN_CODE = frozenset("pre table img math p ul ol".split())
LINES_IN_CODE = frozenset("br div".split())
Close = Callable[[], None]


class Walker:
    def __init__(
        self,
        page: Page,
        dropped: Collection[int],
        headings: Mapping[int, str],
        rendering: Rendering,
        handlers: Mapping[str, Handler],
        marks: Marks | None = None,
    ) -> None:
        self.page = page
        self.dropped = dropped
        self.headings = headings
        self.rendering = rendering
        self.handlers = handlers
        marks = marks or find_marks(page)
        self.formulas = marks.formulas.anew()
        self.boxes = marks.boxes  # elements that may be a box of code
        self.lines = Lines()
        self.closers: list[tuple[int, Close]] = []
        self.lists: list[list[int]] = []  # the next number of each open list; -1: bullets
        self.terms: list[bool] = []  # of each open <dl>: has it had a <dt>
        self.looked_at: set[int] = set()  # elements that turned out to be no lines of code
        self.prose = Ahead(page, PROSE)
        self.blocks_in_code = Ahead(page, BLOCKS_IN_CODE)
        self.lines_in_code = Ahead(page, LINES_IN_CODE)
        self.in_cell = False
        self.bold = self.italic = 0

    def walk(self, at: int, last: int) -> None:
        page = self.page
        names, data, ends = page.names, page.data, page.ends
        dropped, headings, closers, handlers = self.dropped, self.headings, self.closers, self.handlers
        pieces, read_formula = self.lines.pieces, self.formulas.read
        formulas = self.formulas.places
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
                text = data[at]
                if pieces or not text.isspace():
                    pieces.append(text)
                at += 1
                continue
            if at in dropped:
                at = ends[at]
                continue
            if at in formulas:
                formula = read_formula(at)
                if formula is not None:
                    self.formula(formula)
                    at = formula.end
                    continue
            handler = handlers.get(name)
            if handler is not None:
                at = handler(self, at)
                next_close = closers[-1][0] if len(closers) > depth else last
            else:
                at += 1

    def close_at(self, node: int, close: Close) -> None:
        self.closers.append((self.page.ends[node], close))

    def end_paragraph(self) -> None:
        self.lines.flush(2)

    def end_container(self) -> None:
        self.lines.flush(2)
        self.lines.pop()

    def heading_line(self, text: str) -> None:
        self.lines.flush(2)
        self.lines.emit([f"## {text}" if self.rendering.markup else text])
        self.lines.flush(2)

    def formula(self, formula: Formula) -> None:
        latex, lines = formula.latex, self.lines
        if not latex:
            return
        if formula.is_display and not self.in_cell:
            lines.flush(2)
            lines.emit(f"$$\n{latex}\n$$".split("\n"))
            lines.flush(2)
        else:
            lines.protect(f"${' '.join(latex.split())}$")

    def one_line(self, node: int) -> str:
        """What an element holds, on one line: a table's cell."""
        if node in self.dropped:
            return ""
        outside = self.lines, self.in_cell
        inner = Lines()
        inner.asciimath = outside[0].asciimath
        self.lines, self.in_cell = inner, True
        self.walk(node + 1, self.page.ends[node])
        inner.flush()
        self.lines, self.in_cell = outside
        return " ".join(line.strip() for part in inner.done for line in part.split("\n") if line.strip())


Handler = Callable[[Walker, int], int]
