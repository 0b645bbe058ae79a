"""Documents into rows of one length: the longest first, each into the fullest row that still has room for it.

    best_fit([10, 3, 4, 2], room=6) -> four rows, of 6, of 4 + 2, of 4 and of 3 tokens

A document longer than a row is cut: all but its last stretch fill rows of their own.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Stretch(NamedTuple):
    """Tokens `start` to `stop` of a document; of those that were packed, the `document`-th."""

    document: int
    start: int
    stop: int


def best_fit(lengths: Sequence[int] | np.ndarray, room: int) -> list[list[Stretch]]:
    """Every token of every document stands in one row; a row has at most `room`."""
    full: list[list[Stretch]] = []
    rest: list[Stretch] = []
    for document, length in enumerate(map(int, lengths)):
        cut = length - length % room
        full += [[Stretch(document, start, start + room)] for start in range(0, cut, room)]
        if cut < length:
            rest.append(Stretch(document, cut, length))
    rest.sort(key=lambda stretch: stretch.start - stretch.stop)  # stable: of equal ones the first first
    rows: list[list[Stretch]] = []
    spaces: list[tuple[int, int]] = []  # what is left in a row, and its number; ascending
    for stretch in rest:
        size = stretch.stop - stretch.start
        place = bisect_left(spaces, (size, 0))
        if place < len(spaces):
            space, row = spaces.pop(place)
            rows[row].append(stretch)
        else:
            space, row = room, len(rows)
            rows.append([stretch])
        if space > size:
            insort(spaces, (space - size, row))
    return full + rows
