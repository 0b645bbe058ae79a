"""Chunks and places: case by case, then under random launches, ends, losses and cancels."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from foresail.rollout.plan import Ask, ChunkEnded, Dispatch, InstanceState
from foresail.rollout.policies import build_policy
from foresail.rollout.scheduler import Event, Scheduler

POLICIES = ("fifo", "group", "context", "oracle")


def build(
    policy: str = "fifo",
    *,
    chunk_tokens: int | None = 10,
    record: Callable[[Event], None] | None = None,
    **rooms: int,
) -> Scheduler:
    """build(a=100) has one instance, of 100 KV tokens."""
    optional: dict[str, Any] = {} if record is None else {"record": record}
    scheduler = Scheduler(
        build_policy(policy, true_length=lambda ask: ask.max_tokens), chunk_tokens=chunk_tokens, **optional
    )
    for name, kv_tokens in rooms.items():
        scheduler.add_instance(InstanceState(name=name, kv_tokens=kv_tokens, max_running=4))
    return scheduler


def group(number: int, size: int = 1, *, prompt: int = 5, max_tokens: int = 40) -> list[Ask]:
    return [
        Ask(id=f"{number}.{sample}", group=number, sample=sample, prompt_tokens=prompt, max_tokens=max_tokens)
        for sample in range(size)
    ]


def ended(dispatch: Dispatch, new_tokens: int | None = None, *, finished: bool = False) -> ChunkEnded:
    tokens = dispatch.max_tokens if new_tokens is None else new_tokens
    return ChunkEnded(ask=dispatch.ask, instance=dispatch.instance, new_tokens=tokens, finished=finished)


def places(dispatches: list[Dispatch]) -> list[tuple[str, str]]:
    return [(dispatch.ask.id, dispatch.instance) for dispatch in dispatches]


# Dividing into chunks.


def test_a_request_runs_in_chunks_and_the_last_is_what_is_left() -> None:
    scheduler = build(a=100)
    scheduler.launch(group(0, max_tokens=25))
    chunks = []
    while dispatches := scheduler.next_dispatches():
        chunks.append((dispatches[0].generated, dispatches[0].max_tokens))
        scheduler.chunk_ended(ended(dispatches[0], finished=len(chunks) == 3))
    assert chunks == [(0, 10), (10, 10), (20, 5)]
    assert (scheduler.num_waiting, scheduler.num_running, scheduler.decisions) == (0, 0, 3)


def test_without_a_chunk_size_requests_run_in_one_go() -> None:
    scheduler = build(a=100, chunk_tokens=None)
    scheduler.launch(group(0, max_tokens=25))
    assert [dispatch.max_tokens for dispatch in scheduler.next_dispatches()] == [25]


def test_room_is_reserved_for_prompt_tokens_so_far_and_chunk() -> None:
    scheduler = build(a=100)
    scheduler.launch(group(0))
    (first,) = scheduler.next_dispatches()
    assert scheduler.free_tokens == {"a": 100 - 5 - 10}
    scheduler.chunk_ended(ended(first, 7))
    assert scheduler.free_tokens == {"a": 100}
    scheduler.next_dispatches()
    assert scheduler.free_tokens == {"a": 100 - 5 - 7 - 10}


def test_a_response_counts_with_all_its_chunks() -> None:
    scheduler = build("context", a=30)  # room for two
    scheduler.launch(group(0, 3, prompt=1, max_tokens=29))
    scheduler.launch(group(1, 3, prompt=1, max_tokens=29))
    first, second = scheduler.next_dispatches()
    scheduler.chunk_ended(ended(second, 9, finished=True))
    scheduler.chunk_ended(ended(first, 8))
    (first, *_) = scheduler.next_dispatches()
    scheduler.chunk_ended(ended(first, 2, finished=True))  # 10 tokens, more than 9
    assert [dispatch.ask.group for dispatch in scheduler.next_dispatches()] == [0]


# Placement.


def test_each_chunk_goes_where_most_room_is() -> None:
    scheduler = build(a=60, b=100)
    scheduler.launch(group(0, 5))
    assert places(scheduler.next_dispatches()) == [
        ("0.0", "b"),  # 60 and 100 free
        ("0.1", "b"),  # 60 and 85
        ("0.2", "b"),  # 60 and 70
        ("0.3", "a"),  # 60 and 55
        ("0.4", "b"),  # 45 and 55
    ]


def test_among_equals_a_request_goes_back_to_where_it_was() -> None:
    scheduler = build(a=100, b=100)
    scheduler.launch(group(0, 2))
    first, second = scheduler.next_dispatches()
    assert (first.instance, second.instance) == ("a", "b")
    scheduler.chunk_ended(ended(second))
    scheduler.chunk_ended(ended(first))
    assert places(scheduler.next_dispatches()) == [("0.0", "a"), ("0.1", "b")]
    third = group(1)
    scheduler = build(a=100, b=100)
    scheduler.launch(group(0))
    (first,) = scheduler.next_dispatches()
    scheduler.launch(third)
    (second,) = scheduler.next_dispatches()
    assert second.instance == "b"
    scheduler.chunk_ended(ended(first, finished=True))
    scheduler.chunk_ended(ended(second))
    assert places(scheduler.next_dispatches()) == [("1.0", "b")]  # not to a, although a comes first


def test_rows_are_room_too() -> None:
    scheduler = build(a=1000, b=100)
    scheduler.launch(group(0, 7))
    assert Counter(dispatch.instance for dispatch in scheduler.next_dispatches()) == {"a": 4, "b": 3}
    scheduler.launch(group(1, 7))
    assert len(scheduler.next_dispatches()) == 1
    assert scheduler.num_waiting == 6


def test_nobody_overtakes_the_one_that_does_not_fit() -> None:
    scheduler = build(a=60)
    scheduler.launch(group(0, 2))
    running = scheduler.next_dispatches()
    scheduler.launch(group(1, prompt=20))
    scheduler.launch(group(2, prompt=1))
    assert places(scheduler.next_dispatches()) == [("1.0", "a")]  # 30 were free
    assert scheduler.next_dispatches() == []  # 2.0 would need 11 of 0
    scheduler.chunk_ended(ended(running[0], finished=True))
    assert places(scheduler.next_dispatches()) == [("2.0", "a")]


def test_a_large_request_gets_its_room_though_small_ones_keep_coming() -> None:
    scheduler = build(a=60)
    scheduler.launch(group(0, 4, prompt=5))
    running = scheduler.next_dispatches()
    assert len(running) == 4
    scheduler.launch(group(1, prompt=20))
    for number, dispatch in enumerate(running[:2]):
        scheduler.launch(group(2 + number))
        assert scheduler.next_dispatches() == []
        scheduler.chunk_ended(ended(dispatch, finished=True))
    assert places(scheduler.next_dispatches()) == [("1.0", "a")]


def test_asking_again_while_nothing_fits_changes_nothing() -> None:
    def order(times: int) -> list[str]:
        scheduler = build("context", a=15)  # one at a time
        for number in range(3):
            scheduler.launch(group(number, 9, max_tokens=10))
        order = []
        while dispatches := scheduler.next_dispatches():
            for _ in range(times):
                assert scheduler.next_dispatches() == []
            order.append(dispatches[0].ask.id)
            scheduler.chunk_ended(ended(dispatches[0], 1 + dispatches[0].ask.group, finished=True))
        return order

    assert order(times=0) == order(times=5)


def test_whole_groups_stay_together_and_queue_at_the_least_loaded_instance() -> None:
    scheduler = build("group", a=100, b=100)
    for number in range(4):
        scheduler.launch(group(number, 3))
    dispatches = scheduler.next_dispatches()
    assert {dispatch.max_tokens for dispatch in dispatches} == {40}
    homes = {dispatch.ask.group: dispatch.instance for dispatch in dispatches}
    assert len(dispatches) == 12 and homes == {0: "a", 1: "b", 2: "a", 3: "b"}
    assert all(homes[dispatch.ask.group] == dispatch.instance for dispatch in dispatches)


def test_a_request_no_instance_can_hold_is_refused_at_once() -> None:
    scheduler = build(a=60, b=80)
    with pytest.raises(
        ValueError, match=r"request 0\.0 may come to 90 tokens and the largest instance holds 80"
    ):
        scheduler.launch(group(0, max_tokens=85))


def test_without_instances_requests_wait() -> None:
    scheduler = build()
    scheduler.launch(group(0, 2))
    assert scheduler.next_dispatches() == [] and scheduler.stalled
    scheduler.add_instance(InstanceState(name="a", kv_tokens=100, max_running=4))
    assert len(scheduler.next_dispatches()) == 2 and not scheduler.stalled


# Faults and races.


def test_what_ran_on_a_lost_instance_starts_again_from_what_was_reported() -> None:
    scheduler = build(a=100, b=80)
    scheduler.launch(group(0, 2))
    first, second = scheduler.next_dispatches()
    scheduler.chunk_ended(ended(first, 7))
    (first,) = scheduler.next_dispatches()
    assert (first.instance, second.instance) == ("a", "a")
    assert [ask.id for ask in scheduler.lose_instance("a")] == ["0.1", "0.0"]
    again = scheduler.next_dispatches()
    assert [(dispatch.ask.id, dispatch.generated) for dispatch in again] == [("0.0", 7), ("0.1", 0)]
    assert {dispatch.instance for dispatch in again} == {"b"}


def test_late_news_from_a_lost_instance_is_ignored() -> None:
    scheduler = build(a=100, b=80)
    scheduler.launch(group(0))
    (lost,) = scheduler.next_dispatches()
    scheduler.lose_instance("a")
    scheduler.chunk_ended(ended(lost, finished=True))
    assert scheduler.num_waiting == 1
    (again,) = scheduler.next_dispatches()
    scheduler.chunk_ended(ended(lost, finished=True))
    assert scheduler.num_running == 1
    scheduler.chunk_ended(ended(again, finished=True))
    assert (scheduler.num_waiting, scheduler.num_running) == (0, 0)


def test_losing_an_instance_twice_loses_nothing_more() -> None:
    scheduler = build(a=100)
    scheduler.launch(group(0))
    scheduler.next_dispatches()
    assert len(scheduler.lose_instance("a")) == 1
    assert scheduler.lose_instance("a") == []
    assert scheduler.num_waiting == 1
    with pytest.raises(ValueError, match="there is no instance 'c'"):
        scheduler.lose_instance("c")


def test_a_lost_name_does_not_come_back() -> None:
    scheduler = build(a=100)
    scheduler.lose_instance("a")
    with pytest.raises(ValueError, match="give the new one another name"):
        scheduler.add_instance(InstanceState(name="a", kv_tokens=100, max_running=4))


def test_cancelling_gives_back_what_runs_and_drops_what_waits() -> None:
    scheduler = build(a=30)
    scheduler.launch(group(0, 3, max_tokens=20))
    running = scheduler.next_dispatches()
    assert (scheduler.num_running, scheduler.num_waiting) == (2, 1)
    assert scheduler.cancel_group(0) == running
    assert (scheduler.num_running, scheduler.num_waiting) == (0, 0)
    assert scheduler.free_tokens == {"a": 30} and scheduler.next_dispatches() == []


@pytest.mark.parametrize("finished", [True, False])
def test_a_chunk_that_ends_while_it_is_cancelled_changes_nothing(finished: bool) -> None:
    scheduler = build(a=100)
    scheduler.launch(group(0))
    (dispatch,) = scheduler.next_dispatches()
    scheduler.cancel_group(0)
    scheduler.chunk_ended(ended(dispatch, finished=finished))
    assert scheduler.next_dispatches() == []
    assert (scheduler.num_running, scheduler.num_waiting, scheduler.free_tokens) == (0, 0, {"a": 100})


def test_a_cancel_that_comes_after_the_finish_finds_nothing() -> None:
    scheduler = build(a=100)
    scheduler.launch(group(0))
    (dispatch,) = scheduler.next_dispatches()
    scheduler.chunk_ended(ended(dispatch, finished=True))
    assert scheduler.cancel_group(0) == []
    assert scheduler.num_waiting == 0


# The timeline.


def test_every_decision_is_an_event() -> None:
    events: list[Event] = []
    scheduler = build("context", record=events.append, a=100)
    scheduler.launch(group(0, 2))
    probe, other = scheduler.next_dispatches()
    scheduler.chunk_ended(ended(probe, 4, finished=True))
    scheduler.cancel_group(0)
    scheduler.chunk_ended(ended(other))
    scheduler.lose_instance("a")
    chunk = {"instance": "a", "generated": 0, "max_tokens": 10}
    assert events == [
        {"event": "add_instance", "instance": "a", "kv_tokens": 100},
        {"event": "launch", "group": 0, "requests": 2},
        {"event": "dispatch", "request": "0.0", **chunk, "why": "probe"},
        {"event": "dispatch", "request": "0.1", **chunk, "why": "longest"},
        {"event": "chunk", "request": "0.0", "instance": "a", "new_tokens": 4, "finished": True},
        {"event": "cancel", "group": 0, "open": 1, "running": ["0.1"]},
        {"event": "late", "request": "0.1", "instance": "a", "new_tokens": 10, "finished": False},
        {"event": "lose_instance", "instance": "a", "requests": []},
    ]


# Anything, in any order.


class Disorder(RuleBasedStateMachine):
    """Launches, ends, losses and cancels at random, beside a plain count of what must be true."""

    policy = "fifo"

    def __init__(self) -> None:
        super().__init__()
        self.events: list[Event] = []
        self.lengths: dict[str, int] = {}
        self.scheduler = Scheduler(
            build_policy(self.policy, true_length=lambda ask: self.lengths[ask.id]),
            chunk_tokens=7,
            record=self.events.append,
        )
        self.instances: dict[str, InstanceState] = {}
        self.open: dict[str, int] = {}  # request -> tokens reported
        self.running: dict[str, Dispatch] = {}
        self.over: list[ChunkEnded] = []  # news that comes too late, or twice
        self.finished: Counter[str] = Counter()
        self.cancelled: set[str] = set()
        self.num_groups = self.num_instances = 0

    @rule(kv_tokens=st.integers(40, 120), rows=st.integers(1, 5))
    def add_instance(self, kv_tokens: int, rows: int) -> None:
        name = f"i{self.num_instances}"
        self.num_instances += 1
        self.instances[name] = InstanceState(name=name, kv_tokens=kv_tokens, max_running=rows)
        self.scheduler.add_instance(self.instances[name])

    @rule(prompt=st.integers(1, 10), lengths=st.lists(st.integers(1, 30), min_size=1, max_size=4))
    def launch(self, prompt: int, lengths: list[int]) -> None:
        asks = group(self.num_groups, len(lengths), prompt=prompt, max_tokens=30)
        self.num_groups += 1
        self.lengths |= {ask.id: length for ask, length in zip(asks, lengths, strict=True)}
        self.open |= dict.fromkeys((ask.id for ask in asks), 0)
        self.scheduler.launch(asks)

    @rule()
    def dispatch(self) -> None:
        for dispatch in self.scheduler.next_dispatches():
            request = dispatch.ask.id
            assert request in self.open and request not in self.running
            assert dispatch.generated == self.open[request] and dispatch.instance in self.instances
            left = dispatch.ask.max_tokens - dispatch.generated
            assert dispatch.max_tokens == (left if self.policy == "group" else min(7, left))
            self.running[request] = dispatch

    @precondition(lambda self: self.running)
    @rule(number=st.integers(0, 1000), early=st.booleans())
    def end_chunk(self, number: int, early: bool) -> None:
        request = [*self.running][number % len(self.running)]
        dispatch = self.running.pop(request)
        left = self.lengths[request] - dispatch.generated
        tokens = min(left, dispatch.max_tokens)
        if early and tokens > 1:
            tokens -= 1  # put out before its chunk was full
        news = ended(dispatch, tokens, finished=tokens == left)
        if news.finished:
            del self.open[request]
            self.finished[request] += 1
            self.over.append(news)
        else:
            self.open[request] += tokens
        self.scheduler.chunk_ended(news)

    @precondition(lambda self: self.instances)
    @rule(number=st.integers(0, 1000), finished=st.booleans())
    def lose_instance(self, number: int, finished: bool) -> None:
        name = [*self.instances][number % len(self.instances)]
        del self.instances[name]
        lost = {request: chunk for request, chunk in self.running.items() if chunk.instance == name}
        assert {ask.id for ask in self.scheduler.lose_instance(name)} == set(lost)
        for request, dispatch in lost.items():
            del self.running[request]
            self.over.append(ended(dispatch, finished=finished))

    @precondition(lambda self: self.num_groups)
    @rule(number=st.integers(0, 1000), finished=st.booleans())
    def cancel(self, number: int, finished: bool) -> None:
        chosen = number % self.num_groups
        requests = {request for request in self.open if request.split(".")[0] == str(chosen)}
        running = {request: self.running.pop(request) for request in requests & set(self.running)}
        stopped = self.scheduler.cancel_group(chosen)
        assert {dispatch.ask.id: dispatch for dispatch in stopped} == running
        self.over += [ended(dispatch, finished=finished) for dispatch in stopped]
        self.cancelled |= requests
        for request in requests:
            del self.open[request]

    @precondition(lambda self: self.over)
    @rule(number=st.integers(0, 1000))
    def hear_late_news(self, number: int) -> None:
        self.scheduler.chunk_ended(self.over[number % len(self.over)])

    @invariant()
    def counts_agree(self) -> None:
        assert self.scheduler.num_running == len(self.running)
        assert self.scheduler.num_waiting == len(self.open) - len(self.running)

    @invariant()
    def reservations_agree(self) -> None:
        free = {name: state.kv_tokens for name, state in self.instances.items()}
        rows = Counter(dispatch.instance for dispatch in self.running.values())
        for dispatch in self.running.values():
            free[dispatch.instance] -= dispatch.ask.prompt_tokens + dispatch.generated + dispatch.max_tokens
        assert self.scheduler.free_tokens == free
        if self.policy != "group":
            assert all(tokens >= 0 for tokens in free.values())
            assert all(rows[name] <= state.max_running for name, state in self.instances.items())

    @invariant()
    def whole_groups_are_together(self) -> None:
        pairs = {(dispatch.ask.group, dispatch.instance) for dispatch in self.running.values()}
        assert self.policy != "group" or len(pairs) == len({number for number, _ in pairs})

    def teardown(self) -> None:
        """However it was left: with one more instance every request ends, once, and all room comes back."""
        self.add_instance(40, 3)
        while self.open:
            self.dispatch()
            assert self.running, "requests wait, nothing runs, and an instance could hold any of them"
            self.end_chunk(0, False)
            self.counts_agree()
            self.reservations_agree()
        assert set(self.finished) | self.cancelled == set(self.lengths)
        assert not set(self.finished) & self.cancelled
        assert self.scheduler.next_dispatches() == [] and not self.scheduler.stalled
        assert self.scheduler.free_tokens == {name: state.kv_tokens for name, state in self.instances.items()}
        self.check_events()

    def check_events(self) -> None:
        """The timeline alone tells how every request ended, and how many tokens it came to."""
        chunks = [event for event in self.events if event["event"] == "chunk"]
        assert Counter(event["request"] for event in chunks if event["finished"]) == self.finished
        tokens: Counter[str] = Counter()
        for event in chunks:
            tokens[event["request"]] += event["new_tokens"]
        assert all(tokens[request] == self.lengths[request] for request in self.finished)
        assert self.scheduler.decisions == sum(event["event"] == "dispatch" for event in self.events)


@pytest.mark.parametrize("policy", POLICIES)
def test_in_any_order_every_request_ends_once_and_room_is_kept(policy: str) -> None:
    machine = type("Disorder", (Disorder,), {"policy": policy})
    run_state_machine_as_test(
        machine, settings=settings(max_examples=100, stateful_step_count=40, deadline=None)
    )


# Cost.


@pytest.mark.parametrize("policy", POLICIES)
def test_a_decision_among_many_takes_no_more_python_than_one_among_few(policy: str) -> None:
    """Bytecodes, not seconds: whatever scans, sorts or rebuilds would show."""
    few, many = (bytecodes_per_decision(policy, groups) for groups in (20, 2000))
    assert 100 < many < 1.5 * few


def bytecodes_per_decision(policy: str, groups: int) -> float:
    scheduler = build(policy, a=10**6, b=10**6)
    running: list[Dispatch] = []
    for number in range(groups):
        scheduler.launch(group(number, 8))
    running += scheduler.next_dispatches()

    def decide() -> None:
        for number in range(60):
            scheduler.chunk_ended(ended(running.pop(0), 1, finished=number % 4 == 0))
            running.extend(scheduler.next_dispatches())

    return count_bytecodes(decide) / 60


def count_bytecodes(act: Callable[[], None]) -> int:
    count = 0

    def trace(frame: Any, event: str, _: Any) -> Any:
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        act()
    finally:
        sys.settrace(before)
    return count
