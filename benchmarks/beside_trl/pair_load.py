"""What `dpo.py` and `reward_model.py` compute: preference pairs for a model, the same for both sides."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from gpu_loads import SHAPES

from beside_trl.load import Load, make_checkpoint
from beside_trl.speed import SMALL
from foresail.data.order import problem_at
from foresail.data.pairs import encode_pairs
from foresail.recipe.shape import ModelShape
from foresail.recipe.sources import Preferences
from foresail.records import TrainPair
from foresail.tokenizer.tokenizer import Tokenizer

DIGITS = "123456789"  # a token each


@dataclass(frozen=True, kw_only=True)
class PairLoad:
    """The same for both sides. Lengths are in tokens, drawn evenly between the two bounds."""

    name: str
    shape: ModelShape
    device: Literal["cpu", "cuda"]
    pairs: int
    micro_batches: int
    prompt: tuple[int, int]
    answer: tuple[int, int]

    @property
    def dtype(self) -> Literal["float32", "bfloat16"]:
        return "bfloat16" if self.device == "cuda" else "float32"

    def describe(self) -> str:
        return (
            f"{self.name} on {self.device}: {self.shape.num_parameters / 1e6:.1f} M parameters, {self.pairs} pairs "
            f"a step in {self.micro_batches} micro-batches, prompts of {self.prompt} and answers of {self.answer} "
            "tokens"
        )


DIALOGUE = {"prompt": (100, 300), "answer": (20, 140)}  # about as hh-rlhf's
INSTRUCTIONS = {"prompt": (50, 300), "answer": (100, 500)}  # about as UltraFeedback's
LOADS = {
    load.name: load
    for load in (
        PairLoad(name="dialogue", shape=SMALL, device="cpu", pairs=16, micro_batches=2, **DIALOGUE),
        PairLoad(name="instructions", shape=SMALL, device="cpu", pairs=16, micro_batches=4, **INSTRUCTIONS),
        PairLoad(
            name="smollm2-135m", shape=SHAPES["135M"], device="cuda", pairs=64, micro_batches=2, **DIALOGUE
        ),
        PairLoad(
            name="smollm2-135m-instructions",
            shape=SHAPES["135M"],
            device="cuda",
            pairs=64,
            micro_batches=4,
            **INSTRUCTIONS,
        ),
        PairLoad(
            name="qwen2-1.5b", shape=SHAPES["1.5B"], device="cuda", pairs=32, micro_batches=2, **DIALOGUE
        ),
        PairLoad(
            name="qwen2-1.5b-instructions",
            shape=SHAPES["1.5B"],
            device="cuda",
            pairs=32,
            micro_batches=4,
            **INSTRUCTIONS,
        ),
    )
}


def smaller(load: PairLoad) -> PairLoad:
    """For a glance: a quarter of the pairs."""
    return replace(load, pairs=max(2, load.pairs // 4), micro_batches=1)


def prepare(load: PairLoad, checkpoint: Path, steps: int) -> list[TrainPair]:
    """A checkpoint and a file of pairs for so many steps, in the order in which Foresail draws them."""
    make_checkpoint(
        checkpoint,
        Load(
            name=load.name,
            shape=load.shape,
            device=load.device,
            prompts=1,
            samples=1,
            operations=1,
            new_tokens=1,
            updates=1,
            micro_batches=1,
        ),
    )
    draw = random.Random(0)

    def text(lengths: tuple[int, int]) -> str:
        return "".join(draw.choice(DIGITS) for _ in range(draw.randint(*lengths)))

    count = load.pairs * steps
    rows = [
        {"prompt": text(load.prompt), "chosen": text(load.answer), "rejected": text(load.answer)}
        for _ in range(count)
    ]
    file = checkpoint / "pairs.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    encoded = encode_pairs(Preferences(source=str(file)), Tokenizer.load(checkpoint)).entries
    return [encoded[problem_at(place, count, 0)] for place in range(count)]
