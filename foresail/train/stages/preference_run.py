"""A stage that learns preferences from files, under way: what it draws, the reference, measurements.

    run_preferences(recipe, Objective(read=…, update=…, …), resume=False)

Pairs and answers judged alone differ in their `Objective`: how they are read, what an update makes of them, what is
measured. All else is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic

from foresail.data.length_limit import LengthLimit
from foresail.data.mixtures.reader import Reader
from foresail.data.preferences.mixture import (
    EncodedPreferences,
    Entry,
    PreferenceMixture,
    mix_preferences,
)
from foresail.data.selection.supply import Supply, open_supply
from foresail.model.determinism import deterministic
from foresail.recipe.stages.preference_stage import PreferenceStage
from foresail.recipe.tables.sources import HeldOutPreferences
from foresail.train.checkpoints.checkpoint import Progress
from foresail.train.checkpoints.fingerprints import fingerprint_data
from foresail.train.optim.schedule import learning_rate
from foresail.train.ranks.launch import open_ranks, placed
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
from foresail.train.stopwatch import Stopwatch
from foresail.train.update.step import prefixed

SCORED_AT_ONCE = 1024  # preferences, between two looks at the display


@dataclass(frozen=True, kw_only=True)
class Objective(Generic[Entry]):
    """What a stage makes of its entries. `update` and `measure` run on every rank, and are a module's functions."""

    read: Callable[[Reader], Callable[[HeldOutPreferences], EncodedPreferences[Entry]]]
    limit: Callable[[int], LengthLimit]
    check: Callable[[Sequence[Entry]], None]  # raises where nothing could be learned from all of them
    complete: Callable[
        [Any, Sequence[Entry]], Sequence[Entry]
    ]  # of an update, with what else its loss asks about
    texts: Callable[[Entry], Iterable[str]]  # what data are known by
    update: Callable[[Any, Sequence[Entry], float], dict[str, float]]
    measure: Callable[[Any, Sequence[Entry]], dict[str, float]]  # by metric, where {} is the set's name


def run_preferences(
    recipe: PreferenceStage, objective: Objective[Entry], *, resume: bool, reader: Reader | None
) -> Outcome:
    """`reader`: has some of the data already."""
    with (
        deterministic(recipe.run.deterministic),
        placed(recipe),
        open_ranks(recipe.cluster, recipe.run) as world,
        Session(recipe, resume=resume, world=world) as session,
    ):
        session.display.begin("reading the data")
        mixture, held_out = read(session, objective, reader or Reader(session.tokenizer))
        supply = open_supply(mixture.datasets, [None] * len(mixture.datasets), recipe.data)
        kept = prepare_reference(session, objective, supply, mixture, held_out)
        held_out = {name: kept.fill(entries) for name, entries in held_out.items()}
        if session.saved is None and held_out and recipe.eval_every:
            session.log_start(measure(session, objective, held_out))
        for step in session.steps():
            watch = Stopwatch()
            if (next_step := next_entries(session, supply)) is None:
                continue
            drawn, progress = next_step
            batch = kept.fill(objective.complete(recipe, [mixture.entries[index] for index in drawn]))
            rate = learning_rate(step, recipe.steps, recipe.optimizer)
            session.display.begin("update", span=(0.0, 1.0))
            with watch("update"):
                found = session.on_all_ranks(objective.update, batch, rate)
            seen = sum(len(sequence.ids) for entry in batch for sequence in entry.answers)
            metrics = {**found, "train/lr": rate, "train/tokens": seen}
            metrics |= {"perf/throughput": seen / watch.seconds["update"]}
            metrics |= source_metrics(mixture, drawn, recipe)
            if held_out and recipe.eval_every and step % recipe.eval_every == 0:
                with watch("eval"):
                    metrics |= measure(session, objective, held_out)
            session.end_step(progress, metrics | watch.metrics())
    return session.outcome


def name_update(found: Mapping[str, float]) -> dict[str, float]:
    """What `train_step` has found, under the names of the log."""
    others = {name: value for name, value in found.items() if name != "loss"}
    return {"train/loss": found["loss"], **prefixed("actor", others)}


def read(
    session: Session[PreferenceStage], objective: Objective[Entry], reader: Reader
) -> tuple[PreferenceMixture[Entry], dict[str, Sequence[Entry]]]:
    """What is learned from, the same as when the run began, and what is measured on, by name."""
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


# The reference.


def prepare_reference(
    session: Session[PreferenceStage],
    objective: Objective[Entry],
    supply: Supply,
    mixture: PreferenceMixture[Entry],
    held_out: Mapping[str, Sequence[Entry]],
) -> CachedLogprobs:
    """What it says of all that is to come, where that is kept; else it is held, to be asked at every step."""
    recipe = session.recipe
    if not recipe.loss.needs_reference:
        return CachedLogprobs.of_nothing()
    if not recipe.reference.kept:
        checksum = session.on_all_ranks(hold_reference)
        check_same(name_reference(recipe), session.progress.reference, checksum)
        session.progress = replace(session.progress, reference=checksum)
        return CachedLogprobs.of_nothing()
    wanted: list[Entry] = entries_to_come(supply, objective, recipe, session.progress, mixture.entries)
    return cache_logprobs(session, [*wanted, *(entry for of_set in held_out.values() for entry in of_set)])


def entries_to_come(
    supply: Supply,
    objective: Objective[Entry],
    recipe: PreferenceStage,
    progress: Progress,
    entries: Sequence[Entry],
) -> list[Entry]:
    """Those of the rest of the run, each once: a short run needs not all of a large file."""
    found: dict[int | tuple[int, int], Entry] = {}
    while progress.step < recipe.steps:
        drawn, progress = draw_entries(supply, recipe, progress)
        if len(drawn) < recipe.batch_size:
            break
        completed = objective.complete(recipe, [entries[number] for number in drawn])
        for place, (number, entry) in enumerate(zip(drawn, completed, strict=True)):
            # one that was given something of its neighbours is another one each time
            found.setdefault(number if entry is entries[number] else (progress.step, place), entry)
    return list(found.values())


def cache_logprobs(session: Session[PreferenceStage], entries: Sequence[Entry]) -> CachedLogprobs:
    """What the run's folder has of these, and what is missing there, computed now by all ranks."""
    kept, before = CachedLogprobs.open(session.run.path, session.recipe), session.progress.reference
    check_same(str(session.run.path / FILE), before, kept.checksum or before)
    missing = kept.missing(entries)
    if missing:
        checksum = session.on_all_ranks(hold_reference)
        found: list[Logprobs] = []
        for start in range(0, len(missing), SCORED_AT_ONCE):
            part, share = missing[start : start + SCORED_AT_ONCE], start / len(missing)
            session.display.begin("reference", span=(share, share + len(part) / len(missing)))
            found += session.on_all_ranks(ask_reference, part)
        session.on_all_ranks(release_reference)
        check_same(name_reference(session.recipe), before, checksum)
        kept = kept.add(missing, found, checksum)
        kept.write(session.run.path)
    session.progress = replace(session.progress, reference=kept.checksum)
    return kept


# What is measured.


def measure(
    session: Session[PreferenceStage], objective: Objective[Entry], held_out: Mapping[str, Sequence[Entry]]
) -> dict[str, float]:
    """{"val/loss/NAME": …} and what else the stage measures."""
    found: dict[str, float] = {}
    for number, (name, entries) in enumerate(held_out.items()):
        session.display.begin("eval", span=(number / len(held_out), (number + 1) / len(held_out)))
        figures = session.on_all_ranks(objective.measure, entries)
        found |= {metric.replace("{}", name): value for metric, value in figures.items()}
    return found


def source_metrics(
    mixture: PreferenceMixture[Entry], drawn: Sequence[int], recipe: PreferenceStage
) -> dict[str, float]:
    """Entries of each source in the update, where there are several; and how many rows were left out."""
    found: dict[str, float] = {"data/dropped": sum(mixture.dropped.values())} if mixture.dropped else {}
    if mixture.unusable:
        found["data/unusable"] = sum(sum(by.values()) for by in mixture.unusable.values())
    if len(recipe.data) > 1:
        for source in recipe.data:
            found[f"train/{recipe.entries}/{source.label}"] = sum(
                mixture.datasets[index] == source.label for index in drawn
            )
    return found
