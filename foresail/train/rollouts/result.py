"""The result of a rollout: groups, the progress after them, metrics and times; and its file in a checkpoint.

With staleness a checkpoint holds the next step's samples, for the weights that drew them are gone.

    write_rollout_result(checkpoint, rolled)              # trainer/next_step.jsonl.gz
    rolled = find_rollout_result(checkpoint, problems)    # None: nothing was drawn ahead

A line for the step, then one for each group. Problems go by their ids: a run that goes on has the same ones.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from foresail.records import Group, Problem, Sample, Verdict
from foresail.rollout.collect import Collected
from foresail.train.learner import TRAINER

NEXT_STEP = "next_step.jsonl.gz"
GZIP_LEVEL = 1  # the fastest


@dataclass(frozen=True, kw_only=True)
class RolloutResult:
    """`changes` are those of the run's progress once the step is done; `start` and `end` are of the clock."""

    collected: Collected
    changes: Mapping[str, Any]
    figures: Mapping[str, float]  # of engines and environments
    events: Sequence[Mapping[str, Any]]  # for the timeline
    start: float
    end: float


def write_rollout_result(checkpoint: Path, rolled: RolloutResult) -> None:
    collected = rolled.collected
    places = {id(group): place for place, group in enumerate(collected.launched)}
    step = {
        "chosen": [places[id(group)] for group in collected.chosen],
        "num_surplus": collected.num_surplus,
        "num_cancelled": collected.num_cancelled,
        "share": collected.share,
        "changes": rolled.changes,
        "figures": rolled.figures,
        "events": rolled.events,
        "start": rolled.start,
        "end": rolled.end,
    }
    groups = ({**vars(group), "problem": group.problem.id} for group in collected.launched)
    path = checkpoint / TRAINER / NEXT_STEP
    with gzip.open(path, "wt", encoding="utf-8", compresslevel=GZIP_LEVEL) as file:
        for row in (step, *groups):
            file.write(json.dumps(row, default=to_json) + "\n")


def to_json(record: Any) -> Any:
    """Samples and verdicts by their fields. Numbers are exact, NaN included."""
    if isinstance(record, np.ndarray):
        return record.tolist()
    return dict(record) if isinstance(record, Mapping) else vars(record)


def find_rollout_result(checkpoint: Path | None, problems: Mapping[str, Problem]) -> RolloutResult | None:
    """The result for the step after a checkpoint; `problems` by their ids."""
    path = None if checkpoint is None else checkpoint / TRAINER / NEXT_STEP
    if path is None or not path.is_file():
        return None
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        step, *rows = map(json.loads, lines)
    launched = tuple(read_group(row, problems) for row in rows)
    return RolloutResult(
        collected=Collected(
            launched=launched,
            chosen=tuple(launched[place] for place in step.pop("chosen")),
            **{name: step.pop(name) for name in ("num_surplus", "num_cancelled", "share")},
        ),
        **step,
    )


def read_group(row: Mapping[str, Any], problems: Mapping[str, Problem]) -> Group:
    return Group(
        problem=problems[row["problem"]],
        samples=tuple(map(read_sample, row["samples"])),
        verdicts=tuple(Verdict(**verdict) for verdict in row["verdicts"]),
        rewards=tuple(row["rewards"]),
    )


def read_sample(row: Mapping[str, Any]) -> Sample:
    tuples = {
        "turn_rewards": tuple(row["turn_rewards"]),
        "branches": tuple(map(read_sample, row["branches"])),
    }
    return Sample(**{**row, **tuples})
