"""A trainer's forward pass, again and again on a card that several processes share: do its logits ever change?

A kernel whose warps do not wait for one another is right on an idle card, and wrong once in some hundred passes
where other work delays some of them. Samples share their prompts, as in RL, so that all kernels of
attention take part.

    nvidia-cuda-mps-control -d         # without it processes take turns, and nothing is beside anything
    python benchmarks/training/repeated_pass.py --processes 6 --seconds 45
The last line is JSON: passes, how many differed from the first of their process, and by how much at most.
"""

from __future__ import annotations

import argparse
import json
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from random import Random
from typing import Any

import torch

from foresail.model.decoder import Decoder
from foresail.model.hf import empty_model
from foresail.recipe.shape.model_shape import ModelShape
from foresail.records import TrainSequence
from foresail.train.rollouts.self_test import logits, whole_batch

HEADS = ((8, 4, 64), (9, 3, 64), (12, 4, 128), (24, 8, 128))  # queries, keys, size
VOCABULARY, PROMPTS, SAMPLES, ANSWER = 8192, 4, 2, 64


def main() -> None:
    options = read_options()
    if options.device == "cuda" and not torch.cuda.is_available():
        raise SystemExit(
            "this repeats CUDA kernels, and PyTorch sees no CUDA device: run it where there is one, or try it with "
            "--device cpu"
        )
    work = [(seed, options.seconds, options.device) for seed in range(options.processes)]
    with ProcessPoolExecutor(options.processes, mp_context=get_context("spawn")) as pool:
        results = list(pool.map(repeat, work))
    for each in results:
        print(each, flush=True)
    print(
        json.dumps(
            {
                "passes": sum(each["passes"] for each in results),
                "different": sum(each["different"] for each in results),
                "largest": max(each["largest"] for each in results),
            }
        )
    )


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--processes", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=45.0)
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    return parser.parse_args()


@torch.no_grad()
def repeat(work: tuple[int, float, str]) -> dict[str, Any]:
    seed, seconds, device = work
    model = random_model(*HEADS[seed % len(HEADS)], device=device)
    batch = whole_batch(model, random_sequences(Random(seed)))
    first = logits(model, batch)
    passes, different, largest = 0, 0, 0.0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        difference = (logits(model, batch) - first).abs().max().item()
        passes, different, largest = passes + 1, different + (difference > 0), max(largest, difference)
    return {"heads": HEADS[seed % len(HEADS)], "passes": passes, "different": different, "largest": largest}


def random_model(heads: int, kv_heads: int, head_dim: int, *, device: str) -> Decoder:
    shape = ModelShape(
        family="qwen3",
        qk_norm=True,
        vocab_size=VOCABULARY,
        hidden_size=512,
        intermediate_size=1408,
        num_layers=4,
        num_heads=heads,
        num_kv_heads=kv_heads,
        head_dim=head_dim,
        max_context=4096,
    )
    torch.manual_seed(0)
    model = empty_model(shape, dtype=torch.bfloat16 if device == "cuda" else torch.float32, device=device)
    for name, weight in model.named_parameters():
        weight.fill_(1.0) if "norm" in name else weight.normal_(0.0, 0.05)
    return model


def random_sequences(rng: Random) -> list[TrainSequence]:
    """Several samples of each prompt."""
    sequences = []
    for number in range(PROMPTS):
        prompt = [rng.randrange(VOCABULARY) for _ in range(rng.randrange(40, 200))]
        for _ in range(SAMPLES):
            ids = prompt + [rng.randrange(VOCABULARY) for _ in range(ANSWER)]
            mask = [0] * len(prompt) + [1] * ANSWER
            sequences.append(TrainSequence(name=f"prompt {number}", ids=ids, loss_mask=mask))
    return sequences


if __name__ == "__main__":
    main()
