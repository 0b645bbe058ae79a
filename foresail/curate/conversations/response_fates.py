"""What becomes of each response: decided over all rows, written by piece, applied to documents.

Texts are not in memory, and signatures only those of one query at a time. Legend as in `response_choice.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from foresail.curate.conversations.response_choice import choose, quality_ranks
from foresail.curate.deduplicate.blocks import Array, BlockWriter, read_blocks
from foresail.curate.deduplicate.candidates import copy_signatures
from foresail.curate.deduplicate.collected import Collected, id_check, names_of
from foresail.curate.deduplicate.groups import equal_groups
from foresail.curate.deduplicate.verdicts import (
    DecidedBlocks,
    name_of,
    own_numbers,
    read_name,
    scratch_array,
    write_names,
)
from foresail.curate.document import Document, Drop
from foresail.curate.step import Outcome


@dataclass(frozen=True, eq=False)
class Fates:
    """By row number."""

    responses_N: Array  # all that the query had
    different_N: Array  # without those that repeat another
    rank_N: Array  # 0: dropped
    first_N: Array  # the row whose response this one repeats, or itself

    @classmethod
    def of_single_responses(cls, count: int, scratch: Path) -> Fates:
        def ones(name: str) -> Array:
            column = scratch_array(scratch / name, count, np.int64)
            column[:] = 1
            return column

        return cls(ones("responses"), ones("different"), ones("rank"), own_numbers(scratch / "first", count))


def decide_responses(
    features: Sequence[Path],
    decisions: Sequence[Path],
    scratch: Path,
    *,
    limit: int,
    quality_weight: float,
    memory: int,
) -> dict[str, Any]:
    """`memory`: bytes for sorting."""
    collected = Collected.open(features)
    fates = Fates.of_single_responses(collected.documents, scratch)
    settle_queries(collected, fates, scratch, limit, quality_weight, memory)
    write_fates(collected, fates, decisions, scratch)
    return figures(fates, limit)


def settle_queries(
    collected: Collected, fates: Fates, scratch: Path, limit: int, quality_weight: float, memory: int
) -> None:
    """Goes twice through the queries: the first time to know whose names and signatures are needed."""

    def keys() -> Any:
        for start, block in collected.blocks():
            yield block["keys"], np.arange(start, start + len(block["keys"]))

    is_needed_N = scratch_array(scratch / "needed", collected.documents, np.uint8)
    with BlockWriter(scratch / "queries") as file:
        for numbers, starts in equal_groups(keys, collected.documents, memory, scratch / "groups"):
            is_needed_N[numbers] = 1
            file.add(numbers=numbers, starts=starts)
    places_N, slots_N = (
        scratch_array(scratch / name, collected.documents, np.int64) for name in ("at", "slots")
    )
    names = write_names(collected, is_needed_N, places_N, scratch / "needed_names")
    signatures_sP = copy_signatures(collected, is_needed_N, slots_N, scratch / "signatures")
    answers_N2, ranks_N = read_columns(collected)
    for block in read_blocks(scratch / "queries"):
        for begin, end in zip(block["starts"][:-1].tolist(), block["starts"][1:].tolist(), strict=True):
            numbers = np.array(block["numbers"][begin:end])
            own_names = [read_name(names, int(place)) for place in places_N[numbers]]
            ordered = better_first(numbers, ranks_N[numbers], own_names)
            different = without_repeated(ordered, answers_N2, fates.first_N)
            chosen = choose(ranks_N[different], signatures_sP[slots_N[different]], limit, quality_weight)
            fates.responses_N[numbers] = len(numbers)
            fates.different_N[numbers] = len(different)
            fates.rank_N[numbers] = 0
            fates.rank_N[different[chosen]] = np.arange(1, len(chosen) + 1)


def better_first(numbers_m: Array, ranks_m: Array, names: Sequence[bytes]) -> Array:
    """Row numbers by their rank of quality, then by id."""
    rows = zip((-ranks_m).tolist(), names, numbers_m.tolist(), strict=True)
    return np.array([number for _, _, number in sorted(rows)], np.int64)


def read_columns(collected: Collected) -> tuple[Array, Array]:
    """Keys of the answers, and ranks of the quality: some 50 bytes a row while they are sorted."""
    answers = [block["answers"] for _, block in collected.blocks()]
    numbers = [block["quality"] for _, block in collected.blocks()]
    if not answers:
        return np.zeros((0, 2), np.uint64), np.zeros(0)
    return np.concatenate(answers), quality_ranks(np.concatenate(numbers))


def without_repeated(ordered: Array, answers_N2: Array, first_N: Array) -> Array:
    """Rows whose answer none before them has; first_N gets whom the others repeat."""
    first_of: dict[tuple[int, ...], int] = {}
    for number in ordered.tolist():
        first_N[number] = first_of.setdefault(tuple(answers_N2[number].tolist()), number)
    return np.array([*first_of.values()], np.int64)


def write_fates(collected: Collected, fates: Fates, decisions: Sequence[Path], scratch: Path) -> None:
    is_repeated_N = scratch_array(scratch / "repeated", collected.documents, np.uint8)
    is_repeated_N[fates.first_N[fates.first_N != np.arange(collected.documents)]] = 1
    places_N = scratch_array(scratch / "places", collected.documents, np.int64)
    names = write_names(collected, is_repeated_N, places_N, scratch / "names")
    blocks = collected.blocks()
    for sizes, path in zip(collected.block_sizes, decisions, strict=True):
        with BlockWriter(path) as file:
            for _ in sizes:
                start, block = next(blocks)
                rows = slice(start, start + len(block["keys"]))
                firsts = fates.first_N[rows]
                repeats = [
                    b"" if first == number else read_name(names, int(places_N[first]))
                    for number, first in enumerate(firsts.tolist(), start)
                ]
                file.add(
                    checks=np.array([id_check(name) for name in names_of(block)], np.uint32),
                    responses=fates.responses_N[rows],
                    different=fates.different_N[rows],
                    ranks=fates.rank_N[rows],
                    is_repeat=firsts != np.arange(rows.start, rows.stop),
                    names=np.frombuffer(b"".join(repeats), np.uint8),
                    name_ends=np.cumsum([len(name) for name in repeats], dtype=np.int64),
                )


class Capped(DecidedBlocks):
    """Applies the decisions on a piece."""

    def __init__(self, path: Path, limit: int) -> None:
        super().__init__(path)
        self.limit = limit

    def __call__(self, n: int, document: Document) -> Outcome:
        block, number = self.find(n, document)
        rank, responses = int(block["ranks"][number]), int(block["responses"][number])
        if block["is_repeat"][number]:
            return Drop("same_response", f"repeats {name_of(block, number).decode()}")
        if not rank:
            different = int(block["different"][number])
            return Drop("over_limit", f"{self.limit} of {different} different responses stay")
        return replace(document, metadata=document.metadata | {"responses": responses, "response_rank": rank})


def figures(fates: Fates, limit: int) -> dict[str, Any]:
    """A query counts once: by the response that was chosen first."""
    is_first_N = fates.rank_N == 1
    repeated = int(np.count_nonzero(fates.first_N != np.arange(len(fates.first_N))))
    return {
        "conversations": len(fates.rank_N),
        "queries": int(is_first_N.sum()),
        "queries_over_limit": int(np.count_nonzero(is_first_N & (fates.different_N > limit))),
        "most_responses": int(fates.responses_N.max(initial=0)),
        "same_response": repeated,
        "over_limit": int(np.count_nonzero(fates.rank_N == 0)) - repeated,
    }
