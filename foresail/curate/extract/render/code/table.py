"""Code that stands in a table: a column of line numbers, and one of lines, or of all lines together."""

from __future__ import annotations

import re

from foresail.curate.extract.page import Page
from foresail.curate.extract.render.code.text import NUMBER, NUMBERS, code_text
from foresail.curate.extract.render.table import Table

CODE_CLASS = re.compile(
    r'class="[^"]*(?:highlight|code|hljs|blob|syntax|crayon|diff|rouge|chroma|\bsrc\b|u-pre|monospace)'
    r"|white-space: ?pre",
    re.IGNORECASE,
)


def code_table(page: Page, node: int, table: Table) -> str | None:
    """The code of a table with a column of line numbers; None where it is no such table."""
    if not table.rows or table.holds_tables or max(map(len, table.rows)) > 8:
        return None
    lines: list[str] = []
    numbered = 0
    is_code = is_code_element(page, node)
    for row in table.rows:
        cells = [cell for cell in row if not is_number_cell(page, cell)]
        if len(row) > 4 or (
            len(cells) > 1 and "colspan" in page.data[row[0]]
        ):  # who changed the line, and when
            cells = cells[-1:]
        numbered += len(cells) < len(row)
        for cell in cells:
            is_code = is_code or is_code_element(page, cell)
            lines.append(code_text(page, cell))
        if not cells:
            lines.append("")
    if not is_code or 2 * numbered <= len(table.rows):
        return None
    code = "\n".join(lines).strip("\n").rstrip()
    everything = sum(len(page.text(cell).strip()) for row in table.rows for cell in row)
    # a table of layout with empty cells in columns, and code somewhere in it
    return code if 4 * len(code) >= everything > 0 else None


def is_code_element(page: Page, node: int) -> bool:
    parent = page.parents[node]
    return (
        CODE_CLASS.search(page.data[node]) is not None
        or (
            parent > 0
            and (CODE_CLASS.search(page.data[parent]) is not None or page.names[parent] in ("pre", "code"))
        )
        or not {"pre", "code"}.isdisjoint(page.names[node + 1 : page.ends[node]])
    )


def is_number_cell(page: Page, cell: int) -> bool:
    """Its class says so, or it holds nothing but consecutive numbers."""
    text = page.text(cell)
    if NUMBERS.fullmatch(text) is None:
        return False
    if NUMBER.search(page.data[cell]):
        return True
    numbers = text.split()
    if not numbers or not all(number.isdecimal() and len(number) < 8 for number in numbers):
        return False
    start = int(numbers[0])
    return numbers == [str(number) for number in range(start, start + len(numbers))]
