"""A run that learns preferences from files: DPO's pairs and KTO's answers.

    run_preferences(recipe, Objective(read=…, update=…, …), resume=False)

The two differ in their `Objective`: how data are read, the update, and what is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic

from foresail.data.length_limit import LengthLimit
from foresail.data.mixtures.reader import Reader
from foresail.data.preferences.mixture import (
    EncodedPreferences,
    Entry,
    PreferenceMixture,
    mix_preferences,
)
from foresail.data.selection.supply import open_supply
from foresail.recipe.stages.preference_stage import PreferenceStage, Preferring
from foresail.recipe.tables.sources import HeldOutPreferences
from foresail.train.auxiliary.mtp import mtp_at
from foresail.train.checkpoints.fingerprints import fingerprint_data
from foresail.train.optim.schedule import learning_rate
from foresail.train.references.reference import (
    FILE,
    CachedLogprobs,
    Logprobs,
    ask_reference,
    check_same,
    hold_reference,
    name_reference,
    release_reference,
)
from foresail.train.session import Outcome, Session
from foresail.train.stages.preference_supply import draw_entries, next_entries, report_left_out
from foresail.train.stages.supervised import StepData, learn, run_supervised
from foresail.train.stopwatch import Stopwatch
from foresail.train.trainer import Trainer
from foresail.train.update.split_answers import answer_batches
from foresail.train.update.step import Loss, token_loss

SCORED_AT_ONCE = 1024  # preferences, between two updates of the display


@dataclass(frozen=True, kw_only=True)
class Objective(Generic[Entry]):
    """What is particular to a stage. `update` and `measure` run on every rank, and are a module's functions."""

    read: Callable[[Reader], Callable[[HeldOutPreferences], EncodedPreferences[Entry]]]
    limit: Callable[[int], LengthLimit]
    texts: Callable[[Entry], Iterable[str]]  # for the data's fingerprint
    update: Callable[[Any, Sequence[Entry], float], dict[str, float]]
    measure: Callable[[Any, Sequence[Entry]], dict[str, float]]  # by metric, where {} is the set's name
    check: Callable[[Sequence[Entry]], None] = lambda entries: None  # raises where they can teach nothing
    # of an update or a held-out set: the entries, with further sequences that the loss compares
    complete: Callable[[Any, Sequence[Entry]], Sequence[Entry]] = lambda recipe, entries: entries


def run_preferences(
    recipe: PreferenceStage, objective: Objective[Entry], *, resume: bool, reader: Reader | None
) -> Outcome:
    """`reader` may have read the data already."""

    def open_data(session: Session[PreferenceStage]) -> PreferenceData[Entry]:
        return PreferenceData(session, objective, reader or Reader(session.tokenizer))

    return run_supervised(recipe, open_data, objective.update, resume=resume)


class PreferenceData(Generic[Entry]):
    """A run's training and held-out data, with the reference's cached log-probabilities."""

    def __init__(
        self, session: Session[PreferenceStage], objective: Objective[Entry], reader: Reader
    ) -> None:
        self.session, recipe = session, session.recipe
        self.objective: Objective[Entry] = objective
        mixture, held_out = read_preferences(session, objective, reader)
        self.mixture: PreferenceMixture[Entry] = mixture
        self.supply = open_supply(self.mixture.datasets, [None] * len(self.mixture.datasets), recipe.data)
        self.cached = self.prepare_reference([entry for of_set in held_out.values() for entry in of_set])
        self.held_out: dict[str, Sequence[Entry]] = {
            name: self.cached.fill(entries) for name, entries in held_out.items()
        }
        if session.saved is None and held_out and recipe.eval_every:
            session.log_start(self.measure_held_out())

    def prepare_reference(self, held_out: Sequence[Entry]) -> CachedLogprobs:
        """Cache its log-probabilities of all entries to come; without a cache it stays in memory."""
        session, recipe = self.session, self.session.recipe
        if not recipe.loss.needs_reference:
            return CachedLogprobs.of_nothing()
        if not recipe.reference.kept:
            checksum = session.on_all_ranks(hold_reference)
            check_same(name_reference(recipe), session.progress.reference, checksum)
            session.progress = replace(session.progress, reference=checksum)
            return CachedLogprobs.of_nothing()
        return cache_logprobs(session, [*self.entries_to_come(), *held_out])

    def entries_to_come(self) -> list[Entry]:
        """Those of the rest of the run, each once: a short run does not need all of a large file."""
        recipe, progress, entries = self.session.recipe, self.session.progress, self.mixture.entries
        to_come: dict[int | tuple[int, int], Entry] = {}
        while progress.step < recipe.steps:
            drawn, progress = draw_entries(self.supply, recipe, progress)
            if len(drawn) < recipe.batch_size:
                break
            completed = self.objective.complete(recipe, [entries[number] for number in drawn])
            for place, (number, entry) in enumerate(zip(drawn, completed, strict=True)):
                # a completed entry depends on its neighbours: each time it is another one
                to_come.setdefault(number if entry is entries[number] else (progress.step, place), entry)
        return list(to_come.values())

    def draw(self, step: int) -> StepData | None:
        session, recipe = self.session, self.session.recipe
        if (drawn := next_entries(session, self.supply)) is None:
            return None
        self.numbers, progress = drawn
        entries = self.objective.complete(recipe, [self.mixture.entries[number] for number in self.numbers])
        return StepData(
            arguments=(self.cached.fill(entries),),
            rate=learning_rate(step, recipe.steps, recipe.optimizer),
            tokens=sum(len(sequence.ids) for entry in entries for sequence in entry.answers),
            progress=progress,
        )

    def measure(self, data: StepData, metrics: Mapping[str, float], watch: Stopwatch) -> dict[str, float]:
        every = self.session.recipe.eval_every
        figures = source_metrics(self.mixture, self.numbers, self.session.recipe)
        if self.held_out and every and data.progress.step % every == 0:
            with watch("eval"):
                figures |= self.measure_held_out()
        return figures

    def measure_held_out(self) -> dict[str, float]:
        """{"val/loss/NAME": …} and what else the stage measures."""
        session, count, figures = self.session, len(self.held_out), dict[str, float]()
        for number, (name, entries) in enumerate(self.held_out.items()):
            session.display.begin("eval", span=(number / count, (number + 1) / count))
            of_set = session.on_all_ranks(self.objective.measure, entries)
            figures |= {metric.replace("{}", name): value for metric, value in of_set.items()}
        return figures


def read_preferences(
    session: Session[PreferenceStage], objective: Objective[Entry], reader: Reader
) -> tuple[PreferenceMixture[Entry], dict[str, Sequence[Entry]]]:
    """Training data, compared with the run's fingerprint, and held-out data by name."""
    recipe, read_source = session.recipe, objective.read(reader)
    limit = objective.limit(recipe.max_length)
    mixture = mix_preferences(recipe.data, read_source, limit)
    objective.check(mixture.entries)
    held_out = {
        source.label: objective.complete(recipe, mix_preferences([source], read_source, limit).entries)
        for source in recipe.eval
    }
    report_left_out(session, mixture)
    texts = (text for entry in mixture.entries for text in objective.texts(entry))
    named_sources = " and ".join(source.source for source in recipe.data)
    session.progress = fingerprint_data(session.progress, f"data {named_sources}", "answers", texts)
    return mixture, held_out


def cache_logprobs(session: Session[PreferenceStage], entries: Sequence[Entry]) -> CachedLogprobs:
    """The run folder's cache; all ranks compute what is missing."""
    cached, before = CachedLogprobs.open(session.run.path, session.recipe), session.progress.reference
    check_same(str(session.run.path / FILE), before, cached.checksum or before)
    missing = cached.missing(entries)
    if missing:
        checksum = session.on_all_ranks(hold_reference)
        logprobs: list[Logprobs] = []
        for start in range(0, len(missing), SCORED_AT_ONCE):
            part, share = missing[start : start + SCORED_AT_ONCE], start / len(missing)
            session.display.begin("reference", span=(share, share + len(part) / len(missing)))
            logprobs += session.on_all_ranks(ask_reference, part)
        session.on_all_ranks(release_reference)
        check_same(name_reference(session.recipe), before, checksum)
        cached = cached.add(missing, logprobs, checksum)
        cached.write(session.run.path)
    session.progress = replace(session.progress, reference=cached.checksum)
    return cached


# On every rank.


def learn_preferences(
    trainer: Trainer[Preferring], entries: Sequence[Entry], loss: Loss, rate: float
) -> dict[str, float]:
    """One optimiser update, of which this rank computes its share."""
    recipe: PreferenceStage = trainer.recipe
    batches = [*answer_batches(trainer, entries)]
    batch_loss = partial(token_loss, loss=loss, mtp=mtp_at(recipe.mtp, trainer.progress.step / recipe.steps))
    return learn(trainer, batches, batch_loss, rate=rate, done=(trainer.progress.updates + 1) / recipe.steps)


# What is logged.


def source_metrics(
    mixture: PreferenceMixture[Entry], drawn: Sequence[int], recipe: PreferenceStage
) -> dict[str, float]:
    """Entries of each source in the update, where there are several; and how many rows were left out."""
    metrics: dict[str, float] = {"data/dropped": sum(mixture.dropped.values())} if mixture.dropped else {}
    if mixture.unusable:
        metrics["data/unusable"] = sum(sum(by.values()) for by in mixture.unusable.values())
    if len(recipe.data) > 1:
        for source in recipe.data:
            metrics[f"train/{recipe.entries}/{source.label}"] = sum(
                mixture.datasets[index] == source.label for index in drawn
            )
    return metrics
