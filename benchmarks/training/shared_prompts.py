"""An update with every prompt laid once for its 16 answers, against one copy for each answer.

    python benchmarks/training/shared_prompts.py                 # a tiny model on one CPU thread
    python benchmarks/training/shared_prompts.py --shape 1.5B    # bfloat16 on a GPU
The last line is JSON: seconds of an update, the best of five.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from functools import partial
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "shared"))

import torch
from shapes import SHAPES, TINY
from train_gpu import loss, random_model

from foresail.data.packing import pack
from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.tables.parts import Optimizer
from foresail.records import TrainSequence
from foresail.train.learner import Learner
from foresail.train.optim.optimizer import build_optimizer
from foresail.train.update.step import token_loss, train_step

# of a prompt, and of the longest answer
CPU_LENGTHS = [(8, 12), (14, 24), (14, 40), (60, 40), (250, 20)]
GPU_LENGTHS = [(14, 40), (128, 256), (128, 1024), (250, 40)]
GROUPS, SAMPLES = 8, 16
SHAPE = TINY.model_copy(update={"max_context": 512})


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shape", choices=list(SHAPES), help="on a GPU; without it a tiny one on the CPU")
    name = parser.parse_args().shape
    shape, device, lengths = (SHAPES[name], "cuda", GPU_LENGTHS) if name else (SHAPE, "cpu", CPU_LENGTHS)
    torch.set_num_threads(1)
    rows = []
    for prompt, answer in lengths:
        sequences = make_sequences(prompt, answer, shape.vocab_size)
        apart, shared = (measure(shape, sequences, device, share_from) for share_from in (None, 0.0))
        rows.append({"prompt": prompt, "answer": answer, "apart": apart, "shared": shared})
        print(f"prompts of {prompt}, answers of {answer // 2} to {answer}: {apart / shared:.2f}x", flush=True)
    print(json.dumps({"shape": name or "tiny", "device": device, "lengths": rows}))


def make_sequences(prompt_length: int, longest: int, vocab_size: int) -> list[TrainSequence]:
    numbers = random.Random(0)

    def draw(count: int) -> list[int]:
        return [numbers.randrange(vocab_size) for _ in range(count)]

    sequences = []
    for _ in range(GROUPS):
        prompt = draw(prompt_length)
        for _ in range(SAMPLES):
            answer = draw(numbers.randint(longest // 2, longest))
            length = len(prompt) + len(answer)
            sequences.append(
                TrainSequence(
                    ids=prompt + answer,
                    loss_mask=[0] * len(prompt) + [1] * len(answer),
                    advantages=[numbers.gauss(0, 1)] * length,
                    old_logprobs=[-4.0] * length,
                )
            )
    return sequences


def measure(
    shape: ModelShape, sequences: list[TrainSequence], device: str, share_from: float | None
) -> float:
    on_gpu = device == "cuda"
    model = random_model(shape, torch.bfloat16 if on_gpu else torch.float32, device)
    optimizer = build_optimizer(model, Optimizer(lr=1e-4))
    learner = Learner(name="policy", model=model, optimizer=optimizer)
    tokens = 16_384 if on_gpu else 4096
    batches = pack(
        sequences, [1e-3] * len(sequences), max_tokens=tokens, device=device, share_from=share_from
    )
    seconds = []
    for _ in range(7):
        start = time.perf_counter()
        train_step(learner, batches, partial(token_loss, loss=loss), learning_rate=1e-4)
        if on_gpu:
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    optimizer.zero_grad()
    return min(seconds[2:])


if __name__ == "__main__":
    main()
