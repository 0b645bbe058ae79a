"""Engines in processes of their own: same tokens, shared weights, and a death that loses nothing."""

from __future__ import annotations

import contextlib
import os
import signal
import time

import pytest
import torch
from tiny_rollouts import asks, small_engine, small_model, whole_requests

from foresail.engine.request import Parked
from foresail.rollout.instance import InstanceLost, Order
from foresail.rollout.plan import Dispatch
from foresail.rollout.worker import WeightsDiffer, WorkerInstance, checksum

OPTIONS = {"num_pages": 200, "page_size": 4}


def order(ask, work, generated: int, tokens: int, instance: WorkerInstance) -> Order:
    limit = min(tokens, ask.max_tokens - generated)
    dispatch = Dispatch(ask=ask, instance=instance.name, generated=generated, max_tokens=limit)
    return Order(dispatch=dispatch, work=work)


def run(
    instances: list[WorkerInstance], chunk: int, *, kill: WorkerInstance | None = None
) -> dict[str, list[int]]:
    """All requests in chunks, round robin; what a dead worker had is given to the others."""
    requests, drawn, turn = whole_requests(), {}, 0
    works: dict[str, Parked] = {}
    waiting = asks()
    lost: set[str] = set()
    deadline = time.monotonic() + 60
    while len(drawn) < len(requests):
        assert time.monotonic() < deadline, "the workers do not answer"
        alive = [instance for instance in instances if instance.name not in lost]
        for ask in waiting:
            parked = works.get(ask.id)
            generated = len(parked.ids) if parked else 0
            turn += 1
            target = alive[turn % len(alive)]
            # A dead one is found by the next poll, with this order among its own.
            with contextlib.suppress(InstanceLost):
                target.submit(order(ask, parked or requests[ask.id], generated, chunk, target))
        waiting = []
        if kill is not None and works:
            os.kill(kill.process.pid, signal.SIGKILL)
            kill = None
        for instance in alive:
            try:
                outcomes = instance.poll()
            except InstanceLost as gone:
                lost.add(gone.name)
                waiting += [dispatch.ask for dispatch in instance.running.values()]
                continue
            for outcome in outcomes:
                if outcome.event.finished:
                    drawn[outcome.event.ask.id] = outcome.completion.ids
                else:
                    works[outcome.event.ask.id] = outcome.completion.parked
                    waiting.append(outcome.event.ask)
        time.sleep(0.002)
    return drawn


@pytest.fixture(scope="module")
def whole() -> dict[str, list[int]]:
    return {c.request.id: c.ids for c in small_engine(small_model()).generate(whole_requests().values())}


def test_workers_draw_the_same_tokens_and_survive_each_other(whole):
    model = small_model()
    workers = [WorkerInstance(f"{n}", model, OPTIONS) for n in range(2)]
    try:
        assert workers[0].state.kv_tokens == 800
        assert run(workers, chunk=5) == whole
        assert run(workers, chunk=3, kill=workers[0]) == whole
        assert not workers[0].process.is_alive() and workers[1].process.is_alive()
        with torch.no_grad():
            model.embed.weight.mul_(1.5)
        workers[1].update_weights(1)
        changed = run([workers[1]], chunk=4)
        expected = {c.request.id: c.ids for c in small_engine(model).generate(whole_requests().values())}
        assert changed == expected != whole
        model.embed.weight.data = model.embed.weight.data * 2  # another tensor: the worker cannot see it
        with pytest.raises(WeightsDiffer, match="not updated in place"):
            workers[1].update_weights(2)
    finally:
        for worker in workers:
            worker.close()
    assert not any(worker.process.is_alive() for worker in workers)


def test_the_checksum_sees_every_bit():
    model = small_model()
    before = checksum(model)
    with torch.no_grad():
        first = model.embed.weight[0, 0].clone()
        model.embed.weight[0, 0] = torch.nextafter(first, torch.tensor(9.0))
        assert checksum(model) != before
        model.embed.weight[0, 0] = first
        assert checksum(model) == before
        model.embed.weight[[0, 1]] = model.embed.weight[[1, 0]].clone()
        assert checksum(model) != before
