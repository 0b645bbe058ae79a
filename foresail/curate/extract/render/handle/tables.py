"""Tables of data, of code and of layout."""

from __future__ import annotations

from foresail.curate.extract.render.code.table import code_table
from foresail.curate.extract.render.handle.blocks import block
from foresail.curate.extract.render.handle.code import write_code
from foresail.curate.extract.render.table import grid, is_block_cell, pipes, read_table
from foresail.curate.extract.render.walker import Walker


def table(walker: Walker, node: int) -> int:
    page, lines = walker.page, walker.lines
    table = read_table(page, node)
    code = code_table(page, node, table)
    if code is not None:
        write_code(walker, code, node)
        return page.ends[node]
    lines.flush(2)
    if not table.is_data or walker.in_cell:
        walker.close_at(node, walker.end_paragraph)
        return node + 1
    if table.caption is not None and (text := walker.one_line(table.caption)):
        lines.emit([text])
        lines.flush(2)
    texts = {cell: walker.one_line(cell) for row in table.rows for cell in row}
    rows = grid(page, table, texts)
    if rows:
        lines.emit(pipes(rows) if walker.rendering.markup else ["\t".join(row).rstrip() for row in rows])
    lines.flush(2)
    return page.ends[node]


def layout_cell(walker: Walker, node: int) -> int:
    if is_block_cell(walker.page, node):
        return block(walker, node)
    walker.lines.add(" ")
    walker.close_at(node, lambda: walker.lines.add(" "))
    return node + 1
