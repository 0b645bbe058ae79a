"""Parked requests in host memory: bounded, oldest out first, and never counted twice."""

from __future__ import annotations

import pytest
import torch

from foresail.engine.request import Parked, Request, SavedKV
from foresail.recipe.tables.parts import Sampling
from foresail.rollout.kv_pool import KVPool


def parked(name: str, size: int) -> Parked:
    return Parked(
        request=Request(id=name, prompt=(1,), key=0, sampling=Sampling()),
        ids=[],
        logprobs=[],
        versions=[],
        policy_version=0,
        kv=SavedKV(pages=torch.empty(size, dtype=torch.uint8, device="meta"), num_tokens=1),
    )


def test_over_the_bound_the_one_that_waited_longest_loses_its_pages() -> None:
    pool = KVPool(100)
    for name, size in (("a", 40), ("b", 40), ("c", 60)):
        pool.put(parked(name, size))
    assert (len(pool), pool.num_bytes, pool.evictions) == (3, 100, 1)
    assert [pool.take(name).kv is None for name in ("a", "b", "c")] == [True, False, False]
    assert (len(pool), pool.num_bytes) == (0, 0)


def test_what_comes_again_replaces_what_was_there() -> None:
    pool = KVPool(100)
    pool.put(parked("a", 40))
    pool.put(parked("b", 40))
    pool.put(parked("a", 50))  # now it is b that has waited longest
    assert (len(pool), pool.num_bytes) == (2, 90)
    pool.put(parked("c", 50))
    assert pool.take("b").kv is None and pool.take("a").kv is not None


def test_no_room_at_all_is_a_bound_and_less_is_a_mistake() -> None:
    pool = KVPool(0)
    pool.put(parked("a", 1))
    assert (pool.take("a").kv, pool.num_bytes) == (None, 0)
    with pytest.raises(ValueError, match="give 0 to recompute always"):
        KVPool(-1)
