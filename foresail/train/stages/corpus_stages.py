"""The position of a pretraining run in its corpora: the rows of an update, and each corpus's next place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from foresail.data.corpus.draw import CorpusSupply, draw_rows
from foresail.data.corpus.length_view import CorpusSource
from foresail.data.corpus.windows import CorpusPlace, PackedRow, Windows
from foresail.recipe.stages.pretrain import Pretrain
from foresail.recipe.stages.pretrain_stage import Where, locate, rows_per_update
from foresail.train.checkpoints.checkpoint import Progress

Supplies = list[CorpusSupply]


def stage_supplies(recipe: Pretrain, sources: Sequence[Sequence[CorpusSource]], number: int) -> Supplies:
    length, seed = recipe.stages[number].length, recipe.run.seed
    return [
        CorpusSupply(
            windows=Windows(source.label, source.documents, length=length, seed=seed),
            weight=source.weight,
            epochs=source.epochs,
        )
        for source in sources[number]
    ]


class DrawnRows(NamedTuple):
    """The rows of an update, none where the run ends, and each corpus's place after them.

    `left`: tokens in windows that were packed for the stage before, whose rows no longer fit.
    """

    where: Where
    rows: list[PackedRow]
    places: dict[str, CorpusPlace]
    left: int


def draw_update(recipe: Pretrain, stages: Sequence[Supplies], progress: Progress) -> DrawnRows:
    """The update after this progress; no rows where the run's tokens, or the epochs of its corpora, end."""
    where = locate(recipe.stages, progress.position)
    if where.stage == len(stages):
        return DrawnRows(where, [], {}, 0)
    stage = recipe.stages[where.stage]
    places, untaken = enter_stage(stages, where, read_places(progress))
    count = rows_per_update(stage, where.done)
    rows, places = draw_rows(stages[where.stage], places, first=where.done // stage.length, count=count)
    return DrawnRows(where, rows if len(rows) == count else [], places, untaken)


def enter_stage(
    stages: Sequence[Supplies], where: Where, places: Mapping[str, CorpusPlace]
) -> tuple[dict[str, CorpusPlace], int]:
    """Each corpus's place, and the tokens in windows that no longer fit. Only a stage's first update changes
    either.
    """
    after, untaken = dict(places), 0
    if where.done or not where.stage:
        return after, untaken
    goes_on = {(supply.name, supply.form) for supply in stages[where.stage]}
    for supply in stages[where.stage - 1]:
        if (supply.name, supply.form) not in goes_on:
            after[supply.name], tokens = supply.leave_window(after[supply.name])
            untaken += tokens
    return after, untaken


def read_places(progress: Progress) -> dict[str, CorpusPlace]:
    return {name: CorpusPlace(document, progress.rows[name]) for name, document in progress.places.items()}


def with_places(progress: Progress, places: Mapping[str, CorpusPlace]) -> Progress:
    return replace(
        progress,
        places={name: place.document for name, place in places.items()},
        rows={name: place.row for name, place in places.items()},
    )


def advance(
    progress: Progress, step: int, rows: Sequence[PackedRow], places: Mapping[str, CorpusPlace], tokens: int
) -> Progress:
    learned = dict(progress.tokens)
    for row in rows:
        learned[row.source] = learned.get(row.source, 0) + row.num_tokens
    progress = with_places(progress, places)
    return replace(progress, step=step, updates=step, position=progress.position + tokens, tokens=learned)
