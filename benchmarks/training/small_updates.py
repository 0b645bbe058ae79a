"""What a bfloat16 model shows of small updates: the loss of a few SFT steps in three kinds of arithmetic.

float32; bfloat16 whose masters begin on the weights themselves; bfloat16 as Foresail trains it, whose masters
begin anywhere among the numbers that round to the weight (`foresail/train/optim/masters.py`). Data, order and rates
are the same.

    python benchmarks/training/small_updates.py --model CHECKPOINT    # ten to twenty minutes on two cores
    python benchmarks/training/small_updates.py --model CHECKPOINT --steps 8 --device cuda
The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from unittest import mock

import torch
from torch import Tensor

from foresail.recipe.reading.load import load_recipe
from foresail.recipe.stages.sft import Sft
from foresail.runlog.directory import RunDirectory
from foresail.train.stages.sft import run_sft

RECIPE = Path(__file__).parents[2] / "recipes" / "flagship" / "programs-sft.toml"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, required=True, help="a pretrained checkpoint")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:

        def losses(name: str, dtype: str) -> list[float]:
            changes = [
                f"model.path={options.model}",
                f"model.dtype={dtype}",
                f"steps={options.steps}",
                f"run.root={folder}",
                f"run.name={name}",
                f"run.device={options.device}",
            ]
            recipe = load_recipe(RECIPE, changes)
            assert isinstance(recipe, Sft)
            run_sft(recipe)
            lines = RunDirectory(Path(folder) / name).metrics.read()
            return [round(line["train/loss"], 4) for line in lines if "train/loss" in line]

        curves = {"float32": losses("float32", "float32")}
        with mock.patch("foresail.train.optim.masters.random_low_bits", on_the_weight):
            curves["bfloat16, masters on the weights"] = losses("on-the-weights", "bfloat16")
        curves["bfloat16"] = losses("bfloat16", "bfloat16")
    for name, curve in curves.items():
        print(f"{name:<34}", *(f"{loss:.3f}" for loss in curve))
    print(json.dumps({"device": options.device, "losses": curves}))


def on_the_weight(weight: Tensor, *key: object) -> Tensor:
    return torch.zeros_like(weight, dtype=torch.int16)


if __name__ == "__main__":
    main()
