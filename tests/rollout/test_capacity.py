"""Capacity for siblings: a prompt that several hold is counted once, where engines share it."""

from __future__ import annotations

import random

import pytest

from foresail.rollout.capacity import Capacities
from foresail.rollout.plan import Dispatch, InstanceState, SampleSpec


def spec(group: int, sample: int) -> SampleSpec:
    return SampleSpec(id=f"{group}.{sample}", group=group, sample=sample, prompt_tokens=100, max_tokens=50)


def dispatch(group: int, sample: int, instance: str = "a") -> Dispatch:
    return Dispatch(spec=spec(group, sample), instance=instance, generated=0, max_tokens=20)


def rooms(*, shares: bool, instances: str = "a") -> Capacities:
    found = Capacities()
    for name in instances:
        found.add(InstanceState(name=name, kv_tokens=200, max_running=8, shares_prompts=shares))
    return found


@pytest.mark.parametrize(("shares", "free"), [(True, 200 - 100 - 3 * 20), (False, 200 - 3 * 120)])
def test_siblings_hold_their_prompt_once_where_it_is_shared(shares, free):
    found = rooms(shares=shares)
    for sample in range(3):
        found.take(dispatch(7, sample))
    assert found.free_tokens == {"a": free}


def test_the_last_sibling_gives_the_prompt_back():
    found = rooms(shares=True)
    for sample in range(3):
        found.take(dispatch(7, sample))
    found.give_back(dispatch(7, 0))
    assert found.free_tokens == {"a": 200 - 100 - 2 * 20}
    found.give_back(dispatch(7, 1))
    found.give_back(dispatch(7, 2))
    assert found.free_tokens == {"a": 200}


def test_a_sibling_fits_beside_the_prompt_where_a_stranger_does_not():
    found = rooms(shares=True, instances="ab")
    found.take(dispatch(7, 0, "a"))  # 80 left
    found.take(dispatch(8, 0, "b"))
    found.take(dispatch(8, 1, "b"))  # 60 left
    assert found.best(spec(9, 0), 20, last=None, home=None) is None
    assert found.best(spec(7, 1), 20, last=None, home="a") == "a"
    assert found.best(spec(8, 2), 20, last=None, home="b") == "b"


def test_in_any_order_the_books_are_even_in_the_end():
    numbers, found = random.Random(0), rooms(shares=True)
    running: list[Dispatch] = []
    for turn in range(500):
        if running and (numbers.random() < 0.5 or len(running) == 8):
            found.give_back(running.pop(numbers.randrange(len(running))))
        else:
            running.append(dispatch(numbers.randrange(4), turn))
            found.take(running[-1])
        groups = {one.spec.group for one in running}
        assert found.free_tokens == {"a": 200 - 100 * len(groups) - 20 * len(running)}
