"""Lists, numbered or not, nested, and definitions."""

from __future__ import annotations

from foresail.curate.extract.render.handle.blocks import block
from foresail.curate.extract.render.walker import Walker


def open_list(walker: Walker, node: int) -> int:
    lines = walker.lines
    lines.flush(1 if walker.lists else 2)
    if walker.page.names[node] == "ol":
        start = walker.page.attribute(node, "start") if walker.page.data[node] else ""
        walker.lists.append([int(start) if start.isdecimal() and len(start) < 10 else 1])
    else:
        walker.lists.append([-1])
    walker.close_at(node, lambda: close_list(walker))
    return node + 1


def close_list(walker: Walker) -> None:
    walker.lists.pop()
    walker.lines.flush(1 if walker.lists else 2)


def item(walker: Walker, node: int) -> int:
    lines = walker.lines
    lines.flush()
    if walker.in_cell:
        walker.close_at(node, lines.flush)
        return node + 1
    marker = "- "
    if walker.lists:
        counter = walker.lists[-1]
        if counter[0] >= 0:
            value = walker.page.attribute(node, "value") if walker.page.data[node] else ""
            if value.isdecimal() and len(value) < 10:
                counter[0] = int(value)
            marker = f"{counter[0]}. "
            counter[0] += 1
    lines.push(marker, " " * len(marker))
    walker.close_at(node, lambda: end_item(walker))
    return node + 1


def end_item(walker: Walker) -> None:
    walker.lines.flush()
    walker.lines.pop()
    walker.lines.gap = 1


def definitions(walker: Walker, node: int) -> int:
    walker.lines.flush(2)
    walker.terms.append(False)
    walker.close_at(node, lambda: end_definitions(walker))
    return node + 1


def end_definitions(walker: Walker) -> None:
    walker.terms.pop()
    walker.lines.flush(2)


def term(walker: Walker, node: int) -> int:
    if walker.terms:
        walker.terms[-1] = True
    return block(walker, node)


def definition(walker: Walker, node: int) -> int:
    lines = walker.lines
    lines.flush()
    if walker.in_cell or not walker.terms or not walker.terms[-1]:
        walker.close_at(node, lines.flush)
    else:
        lines.gap = min(lines.gap, 1)
        lines.push(": " if walker.rendering.markup else "  ", "  ")
        walker.close_at(node, lambda: end_item(walker))
    return node + 1
