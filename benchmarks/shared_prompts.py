"""An update with every prompt laid once for its 16 answers, against one copy for each answer. One CPU thread.

    python benchmarks/shared_prompts.py
The last line is JSON: seconds of an update, the best of five.
"""

from __future__ import annotations

import json
import random
import time

import torch

from foresail.algorithms.policy_loss import policy_loss
from foresail.data.packing import pack
from foresail.model.hf import build_model
from foresail.recipe.parts import Loss, Optimizer
from foresail.recipe.shape import ModelShape
from foresail.records import PackedBatch, TrainSequence
from foresail.train.optimizer import build_optimizer
from foresail.train.step import train_step

LENGTHS = [(8, 12), (14, 24), (14, 40), (60, 40), (250, 20)]  # of a prompt, and of the longest answer
GROUPS, SAMPLES = 8, 16
SHAPE = ModelShape(
    family="llama",
    vocab_size=64,
    hidden_size=64,
    intermediate_size=128,
    num_layers=2,
    num_heads=4,
    num_kv_heads=2,
    head_dim=16,
    max_context=512,
)


def main() -> None:
    torch.set_num_threads(1)
    rows = []
    for prompt, answer in LENGTHS:
        sequences = make_sequences(prompt, answer)
        apart, shared = (measure(sequences, share=share) for share in (False, True))
        rows.append({"prompt": prompt, "answer": answer, "apart": apart, "shared": shared})
        print(f"prompts of {prompt}, answers of {answer // 2} to {answer}: {apart / shared:.2f}x", flush=True)
    print(json.dumps(rows))


def make_sequences(prompt_length: int, longest: int) -> list[TrainSequence]:
    numbers = random.Random(0)

    def draw(count: int) -> list[int]:
        return [numbers.randrange(SHAPE.vocab_size) for _ in range(count)]

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


def measure(sequences: list[TrainSequence], *, share: bool) -> float:
    model = build_model(SHAPE, seed=0)
    optimizer = build_optimizer(model, Optimizer(lr=1e-4))
    batches = pack(sequences, [1e-3] * len(sequences), max_tokens=4096, share=share)
    seconds = []
    for _ in range(7):
        start = time.perf_counter()
        train_step(model, optimizer, batches, loss, learning_rate=1e-4)
        seconds.append(time.perf_counter() - start)
    return min(seconds[2:])


def loss(logprobs_M: torch.Tensor, batch: PackedBatch) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    return policy_loss(logprobs_M, batch, Loss())


if __name__ == "__main__":
    main()
