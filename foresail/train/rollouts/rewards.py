"""The rewards of a run: opened before its model, compared with their fingerprints; and their printed output."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from foresail.recipe.stages.rollout_stage import RolloutStage, Sampled
from foresail.recipe.tables.reward import Reward
from foresail.recipe.tables.sources import as_graded, named, reward_for
from foresail.rewards.by_source import open_gradings
from foresail.rewards.columns import check_columns
from foresail.rewards.grading import Grading
from foresail.rewards.model_grading import ModelGrading
from foresail.rewards.ray_hosts import grader_hosts
from foresail.rollout.answering.answerer import open_answerer
from foresail.train.checkpoints.fingerprints import fingerprint_rewards
from foresail.train.session import Session

Gradings = Mapping[Reward, Grading]


@contextmanager
def open_rewards(recipe: RolloutStage) -> Iterator[Gradings]:
    """Loaded before the model is; the data must have all columns that reward functions need.

    There is one for every source that is learned from, or measured on while learning.
    """
    measured = recipe.eval if recipe.eval_every else ()
    sources = {**dict(named("data", recipe.data)), **dict(named("eval", measured))}
    sources = {place: as_graded(source, recipe.reward) for place, source in sources.items()}
    rewards = {place: reward_for(source, recipe.reward) for place, source in sources.items()}
    folder = recipe.run.folder
    with (
        grader_hosts(recipe.cluster, folder / "logs") as hosts,
        open_gradings(
            rewards.values(),
            prints=folder / "reward.log",
            hosts=hosts,
            device=recipe.run.device,
            open_answer=open_answerer,
        ) as gradings,
    ):
        for place, source in sources.items():
            check_columns(gradings[rewards[place]].traits.required_columns, place, source)
        yield gradings


def fingerprint_rewards_of_run(session: Session[Sampled], gradings: Gradings, *, changed: bool) -> None:
    """Compare the files of rewards and environment with those the run began with; `changed` accepts other ones."""
    functions = dict.fromkeys(function for reward in gradings for function in reward.functions.values())
    models = {
        grading.settings.model.path: grading.scorer.fingerprint
        for grading in gradings.values()
        if isinstance(grading, ModelGrading) and grading.settings.model is not None
    }
    environment = session.recipe.environment
    files = () if environment is None else environment.files
    session.progress, others = fingerprint_rewards(
        session.progress, functions, models, files, may_change=changed
    )
    for file in others:
        note = f"from step {session.progress.step + 1} on with a changed {file}"
        session.display.note(note, style="yellow")
        now = time.time()
        event = {"step": session.progress.step, "what": "note", "start": now, "end": now, "text": note}
        session.run.append_timeline(event)


def report_prints(session: Session[Sampled], gradings: Gradings) -> None:
    for grading in gradings.values():
        if grading.prints is not None and (line := grading.prints.news()) is not None:
            session.display.note(line)


def report_failures(session: Session[Sampled]) -> None:
    """At the end of a run: the total of failed verdicts and dead programs, which no single step reports."""
    failed = [record for record in session.run.read_metrics() if record.get("rollout/verdicts_failed")]
    if failed:
        count = sum(record["rollout/verdicts_failed"] for record in failed)
        first = failed[0].get("verdict/first_failure", "")
        session.warn(
            f"{count} verdicts failed in {len(failed)} of the run's steps, and their groups were dropped; the "
            f"first in step {failed[0]['step']}: {first}. Read {session.run.rollout_path(failed[0]['step'])}"
        )
