"""The corpus step `decontaminate`: drops what has a stretch of words in common with rows of benchmarks.

    [[step]]
    name = "decontaminate"
    against = ["gsm8k/test.jsonl.gz", {path = "mgsm/th.tsv.xz", columns = ["1"]}]
    renamed = "names"             # also rows told with other names

Dropped: leaked, renamed. The detail shows the words, and of which row they are. The report counts, for each
benchmark file, how many of its rows were leaked and by how many documents, and rows too short to look for.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, Strict

from foresail.curate.decontaminate.benchmark import Benchmark, benchmark_files
from foresail.curate.document import Document, Drop
from foresail.curate.rows.holds import ANY, Holds
from foresail.curate.rows.part import PART, RowPart
from foresail.curate.step import Outcome
from foresail.recipe.tables.part import CheckedPart

if TYPE_CHECKING:
    from foresail.curate.decontaminate.search import Leak, LeakSearch

SHOWN = 3  # rows in a detail


def as_tables(value: Any) -> Any:
    """A text stands for a table with this path."""
    entries = [value] if isinstance(value, str | dict) else value
    if not isinstance(entries, list | tuple):
        return entries
    return [{"path": entry} if isinstance(entry, str) else entry for entry in entries]


class Decontaminate(CheckedPart):
    """Drops what has n words in a row from a benchmark file, and says which row."""

    takes: ClassVar[Holds] = ANY

    against: Annotated[tuple[Benchmark, ...], Strict(False), BeforeValidator(as_tables)] = Field(
        min_length=1, description="benchmark files; a text is a path or a pattern, a table says more"
    )
    n: int = Field(0, ge=0, le=100, description="words in a row; 0: 16, and 13 for problems")
    n_characters: int = Field(
        0,
        ge=0,
        le=200,
        description="characters in a row where no spaces stand between words: Han, kana; twice as many of Thai, "
        "Lao, Khmer and Myanmar; 0: 1.5 × n",
    )
    least: int = Field(
        8, ge=2, le=100, description="words of the shortest row that is looked for within a longer text"
    )
    share: float = Field(
        0.0, ge=0, le=1, description="of a row's n-grams, which a document must have; 0: one of them"
    )
    renamed: Literal["no", "names", "numbers"] = Field(
        "no",
        description="names: also where capitalised names and pronouns differ; numbers: names and numbers differ",
    )
    renamed_share: float = Field(0.2, ge=0, le=1, description="as share, where names or numbers differ")
    part: RowPart = Field("all", description=PART)
    keep: Literal["clean", "all"] = Field(
        "clean", description="clean: what leaks is dropped; all: it stays, with leaks in its metadata"
    )

    def mistakes(self) -> Iterator[str]:
        try:
            names = [benchmark.short_name for benchmark in benchmark_files(self.against)]
        except ValueError as error:
            yield str(error)
            return
        yield from (
            f"against: two files have the name {name}; write name for one of them"
            for name in sorted({name for name in names if names.count(name) > 1})
        )

    @cached_property
    def benchmarks(self) -> tuple[Benchmark, ...]:
        """One for each file, all with a name."""
        return tuple(benchmark_files(self.against))

    def files(self) -> list[str]:
        return [benchmark.path for benchmark in self.benchmarks]

    def preflight(self) -> None:
        from foresail.curate.decontaminate.benchmark import read_benchmark

        for benchmark in self.benchmarks:
            read_benchmark(benchmark)

    def collect(self, documents: Iterable[Document], features: Path) -> None:
        search = self.open_search()
        leaks = {}
        for number, document in enumerate(documents):
            if named := search(document):
                leaks[number] = {"id": document.id, "leaks": [leak.as_json() for leak in named]}
        features.write_text(json.dumps(leaks, ensure_ascii=False), encoding="utf-8", errors="replace")

    def open_search(self) -> Callable[[Document], list[Leak]]:
        return self.leak_search().open()

    def leak_search(self) -> LeakSearch:
        from foresail.curate.decontaminate.search import LeakSearch

        return LeakSearch(
            benchmarks=self.benchmarks,
            n=self.n,
            n_characters=self.n_characters,
            least=self.least,
            share=self.share,
            renamed=self.renamed,
            renamed_share=self.renamed_share,
            part=self.part,
        )

    def decide(self, features: Sequence[Path], decisions: Sequence[Path], scratch: Path) -> dict[str, Any]:
        from foresail.curate.decontaminate.benchmark import read_benchmark

        names = [benchmark.short_name for benchmark in self.benchmarks]
        leaked: dict[str, set[str]] = {name: set() for name in names}
        counts: Counter[str] = Counter()
        documents = 0
        for collected, decided in zip(features, decisions, strict=True):
            content = collected.read_text(encoding="utf-8")
            decided.write_text(content, encoding="utf-8")
            for entry in json.loads(content).values():
                documents += 1
                places = [leak["place"] for leak in entry["leaks"]]
                for place in places:
                    leaked[file_of(place)].add(place)
                counts.update({*map(file_of, places)})
        rows = [len(read_benchmark(benchmark)) for benchmark in self.benchmarks]
        unsearched = Counter(file_of(place) for place in self.leak_search().unsearched())
        return {"leaking_documents": documents} | {
            name: {
                "rows": size,
                "leaked_rows": len(leaked[name]),
                "documents": counts[name],
                "unsearched_rows": unsearched[name],
            }
            for name, size in zip(names, rows, strict=True)
        }

    def open(self, decisions: Path) -> Callable[[int, Document], Outcome]:
        leaks = json.loads(decisions.read_text(encoding="utf-8"))

        def apply(number: int, document: Document) -> Outcome:
            entry = leaks.get(str(number))
            if entry is None:
                return document
            if entry["id"] != document.id.encode(errors="replace").decode():
                raise ValueError(
                    f"{decisions} decides on {entry['id']} as number {number}, not on {document.id}"
                )
            if self.keep == "all":
                places = [leak["place"] for leak in entry["leaks"]]
                return replace(document, metadata=document.metadata | {"leaks": places})
            return Drop("renamed" if entry["leaks"][0]["renamed"] else "leaked", detail_of(entry["leaks"]))

        return apply


def file_of(place: str) -> str:
    """file_of("gsm8k:17") -> "gsm8k"."""
    return place.rpartition(":")[0]


def detail_of(leaks: Sequence[dict[str, Any]]) -> str:
    """gsm8k:17 (0.82 of its n-grams): "she sells the remainder …" """
    shown = [
        f'{leak["place"]} ({leak["share"]:.2f} of its n-grams): "{leak["text"]}"' for leak in leaks[:SHOWN]
    ]
    return "; ".join(shown) + (f"; and {len(leaks) - SHOWN} other rows" if len(leaks) > SHOWN else "")
