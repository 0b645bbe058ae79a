"""Headers, footers and page numbers: what stands at the same height at the edge of several pages.

drop_repeats([[…, Segment("Journal of Ships 12", …)], [Segment("Journal of Ships 13", …), …], …]) -> without them
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from foresail.curate.extract.pdf.glyphs import Segment

EDGE_LINES = 2  # at the top and at the bottom
EDGE = 0.15  # of the page's height
MIN_PAGES = 3
DIGITS = re.compile(r"\d+")
ROMAN = re.compile(r"\b[ivxlc]{1,7}\b")
PAGE = "page|p|seite|página|halaman|muka surat|trang|หน้า|第"
NUMBER = re.compile(rf"[\W_]*(?:(?:{PAGE})\W*)?#(?:\W*(?:of|von|de|dari|页)?\W*#?)[\W_]*")

Key = tuple[str, int, bool]  # its text without digits, its height on the page in percent, whether at the top


def drop_repeats(pages: Sequence[Sequence[Segment]], heights: Sequence[float]) -> list[list[Segment]]:
    edges = [edge_rows(page, height) for page, height in zip(pages, heights, strict=True)]
    counts: Counter[Key] = Counter()
    for rows in edges:
        counts.update({key for near, _ in rows for key in near})
    pages_needed = min(MIN_PAGES, max(2, len(pages)))
    return [
        without(page, [row for near, row in rows if repeats(near, counts, pages_needed, len(pages))])
        for page, rows in zip(pages, edges, strict=True)
    ]


def repeats(near: Sequence[Key], counts: Counter[Key], pages_needed: int, num_pages: int) -> bool:
    text, height, at_top = near[0]
    if NUMBER.fullmatch(text) and (num_pages == 1 and not at_top and height >= 92):
        return True
    needed = 2 if NUMBER.fullmatch(text) else pages_needed
    return max(counts[key] for key in near) >= needed


def edge_rows(page: Sequence[Segment], height: float) -> list[tuple[list[Key], set[int]]]:
    """Each with the keys of its own height and of those beside it, and the numbers of its segments."""
    if height <= 0 or not page:
        return []
    order = sorted(range(len(page)), key=lambda n: page[n].middle)
    rows: list[list[int]] = []
    for n in order:
        if rows and abs(page[n].middle - page[rows[-1][0]].middle) < 0.5 * page[n].height:
            rows[-1].append(n)
        else:
            rows.append([n])
    edges = []
    for at_top, chosen in ((True, rows[:EDGE_LINES]), (False, rows[-EDGE_LINES:])):
        for row in chosen:
            place = page[row[0]].middle / height
            if (place < EDGE) if at_top else (place > 1 - EDGE):
                text = " ".join(page[n].text for n in sorted(row, key=lambda n: page[n].left))
                text = ROMAN.sub("#", DIGITS.sub("#", text.lower().strip()))
                percent = round(100 * place)
                edges.append(([(text, percent + by, at_top) for by in (0, -1, 1)], set(row)))
    return edges


def without(page: Sequence[Segment], rows: Sequence[set[int]]) -> list[Segment]:
    dropped = set().union(*rows)
    return [segment for n, segment in enumerate(page) if n not in dropped]
