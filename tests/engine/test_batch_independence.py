"""Batching, preemption and arrival change no token: each request has its own noise."""

from __future__ import annotations

import random

import pytest
from small_engines import (
    Completion,
    Engine,
    ask_group,
    assert_all_free,
    assert_same,
    finish_all,
    mixed_requests,
    random_prompt,
    small_engine,
    small_model,
)

from foresail.engine.row import EngineRow

MODEL = small_model("qwen3")


@pytest.fixture(scope="module")
def alone() -> dict[str, Completion]:
    """Every request drawn by an engine of its own."""
    return {
        request.id: finish_all(small_engine(MODEL), [request])[request.id] for request in mixed_requests()
    }


def count_preempted(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> list[EngineRow]:
    """Rows as the engine preempts them for want of pages."""
    counted: list[EngineRow] = []
    preempt = engine.slots._preempt
    monkeypatch.setattr(engine.slots, "_preempt", lambda row: (counted.append(row), preempt(row)))
    return counted


def test_requests_end_in_every_way(alone):
    """The comparisons below are worth something only if the lengths differ."""
    assert {completion.finish for completion in alone.values()} == {"stop", "length"}
    assert len({len(completion.ids) for completion in alone.values()}) > 5


@pytest.mark.parametrize("seed", range(3))
def test_order_does_not_matter(seed, alone):
    requests = mixed_requests()
    random.Random(seed).shuffle(requests)
    engine = small_engine(MODEL)
    assert_same(finish_all(engine, requests), alone)
    assert_all_free(engine)


@pytest.mark.parametrize("max_running", [1, 2, 5, 64])
def test_number_of_running_rows_does_not_matter(max_running, alone):
    engine = small_engine(MODEL, max_running=max_running)
    assert_same(finish_all(engine, mixed_requests()), alone)
    assert_all_free(engine)


@pytest.mark.parametrize("page_size", [1, 2, 5, 16, 96])
def test_page_size_does_not_matter(page_size, alone):
    assert_same(finish_all(small_engine(MODEL, page_size=page_size), mixed_requests()), alone)


@pytest.mark.parametrize("prefill_tokens", [1, 12])
def test_prefill_budget_does_not_matter(prefill_tokens, alone):
    engine = small_engine(MODEL, prefill_tokens=prefill_tokens)
    assert_same(finish_all(engine, mixed_requests()), alone)


@pytest.mark.parametrize(("num_pages", "page_size"), [(10, 4), (14, 4), (25, 4), (35, 1), (50, 1)])
def test_preemption_does_not_matter(num_pages, page_size, monkeypatch, alone):
    engine = small_engine(MODEL, num_pages=num_pages, page_size=page_size)
    preempted = count_preempted(engine, monkeypatch)
    assert_same(finish_all(engine, mixed_requests()), alone)
    assert preempted
    assert_all_free(engine)


def test_arrival_does_not_matter(alone):
    engine = small_engine(MODEL, num_pages=40, max_running=6)
    found, arrivals = {}, mixed_requests()
    numbers = random.Random(0)
    while arrivals or engine.busy:
        for _ in range(min(numbers.randrange(3), len(arrivals))):
            engine.add(arrivals.pop(numbers.randrange(len(arrivals))))
        found |= {completion.request.id: completion for completion in engine.step()}
    assert_same(found, alone)


def test_siblings_do_not_matter():
    group = ask_group("siblings", random_prompt(6), 6)
    together = finish_all(small_engine(MODEL), group)
    assert len({tuple(completion.ids) for completion in together.values()}) == 6  # each has its own noise
    for some in (group[:1], group[2:5], group[::-2]):
        chosen = {request.id: together[request.id] for request in some}
        assert_same(finish_all(small_engine(MODEL), some), chosen)


def test_recomputing_midway_does_not_matter(alone):
    """The same weights under a new version: everything is put back and prefilled again, with the same tokens."""
    engine, found = small_engine(MODEL), {}
    for request in mixed_requests():
        engine.add(request)
    for version in range(1, 100):
        found |= {completion.request.id: completion for completion in engine.step()}
        if version % 3 == 0:
            engine.weights_changed(version)
    assert_same(found, alone)
    assert_all_free(engine)
