"""The scheduler under random launches, ends, losses and cancels; and what a decision costs."""

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
from small_schedules import POLICIES, build, ended, group

from foresail.rollout.plan import ChunkEnded, Dispatch, InstanceState, SampleSpec
from foresail.rollout.policies import build_policy
from foresail.rollout.scheduler import Event, Scheduler

# Anything, in any order.


class Disorder(RuleBasedStateMachine):
    """Launches, ends, losses and cancels at random, beside a plain count of what must be true."""

    policy = "fifo"

    def __init__(self) -> None:
        super().__init__()
        self.events: list[Event] = []
        self.lengths: dict[str, int] = {}
        self.specs: dict[str, SampleSpec] = {}
        self.scheduler = Scheduler(
            build_policy(self.policy, true_length=lambda spec: self.lengths[spec.id]),
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
        specs = group(self.num_groups, len(lengths), prompt=prompt, max_tokens=30)
        self.num_groups += 1
        self.lengths |= {spec.id: length for spec, length in zip(specs, lengths, strict=True)}
        self.open |= dict.fromkeys((spec.id for spec in specs), 0)
        self.specs |= {spec.id: spec for spec in specs}
        self.scheduler.launch(specs)

    @rule()
    def dispatch(self) -> None:
        for dispatch in self.scheduler.next_dispatches():
            request = dispatch.spec.id
            assert request in self.open and request not in self.running
            assert dispatch.generated == self.open[request] and dispatch.instance in self.instances
            left = dispatch.spec.max_tokens - dispatch.generated
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
        else:
            self.open[request] += tokens
        assert self.scheduler.chunk_ended(news)
        self.over.append(news)

    @precondition(lambda self: self.instances)
    @rule(number=st.integers(0, 1000), finished=st.booleans())
    def lose_instance(self, number: int, finished: bool) -> None:
        name = [*self.instances][number % len(self.instances)]
        del self.instances[name]
        lost = {request: chunk for request, chunk in self.running.items() if chunk.instance == name}
        assert {spec.id for spec in self.scheduler.lose_instance(name)} == set(lost)
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
        assert {dispatch.spec.id: dispatch for dispatch in stopped} == running
        self.over += [ended(dispatch, finished=finished) for dispatch in stopped]
        self.cancelled |= requests
        for request in requests:
            del self.open[request]

    @precondition(lambda self: self.open)
    @rule(number=st.integers(0, 1000), finished=st.booleans())
    def cancel_one(self, number: int, finished: bool) -> None:
        request = [*self.open][number % len(self.open)]
        dispatch = self.running.pop(request, None)
        assert self.scheduler.cancel_request(self.specs[request]) == dispatch
        assert self.scheduler.cancel_request(self.specs[request]) is None
        self.over += [] if dispatch is None else [ended(dispatch, finished=finished)]
        self.cancelled.add(request)
        del self.open[request]

    @precondition(lambda self: self.over)
    @rule(number=st.integers(0, 1000))
    def hear_late_news(self, number: int) -> None:
        assert not self.scheduler.chunk_ended(self.over[number % len(self.over)])

    @invariant()
    def counts_agree(self) -> None:
        assert self.scheduler.num_running == len(self.running)
        assert self.scheduler.num_waiting == len(self.open) - len(self.running)

    @invariant()
    def reservations_agree(self) -> None:
        free = {name: state.kv_tokens for name, state in self.instances.items()}
        rows = Counter(dispatch.instance for dispatch in self.running.values())
        for dispatch in self.running.values():
            free[dispatch.instance] -= dispatch.spec.prompt_tokens + dispatch.generated + dispatch.max_tokens
        assert self.scheduler.free_tokens == free
        if self.policy != "group":
            assert all(tokens >= 0 for tokens in free.values())
            assert all(rows[name] <= state.max_running for name, state in self.instances.items())

    @invariant()
    def whole_groups_are_together(self) -> None:
        pairs = {(dispatch.spec.group, dispatch.instance) for dispatch in self.running.values()}
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
    count_bytecodes(lambda: None)  # the first trace of a process counts none in Python 3.12
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
