"""Foresail's side of the part dpo of `vs_trl.py`: FOLDER/recipe.toml in, lines of JSON out. `foresail dpo`, timed.

python ours_dpo.py FOLDER
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from foresail.recipe.dpo import Dpo
from foresail.recipe.load import load_recipe
from foresail.train.checkpoint import Progress
from foresail.train.dpo import run_dpo
from foresail.train.session import Session


def main() -> None:
    recipe = load_recipe(Path(sys.argv[1]) / "recipe.toml")
    assert isinstance(recipe, Dpo)
    print(json.dumps({"versions": {"torch": torch.__version__}}), flush=True)
    report_steps()
    run_dpo(recipe)


def report_steps() -> None:
    """A line at the end of every step; CPU time is what a busy machine does not change."""
    end_step, cpu = Session.end_step, 0.0

    def end_and_report(self: Session, progress: Progress, metrics: Mapping[str, Any]) -> None:
        nonlocal cpu
        seconds = {"step": metrics["timing_s/step"], "cpu": time.process_time() - cpu}
        line = {"step": progress.step, "seconds": seconds, "loss": metrics["train/loss"]}
        print(json.dumps(line | {"peak_gb": peak_gb()}), flush=True)
        end_step(self, progress, metrics)
        cpu = time.process_time()

    Session.end_step = end_and_report  # type: ignore[method-assign]


def peak_gb() -> float:
    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated() / 1e9
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


if __name__ == "__main__":
    main()
