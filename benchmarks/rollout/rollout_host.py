"""What a rollout asks of the host, without a GPU: calls of the runner, and the seconds beside its forward passes.

A model of one tiny layer draws groups with the lengths of a real task (GSM8K's, about: prompts of 80 to 220 tokens,
responses of 20 to 256, 85 in the middle), through the fleet a run has. The runner is the CPU's, but prompts are
filled as on a GPU. What a GPU's own launches cost the host is not in it.

    python benchmarks/rollout/rollout_host.py --groups 190 --rows 1024
    python benchmarks/rollout/rollout_host.py --groups 190 --rows 1024 --drafts off
The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections import Counter
from typing import Any

import torch

from foresail.engine.engine import Engine
from foresail.engine.noise import noise_key
from foresail.engine.request import Request
from foresail.model.hf import build_model
from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.tables.parts import Rollout, Sampling
from foresail.rollout.build import gather
from foresail.rollout.fleet import Fleet
from foresail.rollout.groups import to_spec
from foresail.rollout.native import NativeInstance
from foresail.rollout.native_drafting import DraftingInstance

SAMPLES, LONGEST, PAGE, MAX_LENGTH = 16, 256, 16, 512
SHAPE = ModelShape(
    vocab_size=64,
    hidden_size=16,
    intermediate_size=16,
    num_layers=1,
    num_heads=1,
    num_kv_heads=1,
    head_dim=16,
    max_context=640,
)
AS_ON_A_GPU = 4096  # prompt tokens of a pass
WARM_UP = 20  # groups


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--groups", type=int, default=190)
    parser.add_argument("--rows", type=int, default=512, help="decoded at once")
    parser.add_argument("--drafts", choices=("on", "off"), default="on")
    options = parser.parse_args()
    torch.set_num_threads(1)
    pages = options.rows * MAX_LENGTH // PAGE
    engine = Engine(build_model(SHAPE, seed=0), num_pages=pages, page_size=PAGE, max_running=options.rows)
    engine.runner.efficient_prefill_tokens = AS_ON_A_GPU
    kind = DraftingInstance if options.drafts == "on" else NativeInstance
    fleet = gather([kind("engine", engine)], Rollout(drafts=options.drafts), max_length=MAX_LENGTH)
    draw(fleet, make_groups(0, WARM_UP))
    groups = make_groups(WARM_UP, options.groups)
    calls, inside = watch(engine)
    start = time.perf_counter()
    draw(fleet, groups)
    seconds = time.perf_counter() - start
    figures = vars(options) | {
        "calls": dict(calls),
        "seconds": round(seconds, 2),
        "host_seconds": round(seconds - sum(inside.values()), 2),
    }
    for name, value in figures.items():
        print(f"{name:<14}{value}")
    print(json.dumps(figures))


def make_groups(first: int, count: int) -> list[list[Request]]:
    numbers = random.Random(first)
    return [make_group(number, numbers) for number in range(first, first + count)]


def make_group(number: int, numbers: random.Random) -> list[Request]:
    prompt = tuple(numbers.randrange(SHAPE.vocab_size) for _ in range(numbers.randrange(80, 220)))
    lengths = [min(LONGEST, max(20, int(numbers.lognormvariate(4.45, 0.5)))) for _ in range(SAMPLES)]
    return [
        Request(
            id=f"{number}/{sample}",
            prompt=prompt,
            key=noise_key(0, 1, str(number), sample),
            sampling=Sampling(max_new_tokens=length),
        )
        for sample, length in enumerate(lengths)
    ]


def draw(fleet: Fleet, groups: list[list[Request]]) -> None:
    for requests in groups:
        specs = [to_spec(request, fleet.next_group, sample) for sample, request in enumerate(requests)]
        fleet.launch(specs, requests)
    while fleet.busy:
        fleet.work()


def watch(engine: Engine) -> tuple[Counter[str], Counter[str]]:
    """How often the runner is called from here on, and how long that takes."""
    calls: Counter[str] = Counter()
    inside: Counter[str] = Counter()

    def counted(place: Any, name: str) -> None:
        call = getattr(place, name)

        def count(*arguments: Any) -> Any:
            start = time.perf_counter()
            result = call(*arguments)
            calls[name] += 1
            inside[name] += time.perf_counter() - start  # type: ignore[assignment]
            return result

        setattr(place, name, count)

    for name in ("fill", "decode", "update_rows", "add_pages"):
        counted(engine.runner, name)
    counted(engine.runner.cache, "copy_pages")
    return calls, inside


if __name__ == "__main__":
    main()
