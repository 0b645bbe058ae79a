"""What a document leaks of the benchmarks: its exact n-grams first, then those with masked names.

    LeakSearch(benchmarks=…, n=13, …).open()(document)
        -> [Leak(place="gsm8k:17", share=.82, text="she sells …", renamed=False)]

The indexes are built once in a process, when its first document needs them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache, lru_cache
from math import ceil
from pathlib import Path
from typing import Any, Literal

from foresail.curate.decontaminate.benchmark import Benchmark, read_benchmark
from foresail.curate.decontaminate.build import RowTexts, build_index
from foresail.curate.decontaminate.grams import Grams
from foresail.curate.decontaminate.index import Index, Match
from foresail.curate.decontaminate.tokens import Masks
from foresail.curate.document import Document
from foresail.curate.rows.part import RowPart, part_texts
from foresail.curate.rows.row import MESSAGES

N, N_OF_PROBLEMS = 16, 13
CHARACTERS_PER_WORD = 1.5  # of Han in the place of a word
LONGEST_TEXT = 240  # characters of an n-gram that is shown
MOST_LEAKS = 1000  # rows of one document that are counted
Renamed = Literal["no", "names", "numbers"]
MASKS: dict[Renamed, Masks | None] = {
    "no": None,
    "names": Masks(names=True),
    "numbers": Masks(names=True, numbers=True),
}


@dataclass(frozen=True)
class Leak:
    """`place`: file and row, from 1; `share`: of the row's n-grams; `text`: as it stands in the document."""

    place: str
    share: float
    text: str
    renamed: bool

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class LeakSearch:
    """What the step says."""

    benchmarks: tuple[Benchmark, ...]
    n: int
    n_characters: int
    least: int
    share: float
    renamed: Renamed
    renamed_share: float
    part: RowPart

    def open(self) -> Callable[[Document], list[Leak]]:
        masks = MASKS[self.renamed]

        @cache
        def load(n: int) -> tuple[list[str], Index, Index | None]:
            places, index = self.load(n, Masks())
            return places, index, None if masks is None else self.load(n, masks)[1]

        def search(document: Document) -> list[Leak]:
            is_problem = document.row is not None and MESSAGES not in document.row
            return self.leaks(document, *load(self.n or (N_OF_PROBLEMS if is_problem else N)))

        return search

    def load(self, n: int, masks: Masks) -> tuple[list[str], Index]:
        versions = tuple(Path(benchmark.path).stat().st_mtime_ns for benchmark in self.benchmarks)
        grams = Grams(n, self.n_characters or ceil(n * CHARACTERS_PER_WORD), self.least)
        return load_index(self.benchmarks, grams, masks, versions)

    def unsearched(self) -> list[str]:
        """Places of rows that no document can leak: they have no text, or a single word."""
        places, index = self.load(self.n or N_OF_PROBLEMS, Masks())
        return [places[row] for row in index.unsearched]

    def leaks(self, document: Document, places: list[str], index: Index, masked: Index | None) -> list[Leak]:
        texts = part_texts(document, self.part)
        text = "\n\n".join(texts)
        matches = [match for match in index.find(text) if match.share >= self.share]
        matches += [match for part in texts for match in index.find_alone(part)]
        leaks = {match.row: leak_of(match, places, False) for match in matches}
        for match in masked.find(text) if masked is not None else ():
            if match.share >= self.renamed_share and match.row not in leaks:
                leaks[match.row] = leak_of(match, places, True)
        return [*leaks.values()][:MOST_LEAKS]


def leak_of(match: Match, places: list[str], renamed: bool) -> Leak:
    text = " ".join(match.text.split())
    shown = text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"
    return Leak(places[match.row], round(match.share, 4), shown, renamed)


@lru_cache(8)
def load_index(
    benchmarks: tuple[Benchmark, ...], grams: Grams, masks: Masks, versions: tuple[int, ...]
) -> tuple[list[str], Index]:
    """The place of each row, and the index of all."""
    places: list[str] = []
    rows: list[RowTexts] = []
    for file, benchmark in enumerate(benchmarks):
        for row in read_benchmark(benchmark):
            rows.append(RowTexts(file, row.texts, row.parts))
            places.append(row.place)
    return places, build_index(rows, grams, masks)
