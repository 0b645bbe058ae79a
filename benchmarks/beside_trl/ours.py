"""Foresail's side of `vs_trl.py`: FOLDER/recipe.toml in, lines of JSON out. What `foresail rl` does, timed.

python ours.py FOLDER
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from foresail.data.problems.problems import load_problems
from foresail.data.problems.prompts import encode_problems
from foresail.recipe.reading.load import load_recipe
from foresail.recipe.stages.rl import Rl
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.train.checkpoints.checkpoint import Progress
from foresail.train.session import Session
from foresail.train.stages.rl import run_rl


def main() -> None:
    recipe = load_recipe(Path(sys.argv[1]) / "recipe.toml")
    assert isinstance(recipe, Rl) and recipe.model.path is not None
    first = encode_problems(
        load_problems(recipe.data[0])[:1], Tokenizer.load(recipe.model.path), recipe.max_prompt_tokens
    )
    print(
        json.dumps({"versions": {"torch": torch.__version__}, "prompt_ids": list(first[0].ids)}), flush=True
    )
    report_steps()
    outcome = run_rl(recipe)
    print(json.dumps({"checkpoint": str(outcome.checkpoint)}), flush=True)


def report_steps() -> None:
    """A line at the end of every step, as TRL's side has them: one that is stopped has said what it did.

    Time passes from the beginning of the first step on, evaluations left out. CPU time is what a busy machine does
    not change.
    """
    end_step, cpu, start, examined = Session.end_step, time.process_time(), 0.0, 0.0

    def end_and_report(self: Session, progress: Progress, metrics: Mapping[str, Any]) -> None:
        nonlocal cpu, start, examined
        now = time.time()
        start = start or now - metrics["timing_s/step"]
        examined += metrics.get("timing_s/eval", 0.0)
        end_step(self, progress, metrics)
        line = describe({"step": progress.step, **metrics}) | {"elapsed": now - start - examined}
        line["seconds"]["cpu"] = time.process_time() - cpu
        print(json.dumps(line), flush=True)
        cpu = time.process_time()

    Session.end_step = end_and_report  # type: ignore[method-assign]


def describe(row: Mapping[str, Any]) -> dict[str, Any]:
    """A step from its metrics."""
    seconds = {part: row[f"timing_s/{part}"] for part in ("rollout", "update", "step")}
    seconds["step"] -= row.get("timing_s/eval", 0.0)
    return {
        "step": row["step"],
        "seconds": seconds,
        "reward": row["critic/score/mean"],
        "tokens": round(row["rollout/tokens_per_second"] * row["timing_s/rollout"]),
        "peak_gb": row.get("perf/max_memory_allocated_gb"),
    }


if __name__ == "__main__":
    main()
