"""Tokens a second of the native engine and of vLLM on the same load, as a fleet drives them, and seconds of a sync.

Groups of samples with a prompt in common; every sample draws exactly as many tokens as a seeded lognormal says, so
both sides draw equally many. The first round of each side is not counted. The last line is JSON.

    python benchmarks/engine/vllm_backend.py    # where vLLM is installed: see `make test-vllm`
    python benchmarks/engine/vllm_backend.py --groups 32 --hidden 512 --layers 8
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import time
from statistics import median
from typing import Any

import torch

from foresail.engine.noise import noise_key
from foresail.engine.request import Request
from foresail.model.decoder import Decoder
from foresail.model.hf import build_model
from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.tables.parts import Engine, Rollout, Sampling
from foresail.rollout.build import build_fleet
from foresail.rollout.fleet import Fleet
from foresail.rollout.groups import to_spec

SAMPLES, PROMPT, LONGEST = 8, 48, 128
POLL_SECONDS = 0.001  # seconds between two looks at an engine that works by itself


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--groups", type=int, default=16)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--backends", nargs="+", default=["native", "vllm"], choices=["native", "vllm"])
    arguments = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    results: dict[str, Any] = {
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "device": torch.cuda.get_device_name() if device == "cuda" else "cpu",
        "torch": torch.__version__,
        "samples": arguments.groups * SAMPLES,
        "hidden": arguments.hidden,
        "layers": arguments.layers,
    }
    for backend in arguments.backends:
        model = build_model(shape_of(arguments.hidden, arguments.layers), seed=0, device=device)
        results[backend] = measure(model, backend, arguments.groups, arguments.rounds)
        print(backend, results[backend])
    print(json.dumps(results))


def shape_of(hidden: int, layers: int) -> ModelShape:
    return ModelShape(
        vocab_size=4096,
        hidden_size=hidden,
        intermediate_size=3 * hidden,
        num_layers=layers,
        num_heads=hidden // 64,
        num_kv_heads=max(1, hidden // 128),
        head_dim=64,
        max_context=PROMPT + LONGEST,
    )


def measure(model: Decoder, backend: str, groups: int, rounds: int) -> dict[str, float]:
    """Medians over the rounds; between two of them the weights change."""
    began = time.monotonic()
    settings = Rollout.model_validate({"backend": backend})
    fleet = build_fleet(model, Engine(max_running=groups * SAMPLES), settings, max_length=PROMPT + LONGEST)
    start_seconds = time.monotonic() - began
    speeds, syncs = [], []
    try:
        for number in range(rounds + 1):
            with torch.no_grad():
                model.norm.weight.mul_(1.001)
            began = time.monotonic()
            fleet.update_weights(number)
            synced = time.monotonic()
            with fleet.at_work():
                tokens = draw_all(fleet, groups, number)
            speeds.append(tokens / (time.monotonic() - synced))
            syncs.append(synced - began)
    finally:
        fleet.close()
    gigabytes = sum(parameter.nbytes for parameter in model.parameters()) / 1e9
    return {
        "tokens_per_second": round(median(speeds[1:]), 1),
        "slowest": round(min(speeds[1:]), 1),
        "fastest": round(max(speeds[1:]), 1),
        "sync_seconds": round(median(syncs[1:]), 3),
        "sync_seconds_per_gb": round(median(syncs[1:]) / gigabytes, 1),
        "start_seconds": round(start_seconds, 1),
    }


def draw_all(fleet: Fleet, groups: int, round_: int) -> int:
    """One step's samples to their end; how many tokens they were."""
    numbers, total = random.Random(round_), 0
    for group in range(groups):
        prompt = tuple(numbers.randrange(4096) for _ in range(PROMPT))
        requests = []
        for sample in range(SAMPLES):
            length = max(1, min(LONGEST, int(numbers.lognormvariate(4, 0.6))))
            total += length
            requests.append(
                Request(
                    id=f"{round_}.{group}.{sample}",
                    prompt=prompt,
                    key=noise_key(0, round_, f"{group}", sample),
                    sampling=Sampling(max_new_tokens=length),
                )
            )
        number = fleet.next_group
        fleet.launch([to_spec(one, number, sample) for sample, one in enumerate(requests)], requests)
    while fleet.busy:
        fleet.work()
        if fleet.only_waits:
            time.sleep(POLL_SECONDS)
    return total


if __name__ == "__main__":
    main()
