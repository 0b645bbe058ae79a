"""Preferences of the tiny world: right answers to arithmetic problems and wrong ones, in pairs or each alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tiny_world import write_lines

from foresail.data.made.arithmetic import direct, make_problems
from foresail.recipe.stages.dpo import Dpo
from foresail.recipe.stages.kto import Kto
from foresail.recipe.tables.parts import Checkpoints, Model, Optimizer, Run


def pair_rows(count: int, seed: int) -> list[dict[str, Any]]:
    rows = []
    for problem in make_problems(count, seed=seed, steps=(2, 2)):
        right = direct(problem)
        wrong = right.replace(problem.answer, str((int(problem.answer) + 3) % 10))
        rows.append({"prompt": problem.prompt[-1].content, "chosen": right, "rejected": wrong})
    return rows


def write_pairs(path: Path, count: int = 24, seed: int = 0) -> Path:
    return write_lines(path, pair_rows(count, seed))


def write_judged(path: Path, count: int = 24, seed: int = 0) -> Path:
    """Good and bad ones in turn, of other problems each."""
    rows = []
    for number, row in enumerate(pair_rows(count, seed)):
        good = number % 2 == 0
        said = row["chosen" if good else "rejected"]
        rows.append({"prompt": row["prompt"], "completion": said, "label": good})
    return write_lines(path, rows)


def settings(checkpoint: Path, data: Any, root: Path, name: str) -> dict[str, Any]:
    return {
        "run": Run(name=name, root=str(root), device="cpu"),
        "model": Model(path=str(checkpoint), dtype="float32"),
        "data": str(data) if isinstance(data, Path) else data,
        "steps": 4,
        "batch_size": 6,
        "max_length": 24,
        "micro_batch_tokens": 64,
        "optimizer": Optimizer(lr=2e-3, schedule="constant"),
        "checkpoints": Checkpoints(every=2, keep=9, resumable=9),
    }


def dpo_recipe(checkpoint: Path, data: Any, root: Path, name: str = "dpo", **changes: Any) -> Dpo:
    return Dpo(**settings(checkpoint, data, root, name) | changes)


def kto_recipe(checkpoint: Path, data: Any, root: Path, name: str = "kto", **changes: Any) -> Kto:
    return Kto(**settings(checkpoint, data, root, name) | changes)
