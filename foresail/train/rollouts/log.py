"""A step's samples in the log and on the terminal, and its events in the timeline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from foresail.recipe.stages.rollout_stage import Sampled
from foresail.rewards.thinking import open_counter, read_thought
from foresail.rewards.trajectory import read_trajectory
from foresail.rollout.collect import Collected
from foresail.runlog.samples import sample_lines
from foresail.train.policy.metrics import rollout_rows
from foresail.train.policy.turn_credit import Credits
from foresail.train.session import Session
from foresail.train.stopwatch import Stopwatch


def log_rollouts(session: Session[Sampled], step: int, collected: Collected, credits: Credits = ()) -> None:
    """Every sample to the log, and every few steps two of them to the terminal."""
    counter = open_counter(session.tokenizer)
    thoughts = None if counter is None else partial(read_thought, counter)
    rows = list(rollout_rows(collected, partial(read_trajectory, session.tokenizer), credits, thoughts))
    session.writer.start(partial(session.run.write_rollouts, step, rows))
    every = session.recipe.show_samples
    if every and (step == 1 or step % every == 0):
        session.display.show_samples(step, sample_lines(rows))


def log_timeline(
    session: Session[Sampled], step: int, watch: Stopwatch, of_engines: Sequence[Mapping[str, Any]]
) -> None:
    session.run.append_timeline(*({"step": step, **event} for event in [*watch.events, *of_engines]))
