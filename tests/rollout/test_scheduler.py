"""Chunks and places, faults and races, case by case."""

from __future__ import annotations

from collections import Counter

import pytest
from small_schedules import build, ended, group, places

from foresail.rollout.plan import InstanceState
from foresail.rollout.scheduler import Event

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
    assert [dispatch.spec.group for dispatch in scheduler.next_dispatches()] == [0]


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
            order.append(dispatches[0].spec.id)
            scheduler.chunk_ended(ended(dispatches[0], 1 + dispatches[0].spec.group, finished=True))
        return order

    assert order(times=0) == order(times=5)


def test_whole_groups_stay_together_and_queue_at_the_least_loaded_instance() -> None:
    scheduler = build("group", a=100, b=100)
    for number in range(4):
        scheduler.launch(group(number, 3))
    dispatches = scheduler.next_dispatches()
    assert {dispatch.max_tokens for dispatch in dispatches} == {40}
    homes = {dispatch.spec.group: dispatch.instance for dispatch in dispatches}
    assert len(dispatches) == 12 and homes == {0: "a", 1: "b", 2: "a", 3: "b"}
    assert all(homes[dispatch.spec.group] == dispatch.instance for dispatch in dispatches)


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
    assert [spec.id for spec in scheduler.lose_instance("a")] == ["0.1", "0.0"]
    again = scheduler.next_dispatches()
    assert [(dispatch.spec.id, dispatch.generated) for dispatch in again] == [("0.0", 7), ("0.1", 0)]
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


def test_news_that_comes_twice_is_not_taken_for_that_of_the_next_chunk() -> None:
    scheduler = build(a=100)
    scheduler.launch(group(0))
    (first,) = scheduler.next_dispatches()
    assert scheduler.chunk_ended(ended(first))
    assert not scheduler.chunk_ended(ended(first))
    (second,) = scheduler.next_dispatches()
    assert second.instance == first.instance
    assert not scheduler.chunk_ended(ended(first))
    assert (scheduler.num_running, second.generated) == (1, 10)
    assert scheduler.chunk_ended(ended(second, finished=True))


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


# Requests that come one by one.


def test_a_request_may_join_at_any_time_and_in_any_order_of_groups() -> None:
    scheduler = build("context", a=100, chunk_tokens=None)
    late, early = group(4, 2), group(2, 1)
    scheduler.join(late[0], hold=True)
    scheduler.join(early[0])
    for dispatch in scheduler.next_dispatches():
        scheduler.chunk_ended(ended(dispatch, finished=True))
    assert scheduler.holds("4.0") and not scheduler.holds("2.0")
    scheduler.release("4.0")  # its group has ended, and goes on with another
    scheduler.join(late[1], hold=True)
    assert places(scheduler.next_dispatches()) == [("4.1", "a")]
    scheduler.cancel_group(4)
    assert (scheduler.num_waiting, scheduler.num_running) == (0, 0)
    assert scheduler.free_tokens == {"a": 100}
    scheduler.launch(group(5))


def test_a_request_that_fits_nowhere_cannot_join() -> None:
    with pytest.raises(ValueError, match="may come to 45 tokens"):
        build(a=40).join(group(0)[0])
