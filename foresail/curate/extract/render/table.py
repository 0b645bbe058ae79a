"""Tables: which hold data, their cells as a grid, and the grid as Markdown.

[["a", "b"], ["1", "2"]]   ->   | a | b |
                                | --- | --- |
                                | 1 | 2 |
"""

from __future__ import annotations

from dataclasses import dataclass

from foresail.curate.extract.page import Page

BLOCKS = frozenset(
    "p div ul ol table pre blockquote h1 h2 h3 h4 h5 h6 section article dl form hr fieldset".split()
)
NO_DATA = frozenset("table pre h1 h2 h3 h4 h5 h6 form blockquote article section textarea".split())
MOST_COLUMNS = 200
LONG_CELL = 400  # characters, in the mean: paragraphs in columns are no data


@dataclass(frozen=True, slots=True)
class Table:
    rows: list[list[int]]
    caption: int | None
    is_data: bool
    holds_tables: bool


def read_table(page: Page, node: int) -> Table:
    names, data, ends = page.names, page.data, page.ends
    rows: list[list[int]] = []
    caption = None
    nested = headed = holds_tables = False
    texts = 0
    at, last = node + 1, ends[node]
    while at < last:
        name = names[at]
        if name == "tr":
            rows.append([])
        elif name == "td" or name == "th":
            if not rows:
                rows.append([])
            rows[-1].append(at)
            headed = headed or name == "th"
        elif name == "caption" and caption is None:
            caption = at
            at = ends[at]
            continue
        elif name in NO_DATA:
            nested = True
            if name == "table":
                holds_tables = True
                at = ends[at]
                continue
        elif not name:
            texts += len(data[at].strip())
        at += 1
    rows = [row for row in rows if row]
    widest = max(map(len, rows), default=0)
    cells = sum(map(len, rows))
    is_layout = 'role="presentation"' in data[node] or 'role="none"' in data[node]
    is_data = (
        not nested
        and not is_layout
        and widest > 1
        and (len(rows) > 1 or headed)
        and texts < LONG_CELL * cells
    )
    return Table(rows, caption, is_data, holds_tables)


def is_block_cell(page: Page, cell: int) -> bool:
    return any(page.names[at] in BLOCKS for at in range(cell + 1, page.ends[cell]))


def grid(page: Page, table: Table, texts: dict[int, str]) -> list[list[str]]:
    """A cell over several columns or rows has its text in the first, and empty ones after it."""
    lines: list[list[str]] = []
    below: dict[int, int] = {}  # column -> rows that a cell above still covers
    for row in table.rows:
        line: list[str] = []
        for cell in row:
            while below.get(len(line), 0) > 0:
                below[len(line)] -= 1
                line.append("")
            across, down = span(page, cell, "colspan"), span(page, cell, "rowspan")
            for column in range(len(line), min(len(line) + across, MOST_COLUMNS)):
                if down > 1:
                    below[column] = down - 1
            line += [texts[cell]] + [""] * (min(across, MOST_COLUMNS) - 1)
        while below.get(len(line), 0) > 0:
            below[len(line)] -= 1
            line.append("")
        lines.append(line)
    widest = max(map(len, lines), default=0)
    used = [column for column in range(widest) if any(column < len(line) and line[column] for line in lines)]
    return [[line[column] if column < len(line) else "" for column in used] for line in lines if any(line)]


def span(page: Page, cell: int, key: str) -> int:
    value = page.attribute(cell, key) if key in page.data[cell] else ""
    return max(1, min(int(value), MOST_COLUMNS)) if value.isdecimal() and len(value) < 6 else 1


def pipes(lines: list[list[str]]) -> list[str]:
    if not lines:
        return []
    rows = ["| " + " | ".join(line) + " |" for line in lines]
    return [rows[0], "|" + " --- |" * len(lines[0]), *rows[1:]]
