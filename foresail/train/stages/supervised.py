"""One supervised run: the loop under SFT, pretraining, preferences from files, and reward models.

    def open_data(session): …                 # reads the data; what it returns draws and measures
    run_supervised(recipe, open_data, update, resume=False)

Each step draws data, learns from them on all ranks, measures what is due, logs and saves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from foresail.model.determinism import deterministic
from foresail.records import PackedBatch
from foresail.train.auxiliary.expert_load import balance_experts
from foresail.train.checkpoints.checkpoint import Progress
from foresail.train.ranks.launch import open_ranks, placed
from foresail.train.session import Outcome, Session
from foresail.train.stopwatch import Stopwatch
from foresail.train.trainer import Recipe, Trainer
from foresail.train.update.split import balance_metrics
from foresail.train.update.step import LossOfBatch, prefixed, train_step

Metrics = dict[str, float]


@dataclass(frozen=True, kw_only=True)
class StepData:
    """What a step learns from: the arguments of its update, and the run's progress once it is done."""

    arguments: tuple[Any, ...]
    rate: float
    tokens: int
    progress: Progress


class TrainingData(Protocol):
    """A stage's data: drawn for each step, and measured."""

    def draw(self, step: int) -> StepData | None:
        """None where too little is left for the step: the run ends, or goes on with the next stage's data."""

    def measure(self, data: StepData, metrics: Mapping[str, float], watch: Stopwatch) -> Metrics:
        """Metrics besides the update's, which are `metrics`."""


def run_supervised(
    recipe: Recipe,
    open_data: Callable[[Session[Recipe]], TrainingData],
    update: Callable[..., Metrics],
    *,
    resume: bool,
) -> Outcome:
    """`update(trainer, *arguments, rate)` runs on every rank, and is a module's function."""
    with (
        deterministic(recipe.run.deterministic),
        placed(recipe),
        open_ranks(recipe.cluster, recipe.run) as world,
        Session(recipe, resume=resume, world=world) as session,
    ):
        session.display.begin("reading the data")
        supply = open_data(session)
        for step in session.steps():
            watch = Stopwatch()
            if (data := supply.draw(step)) is None:
                continue
            session.display.begin("update", span=(0.0, 1.0))
            with watch("update"):
                metrics = session.on_all_ranks(update, *data.arguments, data.rate)
            metrics |= {"train/lr": data.rate, "train/tokens": data.tokens}
            metrics["perf/throughput"] = data.tokens / watch.seconds["update"]
            metrics |= supply.measure(data, metrics, watch)
            session.end_step(data.progress, metrics | watch.metrics())
    return session.outcome


def learn(
    trainer: Trainer[Any], batches: Sequence[PackedBatch], loss: LossOfBatch, *, rate: float, done: float
) -> Metrics:
    """One update of the policy with this rank's micro-batches. `done`, 0 to 1: the run's progress before it."""
    balance_experts(trainer.policy.model, trainer.recipe.router, done)
    metrics = train_step(trainer.policy, batches, loss, learning_rate=rate)
    renamed = {"train/loss": metrics.pop("loss"), **prefixed("actor", metrics)}
    return renamed | balance_metrics([batches], trainer.world)
