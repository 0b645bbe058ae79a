"""Whole RL runs of a tiny model, and what they leave."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from tiny_world import rl_recipe
from torch import Tensor

from foresail.model.hf import load_model
from foresail.runlog.directory import RunDirectory
from foresail.train.session import Outcome
from foresail.train.stages.rl import run_rl

CLOCK = ("timing_s/", "perf/", "rollout/tokens_per_second")


def train(checkpoint: Path, root: Path, **changes: Any) -> tuple[Outcome, list[dict[str, Any]]]:
    """A run, and the metrics of its steps (step 0, before the first update, left out)."""
    outcome = run_rl(rl_recipe(checkpoint, root, **changes))
    return outcome, [record for record in RunDirectory(outcome.run).read_metrics() if record["step"]]


def curve(run: Outcome | Path) -> list[dict[str, Any]]:
    """The metrics of every step, but for those that depend on the machine or on the ranks."""
    folder = run if isinstance(run, Path) else run.run
    return [
        {name: value for name, value in record.items() if not name.startswith(CLOCK)}
        for record in RunDirectory(folder).read_metrics()
    ]


def losses(run: Outcome | Path) -> list[float]:
    return [record["train/loss"] for record in curve(run) if record["step"]]


def weights(checkpoint: Path) -> Tensor:
    model = load_model(checkpoint, dtype=torch.float32, device="cpu")
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
