"""Many engines under one scheduler: division, migration, losses and cancels change no token and lose no request."""

from __future__ import annotations

import random

import pytest
from small_rollouts import fleet_of
from tiny_rollouts import SAMPLES, small_engine, small_model, specs, whole_requests

from foresail.engine.request import Completion, Request
from foresail.recipe.tables import parts
from foresail.recipe.tables.parts import Rollout, Sampling
from foresail.records import RunStopped
from foresail.rollout.build import build_fleet
from foresail.rollout.fleet import Fleet, to_parked
from foresail.rollout.instance import InstanceLost
from foresail.rollout.kv_pool import KVPool
from foresail.rollout.native import NativeInstance
from foresail.rollout.native_drafting import DraftingInstance
from foresail.rollout.policies import build_policy

MODEL = small_model()
GROUPS = sorted({spec.group for spec in specs()})


class Mortal(NativeInstance):
    """Dies at the n-th poll, with everything it has."""

    def __init__(self, name: str, lifetime: int, **options: int) -> None:
        super().__init__(name, small_engine(MODEL, **options))
        self.lifetime = lifetime

    def poll(self):
        self.lifetime -= 1
        if self.lifetime < 0:
            raise InstanceLost(self.state.name)
        return super().poll()


def launch_all(fleet: Fleet) -> None:
    requests = whole_requests()
    for group in GROUPS:
        members = [spec for spec in specs() if spec.group == group]
        fleet.launch(members, [requests[spec.id] for spec in members])


def finish(fleet: Fleet) -> dict[str, list[int]]:
    drawn: dict[str, list[int]] = {}
    while fleet.busy:
        for spec, completion in fleet.work():
            assert spec.id not in drawn
            drawn[spec.id] = completion.ids
    return drawn


@pytest.fixture(scope="module")
def whole() -> dict[str, list[int]]:
    return {c.request.id: c.ids for c in small_engine(MODEL).generate(whole_requests().values())}


@pytest.mark.parametrize("policy", ["fifo", "group", "context"])
@pytest.mark.parametrize("chunk_tokens", [None, 3])
def test_policies_and_chunks_change_no_token(policy, chunk_tokens, whole):
    instances = [NativeInstance(f"{n}", small_engine(MODEL, num_pages=40, max_running=3)) for n in range(3)]
    fleet = Fleet(instances, build_policy(policy), KVPool(10**6), chunk_tokens=chunk_tokens)
    launch_all(fleet)
    assert finish(fleet) == whole
    assert len(fleet.pool) == 0 and not fleet.open


@pytest.mark.parametrize("seed", range(8))
def test_what_a_dead_instance_ran_runs_elsewhere(seed, whole):
    numbers = random.Random(seed)
    mortals = [Mortal(f"mortal {n}", numbers.randint(0, 25), max_running=3) for n in range(3)]
    fleet = Fleet(
        [*mortals, NativeInstance("last", small_engine(MODEL, max_running=3))],
        build_policy("context"),
        KVPool(numbers.choice([0, 3000, 10**6])),
        chunk_tokens=numbers.choice([2, 5, None]),
    )
    launch_all(fleet)
    assert finish(fleet) == whole
    lost = {event["instance"] for event in fleet.event_log.take() if event["what"] == "lose_instance"}
    assert lost == {name for name in (m.state.name for m in mortals) if name not in fleet.instances}


def test_when_all_are_dead_it_says_so():
    fleet = Fleet([Mortal("a", 3)], build_policy("fifo"), KVPool(0), chunk_tokens=2)
    launch_all(fleet)
    with pytest.raises(RunStopped, match=r"processes have ended .* resume"):
        finish(fleet)


@pytest.mark.parametrize("polls", [0, 1, 4, 9])
def test_a_cancelled_group_leaves_the_others_alone(polls, whole):
    instances = [NativeInstance(f"{n}", small_engine(MODEL, max_running=4)) for n in range(2)]
    fleet = Fleet(instances, build_policy("context"), KVPool(10**6), chunk_tokens=3)
    launch_all(fleet)
    ended = [ended.spec.id for _ in range(polls) for ended in fleet.work()]
    fleet.cancel(1, [spec for spec in specs() if spec.group == 1])
    ended += finish(fleet)
    others = [spec.id for spec in specs() if spec.group != 1]
    assert set(others) <= set(ended) and len(ended) == len(set(ended))
    assert all(not instance.running for instance in instances)
    fleet.update_weights(1)


class DiesWhenParked(NativeInstance):
    def park(self, request_id):
        raise InstanceLost(self.state.name)


def test_an_instance_may_be_found_gone_while_a_group_is_withdrawn():
    """It ran several samples of the group: the first one notices, the others find nobody there."""
    instance = DiesWhenParked("a", small_engine(MODEL))
    fleet = Fleet([instance], build_policy("group"), KVPool(0), chunk_tokens=None)
    launch_all(fleet)
    for _ in range(3):
        fleet.work()
    members = [spec for spec in specs() if spec.group == 1]
    assert fleet.withdraw(1, members) == {}
    assert not fleet.instances and not fleet.open.keys() & {spec.id for spec in members}


def test_samples_are_divided_only_where_they_must_be(whole, monkeypatch):
    monkeypatch.setattr("foresail.rollout.requirements.CHUNK", 4)
    roomy = fleet_of(small_engine(MODEL, max_running=12), 28, policy="context")
    tight = fleet_of(small_engine(MODEL, num_pages=30, max_running=12), 28, policy="context")
    for fleet, divided in ((roomy, False), (tight, True)):
        launch_all(fleet)
        assert finish(fleet) == whole
        dispatches = sum(event["what"] == "dispatch" for event in fleet.event_log.take())
        assert (dispatches > len(GROUPS) * SAMPLES) == divided


def test_a_recipe_says_how_samples_are_drawn(whole):
    settings = Rollout(policy="fifo", chunk_tokens=3, drafts="on", host_gb=0)
    fleet = build_fleet(MODEL, parts.Engine(page_size=4, kv_tokens=800), settings, max_length=28)
    (instance,) = fleet.instances.values()
    launch_all(fleet)
    assert finish(fleet) == whole
    assert isinstance(instance, DraftingInstance) and instance.speculation.tally.steps > 0
    assert fleet.pool.max_bytes == 0
    assert {event["why"] for event in fleet.event_log.take() if event["what"] == "dispatch"} == {"fifo"}


def test_one_engine_takes_whole_groups_unless_told_otherwise(whole):
    fleet = fleet_of(small_engine(MODEL, num_pages=30, max_running=12), 28)
    launch_all(fleet)
    assert finish(fleet) == whole
    dispatches = [event for event in fleet.event_log.take() if event["what"] == "dispatch"]
    assert len(dispatches) == len(GROUPS) * SAMPLES and {event["why"] for event in dispatches} == {"group"}


@pytest.mark.usefixtures("forked_workers")
def test_workers_draw_the_same_tokens(whole):
    settings = Rollout(workers=2, drafts="on", chunk_tokens=5)
    fleet = build_fleet(small_model(), parts.Engine(page_size=4, kv_tokens=800), settings, max_length=28)
    try:
        launch_all(fleet)
        assert finish(fleet) == whole
        assert {event["instance"] for event in fleet.event_log.take() if event["what"] == "dispatch"} == {
            "worker 0",
            "worker 1",
        }
    finally:
        fleet.close()


@pytest.mark.usefixtures("forked_workers")
def test_workers_compute_as_the_recipe_says():
    settings = parts.Engine(page_size=4, kv_tokens=800, batch_invariant=True, prefill_tokens=9)
    fleet = build_fleet(small_model(), settings, Rollout(workers=1), max_length=28)
    try:
        options = fleet.instances["worker 0"].spec.options
        assert (options["batch_invariant"], options["prefill_tokens"]) == (True, 9)
    finally:
        fleet.close()


def test_what_was_put_in_is_still_marked_when_a_request_begins_again() -> None:
    """Else a token that a thinking budget forced would be learned from as if it had been drawn."""
    request = Request(id="0.0", prompt=(1,), key=0, sampling=Sampling(max_new_tokens=8))
    drawn = Completion(
        request=request, ids=[2, 3], logprobs=[-0.5, 0.0], versions=[1, 1], forced=[1], finish="length"
    )
    assert to_parked(drawn).forced == [1]
