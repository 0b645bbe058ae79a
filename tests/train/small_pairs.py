"""Preference pairs of the tiny world: the right answer of an arithmetic problem against a wrong one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tiny_world import write_lines

from foresail.data.arithmetic import direct, make_problems
from foresail.recipe.dpo import Dpo
from foresail.recipe.parts import Checkpoints, Model, Optimizer, Run


def write_pairs(path: Path, count: int = 24, seed: int = 0) -> Path:
    rows = []
    for problem in make_problems(count, seed=seed, steps=(2, 2)):
        right = direct(problem)
        wrong = right.replace(problem.answer, str((int(problem.answer) + 3) % 10))
        rows.append({"prompt": problem.prompt[-1].content, "chosen": right, "rejected": wrong})
    return write_lines(path, rows)


def dpo_recipe(checkpoint: Path, data: Any, root: Path, name: str = "dpo", **changes: Any) -> Dpo:
    given: dict[str, Any] = {
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
    return Dpo(**given | changes)
