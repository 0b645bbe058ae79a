"""Headings, paragraphs, quotes, line ends."""

from __future__ import annotations

from foresail.curate.extract.render.code.line_elements import is_code_box
from foresail.curate.extract.render.code.text import GHOST
from foresail.curate.extract.render.handle.code import code_block
from foresail.curate.extract.render.lines import BREAK
from foresail.curate.extract.render.walker import Walker


def skip(walker: Walker, node: int) -> int:
    return walker.page.ends[node]


def block(walker: Walker, node: int) -> int:
    if node in walker.boxes:
        if is_code_box(walker.page, node):
            return code_block(walker, node)
        if GHOST.search(walker.page.data[node]):
            return walker.page.ends[node]
    walker.lines.flush()
    walker.close_at(node, walker.lines.flush)
    return node + 1


def paragraph(walker: Walker, node: int) -> int:
    walker.lines.flush(2)
    walker.close_at(node, walker.end_paragraph)
    return node + 1


def line_break(walker: Walker, node: int) -> int:
    walker.lines.add(BREAK)
    return node + 1


def rule(walker: Walker, node: int) -> int:
    walker.lines.flush(2)
    return node + 1


def heading(walker: Walker, node: int) -> int:
    level = int(walker.page.names[node][1])
    walker.lines.flush(2)
    if walker.in_cell:
        walker.close_at(node, walker.end_paragraph)
    else:
        walker.bold += 1
        walker.close_at(node, lambda: end_heading(walker, level))
    return node + 1


def end_heading(walker: Walker, level: int) -> None:
    lines = walker.lines
    walker.bold -= 1
    text = " ".join(lines.take().split("\n"))
    if text:
        lines.emit([f"{'#' * level} {text}" if walker.rendering.markup else text])
    lines.flush(2)


def quote(walker: Walker, node: int) -> int:
    walker.lines.flush(2)
    if walker.rendering.markup and not walker.in_cell:
        walker.lines.push("> ", "> ")
        walker.close_at(node, walker.end_container)
    else:
        walker.close_at(node, walker.end_paragraph)
    return node + 1
