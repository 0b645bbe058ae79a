"""Many requests with random lengths, drafts, parking, cancels and weight updates leave nothing behind.

A thousand in a normal run, twice what one lost object a request needs to show; FORESAIL_ENGINE_SOAK=100000 for
the long one. On a GPU the same, shorter.
"""

from __future__ import annotations

import gc
import os
import random

import numpy as np
import pytest
import torch
from small_engines import (
    VOCABULARY,
    Engine,
    ask,
    assert_all_free,
    random_prompt,
    small_engine,
    small_model,
)

from foresail.engine.drafts import Draft

REQUESTS = int(os.environ.get("FORESAIL_ENGINE_SOAK", "1000"))
ALIVE = 60
PROMPTS = [random_prompt(length, seed) for seed in range(6) for length in (1, 5, 12, 17, 30)]


def soak(engine: Engine, count: int, seed: int = 0) -> dict[str, int]:
    """Keep some sixty requests alive until so many have ended; how they ended."""
    numbers = random.Random(seed)
    ends: dict[str, int] = {}
    alive: dict[str, None] = {}
    started = 0
    while started < count or alive:
        while started < count and len(alive) < ALIVE:
            name = f"{seed}-{started}"
            engine.add(
                ask(
                    name,
                    numbers.choice(PROMPTS),
                    max_new_tokens=numbers.randint(1, 40),
                    top_k=numbers.choice([0, 0, 5]),
                ),
                chunk_tokens=numbers.choice([None, None, 7]),
            )
            alive[name] = None
            started += 1
        action = numbers.random()
        ended = []
        if action < 0.03:
            ended = [engine.cancel(numbers.choice(list(alive)))]
        elif action < 0.06:
            parked = engine.park(numbers.choice(list(alive)))
            if parked is not None:
                engine.resume(parked)
        elif action < 0.07:
            engine.weights_changed(started)
        elif action < 0.2:
            guess = Draft(tokens=tuple(numbers.sample(range(VOCABULARY), 3)))
            ended = engine.step(engine.drafts_by_slot(dict.fromkeys(alive, guess)))
        else:
            ended = engine.step()
        for completion in filter(None, ended):
            ends[completion.finish] = ends.get(completion.finish, 0) + 1
            if completion.finish == "chunk":
                go_on(engine, completion.request.id, numbers)
            else:
                del alive[completion.request.id]
    return ends


def go_on(engine: Engine, name: str, numbers: random.Random) -> None:
    """In its place, or after it was parked."""
    if numbers.random() < 0.5:
        engine.go_on(name, chunk_tokens=7)
    else:
        engine.resume(engine.park(name), chunk_tokens=7)


def test_a_long_life_leaves_nothing_behind():
    engine = small_engine(small_model(), num_pages=150, max_running=24, prefill_tokens=40)
    ends = soak(engine, REQUESTS // 10)  # tables grow to their size
    gc.collect()
    before = num_objects()
    ends = soak(engine, REQUESTS, seed=1)
    gc.collect()
    assert set(ends) == {"stop", "length", "chunk", "cancelled"}
    assert sum(ends.values()) - ends["chunk"] == REQUESTS
    assert_all_free(engine)
    assert num_objects() < before + 500
    assert np.isfinite(engine.table.logprobs_SL).all()


def num_objects() -> int:
    """Tensors and containers that Python tracks: what leaks one object a request shows here."""
    return len(gc.get_objects())


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_long_life_on_cuda_leaves_nothing_behind():
    model = small_model("qwen3", device="cuda", dtype=torch.bfloat16)
    engine = small_engine(model, num_pages=150, max_running=24, prefill_tokens=40)
    soak(engine, 1000, seed=1)  # meets every shape once, and each keeps its buffers
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    ends = soak(engine, 1000, seed=2)
    torch.cuda.synchronize()
    gc.collect()
    assert sum(ends.values()) - ends["chunk"] == 1000
    assert_all_free(engine)
    assert torch.cuda.memory_allocated() <= before + 2**16
