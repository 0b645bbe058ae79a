"""What a request has so far: the pieces, joined, are what it ends with; and nobody pays who did not ask."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import pytest
from tiny_rollouts import PROMPTS, small_engine, small_model, specs, whole_requests

from foresail.engine.request import Completion
from foresail.rollout.fleet import Fleet
from foresail.rollout.instance import Instance, InstanceLost, NewTokens, Report
from foresail.rollout.kv_pool import KVPool
from foresail.rollout.native import NativeInstance
from foresail.rollout.native_drafting import DraftingInstance
from foresail.rollout.plan import SampleSpec
from foresail.rollout.policies import build_policy
from foresail.rollout.remote.worker import WorkerInstance

MODEL = small_model()
GROUPS = range(len(PROMPTS))


class Pieces:
    """What was told of each request, joined, with the number of pieces."""

    def __init__(self) -> None:
        self.ids: dict[str, list[int]] = defaultdict(list)
        self.logprobs: dict[str, list[float]] = defaultdict(list)
        self.count = 0

    def add(self, new_tokens: Sequence[NewTokens]) -> None:
        for new in new_tokens:
            assert new.ids and len(new.ids) == len(new.logprobs)
            assert new.start == len(self.ids[new.request_id]), "no gap, and nothing twice"
            self.ids[new.request_id] += new.ids
            self.logprobs[new.request_id] += new.logprobs
            self.count += 1


def members(group: int) -> list[SampleSpec]:
    return [spec for spec in specs() if spec.group == group]


def launch_all(fleet: Fleet, *, stream: bool = True) -> None:
    requests = whole_requests()
    for group in GROUPS:
        fleet.launch(members(group), [requests[spec.id] for spec in members(group)], stream=stream)


def finish(fleet: Fleet) -> tuple[dict[str, Completion], Pieces]:
    ended, pieces = {}, Pieces()
    while fleet.busy:
        news = fleet.work()
        pieces.add(fleet.take_new_tokens())
        for spec, completion in news:
            assert pieces.ids[spec.id] == [*completion.ids], "told in full when it ends"
            ended[spec.id] = completion
    return ended, pieces


def check(fleet: Fleet, expected: dict[str, Sequence[int]], *, more_than: int) -> None:
    launch_all(fleet)
    ended, pieces = finish(fleet)
    assert {name: [*completion.ids] for name, completion in ended.items()} == expected == pieces.ids
    for name, completion in ended.items():
        assert pieces.logprobs[name] == pytest.approx([*completion.logprobs], abs=1e-5)
    assert pieces.count > more_than * len(expected)
    assert not fleet.streamed and not fleet.new_tokens


@pytest.fixture(scope="module")
def whole() -> dict[str, Sequence[int]]:
    return {c.request.id: [*c.ids] for c in small_engine(MODEL).generate(whole_requests().values())}


@pytest.mark.parametrize("drafts", [False, True])
@pytest.mark.parametrize("chunk_tokens", [None, 3])
@pytest.mark.parametrize("num_pages", [14, 200])  # with 14, rows are preempted
def test_pieces_joined_are_the_response(
    drafts: bool, chunk_tokens: int | None, num_pages: int, whole: dict[str, Sequence[int]]
) -> None:
    kind = DraftingInstance if drafts else NativeInstance
    instances = [kind(f"{n}", small_engine(MODEL, num_pages=num_pages, max_running=6)) for n in range(2)]
    policy = build_policy("group" if chunk_tokens is None else "context")
    check(Fleet(instances, policy, KVPool(10**6), chunk_tokens=chunk_tokens), whole, more_than=2)


class Mortal(NativeInstance):
    """Dies at the n-th poll, with tokens that it has told."""

    def __init__(self, name: str, lifetime: int) -> None:
        super().__init__(name, small_engine(MODEL, max_running=3))
        self.lifetime = lifetime

    def poll(self) -> Sequence[Report | NewTokens]:
        self.lifetime -= 1
        if self.lifetime < 0:
            raise InstanceLost(self.state.name)
        return super().poll()


@pytest.mark.parametrize("seed", range(4))
def test_a_loss_repeats_and_skips_nothing(seed: int, whole: dict[str, Sequence[int]]) -> None:
    numbers = random.Random(seed)
    instances: list[Instance] = [Mortal(f"mortal {n}", numbers.randint(2, 20)) for n in range(3)]
    instances.append(NativeInstance("last", small_engine(MODEL, max_running=3)))
    fleet = Fleet(instances, build_policy("context"), KVPool(10**6), chunk_tokens=numbers.choice([5, None]))
    check(fleet, whole, more_than=2)


@pytest.mark.usefixtures("forked_workers")
def test_a_worker_tells_its_tokens_while_a_chunk_runs(whole: dict[str, Sequence[int]]) -> None:
    worker = WorkerInstance("worker", small_model(), {"num_pages": 200, "page_size": 4}, drafts=True)
    try:
        assert worker.capabilities.partial_output
        check(Fleet([worker], build_policy("context"), KVPool(10**6), chunk_tokens=6), whole, more_than=2)
    finally:
        worker.close()


class Silent(NativeInstance):
    """As a backend without partial output."""

    def poll(self) -> Sequence[Report | NewTokens]:
        return [report for report in super().poll() if isinstance(report, Report)]


def test_without_the_capability_pieces_come_as_chunks_end(whole: dict[str, Sequence[int]]) -> None:
    fleet = Fleet([Silent("a", small_engine(MODEL))], build_policy("context"), KVPool(10**6), chunk_tokens=4)
    check(fleet, whole, more_than=1)


def test_who_does_not_ask_is_told_nothing_and_pays_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = small_engine(MODEL)
    monkeypatch.setattr(engine, "sampled", None)
    fleet = Fleet([NativeInstance("a", engine)], build_policy("context"), KVPool(0), chunk_tokens=4)
    launch_all(fleet, stream=False)
    ended, pieces = finish_silently(fleet)
    assert len(ended) == len(specs()) and not pieces.count


def finish_silently(fleet: Fleet) -> tuple[set[str], Pieces]:
    ended: set[str] = set()
    pieces = Pieces()
    while fleet.busy:
        ended |= {spec.id for spec, _ in fleet.work()}
        pieces.add(fleet.take_new_tokens())
    return ended, pieces


def test_every_turn_of_a_held_request_is_told_from_its_beginning() -> None:
    spec = specs()[0]
    request = replace(whole_requests()[spec.id], stop_ids=(24,))  # the fifth token that it samples
    fleet = Fleet(
        [NativeInstance("a", small_engine(MODEL))], build_policy("context"), KVPool(0), chunk_tokens=None
    )
    fleet.launch([spec], [request], hold=True, stream=True)
    for turn in range(2):
        pieces = Pieces()
        while not (news := fleet.work()):
            pieces.add(fleet.take_new_tokens())
        pieces.add(fleet.take_new_tokens())
        ((_, completion),) = news
        assert pieces.ids[spec.id] == [*completion.ids] and pieces.count > 1
        if turn == 0:
            assert len(completion.ids) == 5
            fleet.extend(spec.id, (1,))
    fleet.release(spec.id)
    assert not fleet.busy and not fleet.streamed
