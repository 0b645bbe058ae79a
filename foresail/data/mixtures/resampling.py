"""The best conversations of an earlier stage, drawn again in a later one beside its own.

Compass-v2 takes high-quality data of all domains into its second stage, so that it stays close to the first. The
best share of each source is taken, and sources keep the proportions that they had there.

    best_of([3.0, 1.0, 2.0], 0.5, least_first=True) -> [1, 2]
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from foresail.data.files import excerpt
from foresail.data.made.generators import names_generator
from foresail.data.mix import count
from foresail.data.mixtures.mixture import ChatMixture
from foresail.data.rows import read_rows
from foresail.recipe.stages.sft_stage import Resample
from foresail.recipe.tables.sources import Conversations


def best_of(values: Sequence[float], keep: float, *, least_first: bool) -> list[int]:
    """Numbers of the best share of these, at least one, in their own order; of equal ones the first."""
    sign = 1 if least_first else -1
    ranked = sorted(range(len(values)), key=lambda number: (sign * values[number], number))
    return sorted(ranked[: math.ceil(keep * len(values))])


def choose_best(chats: ChatMixture, values: Sequence[float], settings: Resample) -> list[int]:
    """Numbers of the entries to keep: the best share of every source's."""
    chosen: list[int] = []
    for label in dict.fromkeys(chats.datasets):
        members = [number for number, dataset in enumerate(chats.datasets) if dataset == label]
        best = best_of(
            [values[number] for number in members], settings.keep, least_first=settings.least_first
        )
        chosen += [members[number] for number in best]
    return sorted(chosen)


def column_values(chats: ChatMixture, sources: Sequence[Conversations], column: str) -> list[float]:
    """The column's value of each entry's row; an error if it is no number."""
    columns = {source.label: read_column(source, column) for source in sources}
    return [columns[label][row] for label, row in zip(chats.datasets, chats.rows, strict=True)]


def read_column(source: Conversations, column: str) -> list[float]:
    if names_generator(source.source):
        raise ValueError(f'{source.source} makes rows without a column {column}; set resample.best = "loss"')
    values = []
    for row in islice(read_rows(Path(source.source)), source.limit):
        value = row.columns.get(column)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ValueError(
                f'{row.place}: resample.best = "{column}" needs a number there, found {excerpt(value)}; fill it '
                'in, or set resample.best = "loss"'
            )
        values.append(float(value))
    return values


def add_best(
    own: ChatMixture, earlier: ChatMixture, chosen: Sequence[int], *, max_length: int
) -> ChatMixture:
    """Append the earlier stage's chosen entries to the stage's own, as source NAME-best.

    Those longer than this stage allows are dropped and counted.
    """
    fitting = [number for number in chosen if len(earlier.entries[number].ids) <= max_length]
    dropped = dict(own.dropped)
    for number in {*chosen} - {*fitting}:
        count(dropped, best_name(earlier.datasets[number]), 1)
    return replace(
        own,
        entries=[*own.entries, *(earlier.entries[number] for number in fitting)],
        datasets=[*own.datasets, *(best_name(earlier.datasets[number]) for number in fitting)],
        rows=[*own.rows, *(earlier.rows[number] for number in fitting)],
        dropped=dropped,
    )


def best_sources(
    sources: Sequence[Conversations], sizes: Mapping[str, int], settings: Resample
) -> list[Conversations]:
    """The earlier stage's sources with this stage's weight, split in the proportions of the earlier stage."""
    shares = [source.weight or float(sizes[source.label]) for source in sources]
    return [
        source.model_copy(
            update={
                "name": best_name(source.label),
                "weight": None if settings.weight is None else settings.weight * share / sum(shares),
                "epochs": settings.epochs,
            }
        )
        for source, share in zip(sources, shares, strict=True)
    ]


def best_name(label: str) -> str:
    return f"{label}-best"
