"""Rows of a mixture of corpora, drawn by weight, and the place of each corpus after them.

    rows, places = draw_rows(supplies, places, first=row_number, count=32)

A row's corpus follows from the row's number alone. After any number of rows each corpus has had its share, give or
take one or two. A corpus that has had all its epochs is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from foresail.data.corpus.windows import CorpusPlace, PackedRow, Windows
from foresail.data.selection.launch_order import choose

GOLDEN = 0x9E3779B97F4A7C15  # of 2^64: multiples of it are spread more evenly than those of any other number


@dataclass(frozen=True, kw_only=True)
class CorpusSupply:
    """One corpus's share of a stage's rows."""

    windows: Windows
    weight: float
    epochs: int | None

    @property
    def name(self) -> str:
        return self.windows.name

    @property
    def form(self) -> tuple[int, int]:
        """Supplies with the same name and form have the same windows: rows of one length, of as many documents."""
        return self.windows.length, self.windows.corpus.num_documents

    def has_more(self, place: CorpusPlace) -> bool:
        return self.epochs is None or place.document < self.epochs * self.windows.corpus.num_documents

    def take(self, place: CorpusPlace) -> tuple[PackedRow, CorpusPlace]:
        window = self.windows.at(place.document)
        row = window.rows[place.row]
        after = place.row + 1
        return row, CorpusPlace(window.stop, 0) if after == len(window.rows) else CorpusPlace(
            place.document, after
        )

    def epochs_done(self, place: CorpusPlace) -> float:
        """Passes over its documents so far; within a window they count by its rows that were taken."""
        count, documents = self.windows.corpus.num_documents, float(place.document)
        if place.row:
            window = self.windows.at(place.document)
            documents += place.row / len(window.rows) * (window.stop - window.start)
        return documents / count

    def leave_window(self, place: CorpusPlace) -> tuple[CorpusPlace, int]:
        """For a stage of another form: the place after the current window, and that window's tokens not yet taken.

        They come again in the next epoch.
        """
        if not place.row:
            return place, 0
        window = self.windows.at(place.document)
        return CorpusPlace(window.stop, 0), sum(row.num_tokens for row in window.rows[place.row :])


def draw_rows(
    supplies: Sequence[CorpusSupply], places: Mapping[str, CorpusPlace], *, first: int, count: int
) -> tuple[list[PackedRow], dict[str, CorpusPlace]]:
    """`count` rows, of which the first is the `first`-th of its stage; fewer where all corpora have ended."""
    after = {supply.name: places.get(supply.name, CorpusPlace()) for supply in supplies}
    rows: list[PackedRow] = []
    for number in range(first, first + count):
        live = [supply for supply in supplies if supply.has_more(after[supply.name])]
        if not live:
            break
        supply = live[choose([supply.weight for supply in live], golden_fraction(number))]
        row, after[supply.name] = supply.take(after[supply.name])
        rows.append(row)
    return rows, {**places, **after}


def golden_fraction(number: int) -> float:
    """In [0, 1): golden_fraction(0) -> 0, golden_fraction(1) -> 0.618…, golden_fraction(2) -> 0.236…"""
    return ((number * GOLDEN) % 2**64 >> 11) * 2.0**-53
