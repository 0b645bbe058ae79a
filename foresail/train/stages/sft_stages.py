"""The stages of supervised fine-tuning: each one's data, and the best conversations of an earlier stage.

A choice by a column of the rows is made at the start. A choice by the loss is made when the stage begins, with the
model of that step; checkpoints keep it, since a resumed run no longer has that model.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foresail.data.mixtures.mixture import ChatMixture, mix_conversations
from foresail.data.mixtures.reader import Reader
from foresail.data.mixtures.resampling import add_best, best_sources, choose_best, column_values
from foresail.data.selection.order import uniforms
from foresail.data.selection.supply import Supply, open_supply
from foresail.recipe.stages.sft import Sft
from foresail.recipe.tables.sources import Conversations
from foresail.records import TrainSequence
from foresail.train.learner import TRAINER
from foresail.train.trainer import Trainer
from foresail.train.update.scoring import scorer

CHOSEN = "resampled.json"
SCORED_AT_ONCE = 4096  # conversations


@dataclass(frozen=True, kw_only=True)
class StageData:
    """A stage's conversations and sources, including those of an earlier stage."""

    chats: ChatMixture
    sources: tuple[Conversations, ...]

    def supply(self) -> Supply:
        return open_supply(self.chats.datasets, [None] * len(self.chats.datasets), self.sources)


class SftStages:
    """`own[n]`: stage n's data without the conversations of an earlier stage, whose numbers are in `chosen`."""

    def __init__(self, recipe: Sft, reader: Reader) -> None:
        self.recipe = recipe
        self.own = [
            mix_conversations(phase.data, reader, phase.max_length) if phase.data else ChatMixture()
            for phase in recipe.phases
        ]
        self.chosen: dict[int, list[int]] = {}
        for number in range(len(recipe.phases)):
            again = recipe.resampled(number)
            if again is not None and not again[0].by_loss:
                earlier, sources = self.own[again[1]], recipe.phases[again[1]].data
                values = column_values(earlier, sources, again[0].best)
                self.chosen[number] = choose_best(earlier, values, again[0])
        self.held_out = self._held_out(reader)

    def _held_out(self, reader: Reader) -> dict[str, list[TrainSequence]]:
        """By name: what the sources hold out (in the first stage that has them), and held-out files."""
        held_out: dict[str, list[TrainSequence]] = {}
        for chats in reversed(self.own):
            held_out |= chats.held_out
        for log in self.recipe.held_out:
            held_out[log.label] = mix_conversations([log], reader, self.recipe.max_length).entries
        return held_out

    def texts(self) -> Iterator[str]:
        """For the data's fingerprint: all that decides the run's order and losses, a line a conversation."""
        for entries in (*(chats.entries for chats in self.own), *self.held_out.values()):
            yield from (f"{entry.ids} {entry.loss_mask}\n" for entry in entries)

    def choose(self, number: int, losses: Sequence[float]) -> None:
        again = self.recipe.resampled(number)
        assert again is not None
        self.chosen[number] = choose_best(self.own[again[1]], losses, again[0])

    def candidates(self, number: int) -> list[TrainSequence] | None:
        """An earlier stage's conversations to choose from by their losses; None if there is no choice to make."""
        again = self.recipe.resampled(number)
        return None if again is None or number in self.chosen else self.own[again[1]].entries

    def data(self, number: int) -> StageData:
        """The data of a stage, once its choice is made."""
        phase, stage_data, again = self.recipe.phases[number], self.own[number], self.recipe.resampled(number)
        if again is None:
            return StageData(chats=stage_data, sources=phase.data)
        settings, place = again
        earlier, sources = self.own[place], self.recipe.phases[place].data
        more = best_sources(sources, Counter(earlier.datasets), settings)
        chats = add_best(stage_data, earlier, self.chosen[number], max_length=phase.max_length)
        return StageData(chats=chats, sources=(*phase.data, *more))

    def seed(self, number: int) -> int:
        """The seed of a stage's order; the first stage has the run's."""
        seed = self.recipe.run.seed
        return int(uniforms("stage", seed, number)[0] * 2**53) if number else seed

    # The conversations chosen by their loss, in a checkpoint.

    def save(self, checkpoint: Path) -> None:
        by_loss = {number: chosen for number, chosen in self.chosen.items() if self._by_loss(number)}
        if by_loss:
            (checkpoint / TRAINER / CHOSEN).write_text(json.dumps(by_loss) + "\n", encoding="utf-8")

    def restore(self, checkpoint: Path | None) -> None:
        file = None if checkpoint is None else checkpoint / TRAINER / CHOSEN
        if file is not None and file.is_file():
            saved: dict[str, list[int]] = json.loads(file.read_text(encoding="utf-8"))
            self.chosen |= {int(number): chosen for number, chosen in saved.items()}

    def _by_loss(self, number: int) -> bool:
        again = self.recipe.resampled(number)
        return again is not None and again[0].by_loss


def mean_losses(trainer: Trainer[Any], sequences: Sequence[TrainSequence]) -> list[float]:
    """The mean loss of each one's tokens, on every rank; ranks compute a share each."""
    losses, score = list[float](), scorer(trainer, trainer.policy.model)
    for first in range(0, len(sequences), SCORED_AT_ONCE):
        scored = score(sequences[first : first + SCORED_AT_ONCE])
        losses += [-logprobs_T.double().nanmean().item() for logprobs_T in scored]
    return losses
