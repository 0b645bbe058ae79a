"""One request is cancelled: its slot and pages are free at once, and its siblings go on as if it had never been."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tiny_rollouts import SAMPLES, small_engine, small_model, specs, whole_requests

from foresail.rollout.fleet import Fleet
from foresail.rollout.kv_pool import KVPool
from foresail.rollout.native import NativeInstance
from foresail.rollout.native_drafting import DraftingInstance
from foresail.rollout.policies import build_policy
from foresail.rollout.remote.worker import WorkerInstance

MODEL = small_model()
MEMBERS = [spec for spec in specs() if spec.group == 3]
PAGES = 200


def launch(fleet: Fleet, *, stream: bool = False) -> None:
    requests = whole_requests()
    fleet.launch(MEMBERS, [requests[spec.id] for spec in MEMBERS], stream=stream)


def finish(fleet: Fleet) -> dict[str, list[int]]:
    ended = {}
    while fleet.busy:
        ended |= {spec.id: [*completion.ids] for spec, completion in fleet.work()}
    return ended


@pytest.fixture(scope="module")
def whole() -> dict[str, Sequence[int]]:
    requests = whole_requests()
    return {c.request.id: [*c.ids] for c in small_engine(MODEL).generate(requests[s.id] for s in MEMBERS)}


@pytest.mark.parametrize("kind", [NativeInstance, DraftingInstance])
@pytest.mark.parametrize("prefill_tokens", [2, 1000])  # with 2, its prompt takes several steps
@pytest.mark.parametrize("max_running", [1, SAMPLES])  # with 1, the others wait
@pytest.mark.parametrize("chunk_tokens", [None, 2])
@pytest.mark.parametrize("steps", [0, 1, 2, 5, 7])
def test_siblings_do_not_notice(
    kind: type[NativeInstance],
    prefill_tokens: int,
    max_running: int,
    chunk_tokens: int | None,
    steps: int,
    whole: dict[str, Sequence[int]],
) -> None:
    for cancelled in MEMBERS:
        engine = small_engine(MODEL, num_pages=PAGES, prefill_tokens=prefill_tokens, max_running=max_running)
        policy = build_policy("group" if chunk_tokens is None else "context")
        fleet = Fleet([kind("a", engine)], policy, KVPool(10**6), chunk_tokens=chunk_tokens)
        launch(fleet)
        ended = {}
        for _ in range(steps):
            ended |= {spec.id: [*completion.ids] for spec, completion in fleet.work()}
        free = engine.pool.num_free
        owned = sum(len(row.pages) for row in engine.rows.by_id.get(cancelled.id, ()))
        fleet.cancel_request(cancelled)
        assert engine.rows.find(cancelled.id) is None and free <= engine.pool.num_free <= free + owned + 5
        ended |= finish(fleet)
        expected = {name: ids for name, ids in whole.items() if name != cancelled.id or name in ended}
        assert ended == expected and len(ended) >= SAMPLES - 1
        assert not fleet.open and not len(fleet.pool) and not fleet.resting
        assert engine.pool.num_free == PAGES
        fleet.update_weights(1)


def test_when_all_are_cancelled_all_is_free() -> None:
    for steps in range(8):
        engine = small_engine(MODEL, num_pages=PAGES, prefill_tokens=3)
        fleet = Fleet([NativeInstance("a", engine)], build_policy("group"), KVPool(0), chunk_tokens=None)
        launch(fleet, stream=True)
        for _ in range(steps):
            fleet.work()
        for spec in MEMBERS:
            fleet.cancel_request(spec)
            fleet.cancel_request(spec)  # nobody minds
        assert engine.pool.num_free == PAGES and not engine.busy and not engine.slots
        assert not fleet.busy and not fleet.streamed
        assert fleet.scheduler.free_tokens == {"a": PAGES * 4}


def test_a_held_request_can_be_cancelled_too() -> None:
    engine = small_engine(MODEL, num_pages=PAGES)
    fleet = Fleet([NativeInstance("a", engine)], build_policy("context"), KVPool(0), chunk_tokens=None)
    requests = whole_requests()
    fleet.launch(MEMBERS, [requests[spec.id] for spec in MEMBERS], hold=True)
    while len(fleet.held) < SAMPLES:
        fleet.work()
    fleet.cancel_request(MEMBERS[0])
    assert len(fleet.held) == SAMPLES - 1 and fleet.busy
    for spec in MEMBERS[1:]:
        fleet.release(spec.id)
    assert not fleet.busy and fleet.scheduler.num_waiting == 0


@pytest.mark.usefixtures("forked_workers")
def test_a_worker_forgets_a_cancelled_request(whole: dict[str, Sequence[int]]) -> None:
    worker = WorkerInstance("worker", small_model(), {"num_pages": PAGES, "page_size": 4})
    fleet = Fleet([worker], build_policy("context"), KVPool(10**6), chunk_tokens=None)
    try:
        launch(fleet)
        fleet.work()
        fleet.cancel_request(MEMBERS[1])
        assert finish(fleet) == {name: ids for name, ids in whole.items() if name != MEMBERS[1].id}
    finally:
        fleet.close()
