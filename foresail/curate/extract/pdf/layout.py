"""The reading order of a page: columns one after the other, what spans them in between, tables row by row.

reading_order(segments) -> [Line("A title across both columns", …), Line("first line of the left column", …), …]

A gutter is a place that many segments end before and many begin behind. Segments that cross it (titles, wide
figures) cut the page into bands; in each band the left side is read before the right one, and both may have gutters
of their own. Sides whose lines are short and lie beside each other are columns of a table, which is read by rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from foresail.curate.extract.pdf.glyphs import Segment

MAX_SEGMENTS = 5000  # of a page; beyond it, the order of the file
MAX_COLUMNS = 6  # cuts inside of cuts
MIN_LINES = 3  # on each side of a gutter
SHORT_LINE = 18  # characters: cells of tables, not lines of columns
TAB_GAP = 2.0  # between cells of one row, in line heights


class Line(NamedTuple):
    text: str
    left: float
    right: float
    top: float
    bottom: float
    size: float  # of its letters, in points
    block: int  # lines of one column follow each other in one block


def reading_order(segments: Sequence[Segment]) -> list[Line]:
    segments = without_upright(segments)
    if len(segments) > MAX_SEGMENTS:
        blocks: Iterator[Sequence[Segment]] = iter([[segment] for segment in segments])
    else:
        blocks = cut_columns([*enumerate(segments)], MAX_COLUMNS)
    return [line for number, block in enumerate(blocks) for line in make_lines(block, number)]


def without_upright(segments: Sequence[Segment]) -> list[Segment]:
    """Without text that runs up the margin: single letters above each other, as on the side of preprints."""
    upright = set()
    run: list[int] = []
    for number, segment in enumerate(segments):
        if run and len(segment.text) <= 2 and overlap_x(segment, segments[run[-1]]) > 0.5:
            run.append(number)
            continue
        if len(run) >= 6:
            upright |= set(run)
        run = [number] if len(segment.text) <= 2 else []
    if len(run) >= 6:
        upright |= set(run)
    return [segment for number, segment in enumerate(segments) if number not in upright]


def overlap_x(a: Segment, b: Segment) -> float:
    width = min(a.right - a.left, b.right - b.left)
    return (min(a.right, b.right) - max(a.left, b.left)) / width if width > 0 else 0.0


Numbered = tuple[int, Segment]  # its place in the file's order


def cut_columns(segments: list[Numbered], depth: int) -> Iterator[Sequence[Segment]]:
    """Blocks of one column each, in reading order."""
    bands = best_bands(segments) if depth > 0 and len(segments) >= 2 * MIN_LINES else None
    if bands is None:
        if segments:
            yield [segment for _, segment in segments]
        return
    flow: list[Numbered] = []
    for band in bands:
        if band.is_columns:
            if flow:
                yield [segment for _, segment in flow]
                flow = []
            yield from cut_columns(band.left, depth - 1)
            yield from cut_columns(band.right, depth - 1)
        else:
            flow += band.left + band.right
    if flow:
        # without this gutter: a band beside it may have another one
        yield from cut_columns(flow, depth - 1) if len(flow) < len(segments) else iter([[s for _, s in flow]])


class Band(NamedTuple):
    left: list[Numbered]
    right: list[Numbered]
    is_columns: bool


def best_bands(segments: list[Numbered]) -> list[Band] | None:
    """The bands of the gutter that has most text on both sides; None: there is one column."""
    size = median(segment.height for _, segment in segments)
    if size <= 0:
        return None
    best: tuple[float, list[Band]] | None = None
    for place in gutters(segments, size):
        bands = cut_bands(segments, place, size)
        score = sum(
            min(sum(s.height for _, s in band.left), sum(s.height for _, s in band.right))
            for band in bands
            if band.is_columns
        )
        if score > 0 and (best is None or score > best[0]):
            best = score, bands
    return best[1] if best is not None else None


def gutters(segments: list[Numbered], size: float) -> list[float]:
    """Places just left of where several segments begin, that several others end before."""
    begins: dict[int, list[float]] = {}
    for _, segment in segments:
        begins.setdefault(round(segment.left / size), []).append(segment.left)
    ends = sorted(segment.right for _, segment in segments)
    places = []
    for bucket in sorted(begins):
        lefts = begins[bucket] + begins.get(bucket + 1, [])
        place = min(lefts) - 0.2 * size
        if len(lefts) >= MIN_LINES and len(ends) >= MIN_LINES and ends[MIN_LINES - 1] < place:
            places.append(place)
    return places


def cut_bands(segments: list[Numbered], place: float, size: float) -> list[Band]:
    """Between segments that cross the gutter, from top to bottom; these are bands of their own."""
    bands: list[Band] = []
    left: list[Numbered] = []
    right: list[Numbered] = []
    for item in sorted(segments, key=lambda item: item[1].middle):
        if item[1].right <= place + 0.1 * size:
            left.append(item)
        elif item[1].left >= place:
            right.append(item)
        else:
            if left or right:
                bands.append(make_band(left, right, size))
                left, right = [], []
            bands.append(Band([item], [], False))
    if left or right:
        bands.append(make_band(left, right, size))
    return bands


def make_band(left: list[Numbered], right: list[Numbered], size: float) -> Band:
    tops, bottoms = zip(*(side_extent(side) for side in (left, right) if side), strict=True)
    enough = min(count_lines(left, size), count_lines(right, size)) >= MIN_LINES
    beside = enough and min(bottoms) - max(tops) > 0.3 * min(
        b - t for t, b in zip(tops, bottoms, strict=True)
    )
    return Band(left, right, beside and not is_table(left, right, size))


def side_extent(side: list[Numbered]) -> tuple[float, float]:
    return min(s.top for _, s in side), max(s.bottom for _, s in side)


def count_lines(side: list[Numbered], size: float) -> int:
    """Different heights on the page."""
    count, last = 0, float("-inf")
    for middle in sorted(segment.middle for _, segment in side):
        if middle - last > 0.5 * size:
            count, last = count + 1, middle
    return count


def is_table(left: list[Numbered], right: list[Numbered], size: float) -> bool:
    """Short lines beside each other, which the file writes row by row: cells."""
    chars = min(median(len(s.text) for _, s in side) for side in (left, right))
    if chars >= SHORT_LINE:
        return False
    few, many = sorted((left, right), key=len)
    beside = sum(any(abs(a.middle - b.middle) < 0.25 * size for _, b in many) for _, a in few)
    if beside < 0.7 * len(few):
        return False
    sides = [side for _, side in sorted([(n, 0) for n, _ in left] + [(n, 1) for n, _ in right])]
    changes = sum(a != b for a, b in pairwise(sides))
    return changes > 3  # an index of two columns changes sides once


def make_lines(block: Sequence[Segment], number: int) -> Iterator[Line]:
    """From top to bottom; segments of one height are one line."""
    rows: list[list[Segment]] = []
    for segment in sorted(block, key=lambda segment: segment.middle):
        if rows and is_beside(segment, rows[-1]):
            rows[-1].append(segment)
        else:
            rows.append([segment])
    for row in rows:
        row.sort(key=lambda segment: segment.left)
        parts = [row[0].text]
        for before, segment in pairwise(row):
            gap = segment.left - before.right
            parts.append(("\t" if gap > TAB_GAP * segment.height else " ") + segment.text)
        yield Line(
            "".join(parts),
            row[0].left,
            max(segment.right for segment in row),
            min(segment.top for segment in row),
            max(segment.bottom for segment in row),
            max(row, key=lambda segment: len(segment.text)).height,
            number,
        )


def is_beside(segment: Segment, row: list[Segment]) -> bool:
    """On the same line as the row: its middle lies inside the tallest of them."""
    tallest = max(row, key=lambda other: other.height)
    low, high = (segment, tallest) if segment.height < tallest.height else (tallest, segment)
    inside = high.top <= low.middle <= high.bottom and abs(low.middle - high.middle) < 0.45 * high.height
    return inside and all(
        min(segment.right, s.right) - max(segment.left, s.left) < 0.5 * segment.height for s in row
    )
