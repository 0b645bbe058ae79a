"""Chunks on real engines: wherever they run, with or without their keys and values, the tokens are the same."""

from __future__ import annotations

import random

import pytest
from tiny_rollouts import small_engine, small_model, specs, whole_requests

from foresail.rollout.instance import ChunkOrder
from foresail.rollout.kv_pool import KVPool
from foresail.rollout.native import NativeInstance
from foresail.rollout.plan import Dispatch

MODEL = small_model()


def run_divided(instances: list[NativeInstance], pool: KVPool, chunk: int, seed: int) -> dict[str, list[int]]:
    """Every request in chunks, each on an instance drawn at random; what each drew."""
    numbers = random.Random(seed)
    drawn: dict[str, list[int]] = {}
    requests = whole_requests()
    waiting = {spec.id: (spec, 0) for spec in specs()}
    while waiting or any(instance.running for instance in instances):
        for name in list(waiting):
            spec, generated = waiting.pop(name)
            instance = numbers.choice(instances)
            work = pool.take(name) if generated else requests[name]
            tokens = min(chunk, spec.max_tokens - generated)
            dispatch = Dispatch(
                spec=spec, instance=instance.state.name, generated=generated, max_tokens=tokens
            )
            instance.submit(ChunkOrder(dispatch=dispatch, work=work))
        for instance in instances:
            for outcome in instance.poll():
                spec = outcome.event.spec
                if outcome.event.finished:
                    drawn[spec.id] = outcome.completion.ids
                else:
                    pool.put(instance.park(spec.id))
                    waiting[spec.id] = (spec, len(outcome.completion.ids))
    return drawn


@pytest.fixture(scope="module")
def whole() -> dict[str, list[int]]:
    engine = small_engine(MODEL)
    return {c.request.id: c.ids for c in engine.generate(whole_requests().values())}


@pytest.mark.parametrize("max_bytes", [0, 4000, 10**9])
@pytest.mark.parametrize("chunk", [1, 5])
def test_division_and_migration_change_no_token(chunk, max_bytes, whole):
    instances = [NativeInstance(f"{n}", small_engine(MODEL)) for n in range(3)]
    pool = KVPool(max_bytes)
    assert run_divided(instances, pool, chunk, seed=chunk) == whole
    assert len(pool) == 0 and pool.num_bytes == 0
    assert (pool.evictions > 0) == (max_bytes < 10**9)


def test_a_cancelled_chunk_does_not_come_back():
    instance = NativeInstance("a", small_engine(MODEL))
    requests, (first, second, *_) = whole_requests(), specs()
    for spec in (first, second):
        dispatch = Dispatch(spec=spec, instance="a", generated=0, max_tokens=4)
        instance.submit(ChunkOrder(dispatch=dispatch, work=requests[spec.id]))
    instance.poll()
    instance.cancel(first.id)
    instance.cancel(first.id)
    ended = [outcome.event.spec.id for _ in range(20) for outcome in instance.poll()]
    assert ended == [second.id]
    instance.update_weights(1)


def test_the_room_is_the_engines():
    state = NativeInstance("a", small_engine(MODEL, num_pages=50, max_running=7)).state
    assert (state.kv_tokens, state.max_running) == (200, 7)
