"""Foresail's side of the SFT part of `vs_trl.py`: FOLDER/recipe.toml and conversations.json in, lines of JSON out.

    python sft_ours.py FOLDER

What `foresail sft` does, timed; the conversations come as token ids, so that both sides learn from the same ones.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path

import torch
from our_reports import report_steps, say

from foresail.data.mixtures.reader import Reader
from foresail.recipe.reading.load import load_recipe
from foresail.recipe.stages.sft import Sft
from foresail.recipe.tables.sources import Chatlog
from foresail.records import TrainSequence
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.train.stages.sft import run_sft


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


if __name__ == "__main__":
    main()
