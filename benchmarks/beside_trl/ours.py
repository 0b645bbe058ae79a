"""Foresail's side of `vs_trl.py`: FOLDER/recipe.toml in, lines of JSON out. What `foresail rl` does, timed.

python ours.py FOLDER
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from foresail.data.problems import load_problems
from foresail.data.prompts import encode_problems
from foresail.recipe.load import load_recipe
from foresail.recipe.stages import Rl
from foresail.runlog.directory import RunDirectory
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.train.checkpoint import Progress
from foresail.train.rl import run_rl
from foresail.train.session import Session


def main() -> None:
    recipe = load_recipe(Path(sys.argv[1]) / "recipe.toml")
    assert isinstance(recipe, Rl) and recipe.model.path is not None
    first = encode_problems(
        load_problems(recipe.data)[:1], Tokenizer.load(recipe.model.path), recipe.max_prompt_tokens
    )
    print(
        json.dumps({"versions": {"torch": torch.__version__}, "prompt_ids": list(first[0].ids)}), flush=True
    )
    report_steps()
    outcome = run_rl(recipe)
    print(json.dumps({"checkpoint": str(outcome.checkpoint)}), flush=True)


def report_steps() -> None:
    """A line at the end of every step, with its CPU time: what a busy machine does not change."""
    begun, end_step = time.process_time(), Session.end_step

    def end_and_report(self: Session, progress: Progress, metrics: Mapping[str, Any]) -> None:
        nonlocal begun
        end_step(self, progress, metrics)
        ended = time.process_time()
        *_, line = read_steps(self.run)
        line["seconds"]["cpu"] = ended - begun
        print(json.dumps(line), flush=True)
        begun = time.process_time()

    Session.end_step = end_and_report  # type: ignore[method-assign]


def read_steps(run: RunDirectory) -> Iterator[dict[str, Any]]:
    """The steps as TRL's side reports its own. Time passes from the first rollout on, evaluations left out."""
    rows = [row for row in run.read_metrics() if row["step"] > 0]
    ends: dict[int, float] = {}
    start, examined = None, 0.0
    for event in run.read_timeline():
        if event["what"] == "rollout" and start is None:
            start = event["start"]
        elif event["what"] == "eval" and event["step"] > 0:
            examined += event["end"] - event["start"]
        elif event["what"] == "update":
            assert start is not None
            ends[event["step"]] = event["end"] - start - examined
    for row in rows:
        seconds = {part: row[f"timing_s/{part}"] for part in ("rollout", "update", "step")}
        seconds["step"] -= row.get("timing_s/eval", 0.0)
        yield {
            "step": row["step"],
            "elapsed": ends[row["step"]],
            "seconds": seconds,
            "reward": row["critic/score/mean"],
            "tokens": round(row["rollout/tokens_per_second"] * row["timing_s/rollout"]),
            "peak_gb": row.get("perf/max_memory_allocated_gb"),
            "shortest": row["response_length/min"],
            "longest": row["response_length/max"],
            "held_out": next((row[name] for name in row if name.startswith("val-core/")), None),
        }


if __name__ == "__main__":
    main()
