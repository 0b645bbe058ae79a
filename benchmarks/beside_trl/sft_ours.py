"""Foresail's side of the SFT part of `vs_trl.py`: FOLDER/recipe.toml and conversations.json in, lines of JSON out.

    python sft_ours.py FOLDER

What `foresail sft` does, timed; the conversations come as token ids, so that both sides learn from the same ones.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from foresail.data.reader import Reader
from foresail.recipe.load import load_recipe
from foresail.recipe.sft import Sft
from foresail.recipe.sources import Chatlog
from foresail.records import TrainSequence
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.train.checkpoint import Progress
from foresail.train.session import Session
from foresail.train.sft import run_sft


def main() -> None:
    folder = Path(sys.argv[1])
    recipe = load_recipe(folder / "recipe.toml")
    assert isinstance(recipe, Sft) and recipe.model.path is not None
    reader = GivenRows(Tokenizer.load(recipe.model.path), given=read_rows(folder / "conversations.json"))
    say(versions={"torch": torch.__version__})
    report_steps()
    run_sft(recipe, reader=reader)


@dataclass(frozen=True)
class GivenRows(Reader):
    """A reader whose every source has these conversations: no file is looked for."""

    given: list[TrainSequence] = field(kw_only=True)

    def conversations(self, source: Chatlog) -> list[TrainSequence]:
        return self.given

    def rows(self, source: Chatlog) -> list[int]:
        return [*range(len(self.given))]


def read_rows(file: Path) -> list[TrainSequence]:
    """Of a list of `{"ids": [...], "loss_mask": [...]}`."""
    rows = json.loads(file.read_text())
    return [TrainSequence(name=f"conversation {number}", **row) for number, row in enumerate(rows, start=1)]


def report_steps() -> None:
    """A line at the end of every step, as TRL's side has them."""
    end_step, cpu = Session.end_step, time.process_time()

    def end_and_report(self: Session, progress: Progress, metrics: Mapping[str, Any]) -> None:
        nonlocal cpu
        end_step(self, progress, metrics)
        now = time.process_time()
        say(
            step=progress.step,
            loss=metrics["train/loss"],
            tokens=metrics["train/tokens"],
            seconds={"step": metrics["timing_s/step"], "cpu": now - cpu},
            peak_gb=peak_gb(),
        )
        cpu = now

    Session.end_step = end_and_report  # type: ignore[method-assign]


def peak_gb() -> float:
    """Of the card, or of the process where there is none."""
    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated() / 1e9
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def say(**figures: Any) -> None:
    print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main()
