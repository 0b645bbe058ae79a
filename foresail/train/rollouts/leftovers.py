"""Samples that a step drew and did not need, in a checkpoint: `dynamic_sampling.carry` gives them to the next step.

    write_leftovers(leftovers, checkpoint)       # trainer/leftovers.jsonl.gz, a line for each problem
    leftovers = find_leftovers(checkpoint)       # {}: nothing was left

The KV cache is not stored: engines compute it again.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from foresail.engine.request import Parked, Request
from foresail.recipe.tables.parts import Sampling
from foresail.rollout.leftovers import Leftover, Leftovers
from foresail.train.learner import TRAINER
from foresail.train.rollouts.result import GZIP_LEVEL, read_sample, to_json

NAME = "leftovers.jsonl.gz"


def write_leftovers(leftovers: Leftovers, checkpoint: Path) -> None:
    if not leftovers:
        return
    rows = (row_of(problem, leftover) for problem, leftover in leftovers.items())
    text = "".join(json.dumps(row, default=to_json) + "\n" for row in rows)
    # no time inside: the same leftovers give the same bytes
    (checkpoint / TRAINER / NAME).write_bytes(gzip.compress(text.encode(), GZIP_LEVEL, mtime=0))


def row_of(problem: str, leftover: Leftover) -> dict[str, Any]:
    """Without the requests' ids, which count from the start of a process: a resumed run numbers them anew."""
    parked = {
        number: [replace(part, request=replace(part.request, id="")) for part in parts]
        for number, parts in leftover.parked.items()
    }
    return {"problem": problem, "samples": leftover.samples, "parked": parked}


def find_leftovers(checkpoint: Path | None) -> Leftovers:
    path = None if checkpoint is None else checkpoint / TRAINER / NAME
    if path is None or not path.is_file():
        return {}
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return {row["problem"]: read_leftover(row) for row in map(json.loads, lines)}


def read_leftover(row: Mapping[str, Any]) -> Leftover:
    """JSON has string keys; a sample's number is an integer."""
    return Leftover(
        samples={int(number): read_sample(sample) for number, sample in row["samples"].items()},
        parked={int(number): tuple(map(read_parked, parts)) for number, parts in row["parked"].items()},
    )


def read_parked(row: Mapping[str, Any]) -> Parked:
    request = row["request"]
    tuples = {name: tuple(request[name]) for name in ("prompt", "stop_ids", "closing")}
    known = {**tuples, "sampling": Sampling.model_validate(request["sampling"])}
    return Parked(**{**row, "request": Request(**{**request, **known, "id": ""})})
