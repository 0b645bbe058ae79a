"""Requests that come back with more prompt: episodes of several turns, whenever the world answers."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from small_schedules import build, ended, group
from tiny_rollouts import MAX_TOKENS, SAMPLES, small_engine, small_model, specs, whole_requests

from foresail.engine.request import Completion, Request
from foresail.records import Sample
from foresail.rollout.fleet import Fleet
from foresail.rollout.groups import continue_request, to_sample
from foresail.rollout.instance import InstanceLost
from foresail.rollout.kv_pool import KVPool
from foresail.rollout.native import NativeInstance
from foresail.rollout.native_drafting import DraftingInstance
from foresail.rollout.plan import SampleSpec
from foresail.rollout.policies import build_policy
from foresail.rollout.remote.worker import WorkerInstance

MODEL = small_model()
GROUPS = sorted({spec.group for spec in specs()})
TURNS = 3
Wait = Callable[[list[str]], list[str]]  # of those that ended a turn, who is answered now


def all_requests() -> dict[str, Request]:
    """With many stop ids, so that there are several turns within the limit."""
    return {name: replace(r, stop_ids=tuple(range(3, 29, 5))) for name, r in whole_requests().items()}


def answer(completion: Completion) -> tuple[int, ...]:
    """What the world says to a turn: it follows from the turn's text alone."""
    numbers = random.Random(f"{completion.request.key} {list(completion.ids)}")
    return tuple(numbers.randrange(29) for _ in range(1 + len(completion.ids) % 2))


def goes_on(turns: list[Completion], appended: tuple[int, ...], prompt_tokens: int) -> bool:
    """Up to three turns, as far as the whole's limit allows one more token."""
    last = turns[-1]
    behind = len(last.request.prompt) - prompt_tokens + len(last.ids) + len(appended)
    return len(turns) < TURNS and behind < MAX_TOKENS


def by_hand(request: Request) -> list[Completion]:
    """Turn after turn in an engine of its own: the next prompt is all that was said."""
    turns = [*small_engine(MODEL).generate([request])]
    while goes_on(turns, appended := answer(turns[-1]), len(request.prompt)):
        turns += small_engine(MODEL).generate([continue_request(turns[-1], appended)])
    return turns


def play(fleet: Fleet, wait: Wait) -> dict[str, list[Completion]]:
    """All groups to their end, answered as `wait` says."""
    requests, turns, open_turns = all_requests(), {}, []
    for number in GROUPS:
        members = [spec for spec in specs() if spec.group == number]
        fleet.launch(members, [requests[spec.id] for spec in members], hold=True)
    while fleet.busy:
        for spec, completion in fleet.work():
            turns.setdefault(spec.id, []).append(completion)
            open_turns.append(spec.id)
        for name in wait(open_turns):
            open_turns.remove(name)
            appended = answer(turns[name][-1])
            if goes_on(turns[name], appended, len(requests[name].prompt)):
                fleet.extend(name, appended)
            else:
                fleet.release(name)
    return turns


def flat(turns: dict[str, list[Completion]]) -> dict[str, tuple]:
    """All but log-probabilities, whose last bits depend on who else was in the batch."""
    samples = {name: to_sample(*parts) for name, parts in turns.items()}
    return {name: (s.ids, s.loss_mask, s.turns, s.versions, s.finish) for name, s in samples.items()}


@pytest.fixture(scope="module")
def expected() -> dict[str, tuple]:
    turns = {name: by_hand(request) for name, request in all_requests().items()}
    assert {len(parts) for parts in turns.values()} >= {1, 2, TURNS}
    return flat(turns)


def at_once(names: list[str]) -> list[str]:
    return [*names]


def late(seed: int) -> Wait:
    """Some are answered, in any order; when nothing else runs, one must be."""
    numbers = random.Random(seed)
    return lambda names: numbers.sample(
        names, numbers.randrange(len(names) + 1) if numbers.random() < 0.3 else 0
    )


@pytest.mark.parametrize("wait", [at_once, late(0), late(1)], ids=["at once", "late", "later"])
@pytest.mark.parametrize(
    ("policy", "chunk_tokens", "kind"),
    [
        ("group", None, NativeInstance),
        ("context", 2, NativeInstance),
        ("fifo", 3, DraftingInstance),
    ],
)
def test_episodes_are_those_generated_by_hand(wait, policy, chunk_tokens, kind, expected):
    instances = [kind(f"{n}", small_engine(MODEL, num_pages=60, max_running=3)) for n in range(2)]
    fleet = Fleet(instances, build_policy(policy), KVPool(3000), chunk_tokens=chunk_tokens)
    assert flat(play(fleet, wait)) == expected
    assert not fleet.open and not fleet.held and len(fleet.pool) == 0
    assert fleet.scheduler.num_waiting == fleet.scheduler.num_running == 0
    fleet.update_weights(1)


def test_a_held_request_survives_the_instance_that_ran_it(expected):
    class Mortal(NativeInstance):
        lifetime = 12

        def poll(self):
            self.lifetime -= 1
            if self.lifetime < 0:
                raise InstanceLost(self.state.name)
            return super().poll()

    instances = [
        Mortal("mortal", small_engine(MODEL)),
        NativeInstance("last", small_engine(MODEL, max_running=3)),
    ]
    fleet = Fleet(instances, build_policy("context"), KVPool(10**6), chunk_tokens=3)
    assert flat(play(fleet, late(2))) == expected
    assert "mortal" not in fleet.instances


def test_workers_go_on_with_more_prompt(expected):
    worker = WorkerInstance("worker", small_model(), {"num_pages": 200, "page_size": 4}, drafts=True)
    fleet = Fleet([worker], build_policy("context"), KVPool(10**6), chunk_tokens=5)
    try:
        assert flat(play(fleet, at_once)) == expected
    finally:
        fleet.close()


def test_a_sample_of_several_turns_is_one_flat_record():
    request = all_requests()["0.0"]
    first = Completion(
        request=request,
        ids=[7, 5],
        logprobs=[-1.0, -2.0],
        versions=[3, 3],
        finish="stop",
        side={"router": [1, 2]},
    )
    longer = continue_request(first, (9, 8))
    assert longer.prompt == (*request.prompt, 7, 5, 9, 8)
    assert longer.sampling.max_new_tokens == MAX_TOKENS - 4 and longer.key == request.key
    second = Completion(request=longer, ids=[6], logprobs=[-3.0], versions=[4], finish="length")
    n = len(request.prompt)
    assert to_sample(first, second) == Sample(
        ids=[*request.prompt, 7, 5, 9, 8, 6],
        loss_mask=[0] * n + [1, 1, 0, 0, 1],
        logprobs=[0.0] * n + [-1.0, -2.0, 0.0, 0.0, -3.0],
        versions=[0] * n + [3, 3, 0, 0, 4],
        turns=[0] * (n + 2) + [1, 1, 1],
        finish="length",
        side={"router": [None] * n + [1, 2, None, None, None]},
    )
    with pytest.raises(AssertionError, match="does not continue"):
        to_sample(second, first)


def test_the_limit_is_of_the_whole():
    fleet = Fleet(
        [NativeInstance("a", small_engine(MODEL))], build_policy("group"), KVPool(0), chunk_tokens=None
    )
    spec, requests = specs()[0], all_requests()
    fleet.launch([spec], [requests[spec.id]], hold=True)
    while not (turns := fleet.work()):
        pass
    said = len(turns[0].completion.ids)
    with pytest.raises(ValueError, match=rf"has {said} of at most {MAX_TOKENS} tokens.* release it"):
        fleet.extend(spec.id, [1] * (MAX_TOKENS - said))
    with pytest.raises(ValueError, match="append fewer, at least one"):
        fleet.extend(spec.id, [])
    fleet.extend(spec.id, [1] * (MAX_TOKENS - said - 1))
    while not (turns := fleet.work()):
        pass
    assert len(turns[0].completion.ids) == 1
    fleet.release(spec.id)
    assert not fleet.busy


@pytest.mark.parametrize("polls", [0, 3, 30])
def test_a_group_is_cancelled_while_some_of_it_are_held(polls, expected):
    fleet = Fleet(
        [NativeInstance("a", small_engine(MODEL))], build_policy("context"), KVPool(10**6), chunk_tokens=3
    )
    requests = all_requests()
    members = {number: [spec for spec in specs() if spec.group == number] for number in GROUPS}
    for number in (0, 1):
        fleet.launch(members[number], [requests[spec.id] for spec in members[number]], hold=True)
    for _ in range(polls):
        fleet.work()
    fleet.cancel(0, members[0])
    assert not any(name.startswith("0.") for name in [*fleet.held, *fleet.open])
    while len(fleet.held) < SAMPLES:
        fleet.work()
    assert fleet.busy and not fleet.scheduler.stalled
    fleet.cancel(1, members[1])
    assert not fleet.busy and fleet.scheduler.num_waiting == 0
    fleet.update_weights(1)


# The scheduler alone.


def test_a_held_request_has_no_capacity_and_keeps_its_group_open():
    scheduler = build(a=100)
    first, second = group(0, 2, max_tokens=30)
    scheduler.launch([first, second], hold=True)
    for dispatch in scheduler.next_dispatches():
        scheduler.chunk_ended(ended(dispatch, 4, finished=True))
    assert scheduler.free_tokens == {"a": 100} and scheduler.holds(first.id) and not scheduler.stalled
    assert (scheduler.num_waiting, scheduler.num_running) == (0, 0)
    scheduler.extend(first.id, 6)
    scheduler.release(second.id)
    (dispatch,) = scheduler.next_dispatches()
    assert (dispatch.spec, dispatch.generated, dispatch.max_tokens) == (first, 10, 10)
    # what it holds is its prompt, all behind it, and the chunk
    assert scheduler.free_tokens == {"a": 100 - 5 - 20}
    assert scheduler.chunk_ended(ended(dispatch, 3, finished=True)) and scheduler.holds(first.id)
    assert not scheduler.chunk_ended(ended(dispatch, 3, finished=True))  # heard before
    scheduler.release(first.id)
    assert scheduler.cancel_group(0) == []  # it is closed
    with pytest.raises(KeyError):
        scheduler.release(first.id)


def test_estimates_learn_from_whole_episodes():
    finished: list[tuple[SampleSpec, int]] = []
    scheduler = build("fifo", a=100)
    scheduler._policy.finished = lambda spec, length: finished.append((spec, length))
    (spec,) = group(0)
    scheduler.launch([spec], hold=True)
    scheduler.chunk_ended(ended(scheduler.next_dispatches()[0], 4, finished=True))
    scheduler.extend(spec.id, 2)
    scheduler.chunk_ended(ended(scheduler.next_dispatches()[0], 5, finished=True))
    assert finished == []
    scheduler.release(spec.id)
    assert finished == [(spec, 11)]
