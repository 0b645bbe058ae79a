from __future__ import annotations

import heapq
import math
import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from statistics import fmean, pstdev

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_rollouts import graded_group

from foresail.records import Group
from foresail.rollout.collect import teaches
from foresail.rollout.controller import Controller, StepEnd, launches_for

VALID, INVALID = True, False
# Pick one of the groups under way: the one that ends next.
Ending = Callable[[Sequence[int]], int]


def finish(controller: Controller, outcomes: Sequence[bool], ends: Ending) -> tuple[StepEnd, int]:
    """Drive a step to its end: group n becomes outcomes[n], and `ends` says which is next. Also: launches."""
    running: list[int] = []
    count = 0
    while (closing := controller.closing()) is None:
        for _ in range(controller.next_launches()):
            controller.launched(count)
            running.append(count)
            count += 1
        assert running, "nothing runs, nothing is launched, and the step is open"
        assert controller.num_active == len(running)
        group = ends(running)
        running.remove(group)
        controller.scored(group, valid=outcomes[group])
    return closing, count


def in_order_of(marks: Sequence[float]) -> Ending:
    return lambda running: min(running, key=lambda group: marks[group])


def first(running: Sequence[int]) -> int:
    return running[0]


def last(running: Sequence[int]) -> int:
    return running[-1]


# The step's end.


def launch_all(controller: Controller, count: int) -> None:
    for group in range(count):
        controller.launched(group)


def test_the_step_closes_on_the_shortest_prefix_that_suffices():
    controller = Controller(num_groups=2, cap=9)
    launch_all(controller, 6)
    for group, outcome in [(3, VALID), (2, VALID), (4, INVALID), (0, VALID)]:
        controller.scored(group, valid=outcome)
        assert controller.closing() is None  # three are valid, but 1 came before two of them and still runs
    controller.scored(1, valid=INVALID)
    assert controller.closing() == StepEnd(
        prefix=(0, 1, 2), chosen=(0, 2), surplus=(3,), cancelled=(5,), share=pytest.approx((2 + 2) / (3 + 2))
    )


def test_a_long_group_inside_the_prefix_is_waited_for_and_chosen():
    controller = Controller(num_groups=2, cap=9)
    launch_all(controller, 4)
    for group in (1, 2, 3):
        controller.scored(group, valid=VALID)
    assert controller.closing() is None
    assert controller.next_launches() == 0
    controller.scored(0, valid=VALID)
    closing = controller.closing()
    assert closing is not None
    assert (closing.chosen, closing.surplus, closing.cancelled) == ((0, 1), (2, 3), ())


def test_verdicts_that_come_after_the_closing_change_nothing():
    controller = Controller(num_groups=1, cap=9)
    launch_all(controller, 4)
    controller.scored(0, valid=VALID)
    controller.scored(2, valid=VALID)  # before anyone asked: still part of the accounts
    closing = controller.closing()
    assert closing is not None
    assert (closing.surplus, closing.cancelled) == ((2,), (1, 3))
    controller.scored(1, valid=VALID)
    assert controller.closing() == closing
    assert controller.next_launches() == 0


def test_at_the_cap_the_step_closes_on_what_there_is():
    closing, count = finish(Controller(num_groups=3, cap=5), [INVALID, VALID, INVALID, VALID, INVALID], last)
    assert count == 5
    assert (closing.prefix, closing.chosen) == ((0, 1, 2, 3, 4), (1, 3))
    assert closing.surplus == closing.cancelled == ()


def test_at_the_cap_running_groups_are_waited_for():
    controller = Controller(num_groups=3, cap=3)
    launch_all(controller, 3)
    controller.scored(0, valid=INVALID)
    controller.scored(2, valid=INVALID)
    assert controller.next_launches() == 0
    assert controller.closing() is None
    controller.scored(1, valid=INVALID)
    closing = controller.closing()
    assert closing is not None
    assert closing.chosen == ()
    assert closing.prefix == (0, 1, 2)


def test_group_numbers_need_not_count_from_zero():
    controller = Controller(num_groups=1, cap=3)
    for group in (70, 12, 41):
        controller.launched(group)
    controller.scored(41, valid=VALID)
    controller.scored(12, valid=VALID)
    controller.scored(70, valid=INVALID)
    closing = controller.closing()
    assert closing is not None
    assert (closing.prefix, closing.chosen, closing.surplus) == ((70, 12), (12,), (41,))


def test_a_group_is_launched_once_and_scored_once():
    controller = Controller(num_groups=2, cap=4)
    launch_all(controller, 2)
    with pytest.raises(AssertionError, match="group 1 is launched twice"):
        controller.launched(1)
    controller.scored(0, valid=INVALID)
    with pytest.raises(AssertionError, match="group 0 is scored twice"):
        controller.scored(0, valid=VALID)
    with pytest.raises(KeyError):
        controller.scored(3, valid=VALID)


def test_nothing_is_launched_beyond_the_cap_or_after_the_end():
    controller = Controller(num_groups=2, cap=2)
    launch_all(controller, 2)
    with pytest.raises(AssertionError, match="without need"):
        controller.launched(2)
    controller = Controller(num_groups=1, cap=5)
    controller.launched(0)
    controller.scored(0, valid=VALID)
    with pytest.raises(AssertionError, match="without need"):
        controller.launched(1)


# How many to launch.


@pytest.mark.parametrize(
    ("missing", "share", "expected"),
    [(8, 1.0, 8), (8, 0.5, 16), (1, 0.3, 4), (0, 0.5, 0), (-2, 0.5, 0), (6, 0.6, 10), (21, 0.7, 30)],
)
def test_launches_suffice_by_expectation(missing, share, expected):
    assert launches_for(missing, share) == expected


def test_launches_follow_the_share_of_valid_groups():
    controller = Controller(num_groups=4, cap=99, share_before=0.5, weight_before=8)
    assert controller.next_launches() == 8
    launch_all(controller, 8)
    assert controller.next_launches() == 0
    for group in range(4):
        controller.scored(group, valid=INVALID)
    assert controller.share == pytest.approx(4 / 12)
    assert controller.next_launches() == 12 - 4  # 4 missing at a third each, and 4 run
    controller.scored(4, valid=VALID)
    assert controller.share == pytest.approx(5 / 13)
    assert controller.next_launches() == 8 - 3  # 3 missing at 5/13 each
    for group in (5, 6, 7):
        controller.scored(group, valid=VALID)
    assert controller.next_launches() == 0


def test_an_unknown_share_launches_what_is_wanted():
    assert Controller(num_groups=32, cap=128).next_launches() == 32


def test_what_was_known_before_weighs_as_much_as_the_step_wants():
    controller = Controller(num_groups=64, cap=999, share_before=0.5)
    launch_all(controller, controller.next_launches())
    for group in range(8):
        controller.scored(group, valid=INVALID)  # the first to end are often the easy ones
    assert controller.share == pytest.approx(32 / 72)
    assert controller.next_launches() == 144 - 120


def test_the_next_step_learns_from_the_prefix_only():
    """How many later groups ended in time is the machine's doing, and may not move a run's state."""
    outcomes = [VALID, INVALID, VALID, *[VALID] * 20]
    shares = set()
    for scored_later in range(5):
        controller = Controller(num_groups=2, cap=20, share_before=0.75, weight_before=4)
        launch_all(controller, 8)
        for group in (*range(3, 3 + scored_later), 0, 1, 2):
            controller.scored(group, valid=outcomes[group])
        closing = controller.closing()
        assert closing is not None
        shares.add(closing.share)
    assert shares == {(2 + 3) / (3 + 4)}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_groups": 0, "cap": 4}, "1 or more, not 0 and 4"),
        ({"num_groups": 4, "cap": 0}, "1 or more, not 4 and 0"),
        ({"num_groups": 4, "cap": 4, "share_before": 0.0}, "share_before 0.0 is no share"),
        ({"num_groups": 4, "cap": 4, "share_before": 1.5}, "share_before 1.5 is no share"),
        ({"num_groups": 4, "cap": 4, "weight_before": 0}, "use a number above 0"),
    ],
)
def test_impossible_settings_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Controller(**options)


# Against a reference that rescans every launch after every event.


class Rescan:
    """The rules as they are written down, with exact fractions and no memory but the events."""

    def __init__(self, *, num_groups: int, cap: int, share_before: float, weight_before: float) -> None:
        self.num_groups, self.cap = num_groups, cap
        self.share_before, self.weight_before = Fraction(share_before), Fraction(weight_before)
        self.events: dict[int, bool | None] = {}

    def prefix(self) -> list[int] | None:
        groups = list(self.events)
        for length in range(1, len(groups) + 1):
            prefix = groups[:length]
            if all(self.events[group] is not None for group in prefix):
                valid = sum(bool(self.events[group]) for group in prefix)
                if valid == self.num_groups or length == self.cap:
                    return prefix
        return None

    def next_launches(self) -> int:
        scored = [outcome for outcome in self.events.values() if outcome is not None]
        valid = sum(scored)
        share = (valid + self.weight_before * self.share_before) / (len(scored) + self.weight_before)
        launches = 0
        while (
            self.prefix() is None
            and (len(self.events) - len(scored) + launches) * share < self.num_groups - valid
            and len(self.events) + launches < self.cap
        ):
            launches += 1
        return launches

    def closing(self) -> StepEnd | None:
        prefix = self.prefix()
        if prefix is None:
            return None
        later = [group for group in self.events if group not in prefix]
        chosen = [group for group in prefix if self.events[group]]
        before = self.weight_before * self.share_before
        return StepEnd(
            prefix=tuple(prefix),
            chosen=tuple(chosen),
            surplus=tuple(group for group in later if self.events[group] == VALID),
            cancelled=tuple(group for group in later if self.events[group] is None),
            share=pytest.approx(float((len(chosen) + before) / (len(prefix) + self.weight_before))),
        )


steps = st.fixed_dictionaries(
    {
        "num_groups": st.integers(1, 8),
        "cap": st.integers(1, 24),
        "share_before": st.integers(1, 16).map(lambda sixteenths: sixteenths / 16),
        "weight_before": st.integers(1, 12),
    }
)
validity = st.lists(st.sampled_from([VALID, INVALID]), min_size=24, max_size=24)
orders = st.randoms(use_true_random=False)


@settings(max_examples=300, deadline=None)
@given(options=steps, outcomes=validity, order=orders)
def test_every_decision_is_the_reference_s(options, outcomes, order):
    controller, reference = Controller(**options), Rescan(**options)
    while reference.closing() is None:
        launches = reference.next_launches()
        assert controller.next_launches() == launches
        assert controller.closing() is None
        for _ in range(launches):
            controller.launched(group := len(reference.events))
            reference.events[group] = None
        group = order.choice([group for group, outcome in reference.events.items() if outcome is None])
        controller.scored(group, valid=outcomes[group])
        reference.events[group] = outcomes[group]
    assert controller.next_launches() == reference.next_launches() == 0
    assert controller.closing() == reference.closing()


@settings(max_examples=300, deadline=None)
@given(options=steps, outcomes=validity, order=orders)
def test_the_order_in_which_groups_end_does_not_choose(options, outcomes, order):
    """Chosen are the first valid ones in launch order, whatever ended when and however many were launched."""
    cap, wanted = options["cap"], options["num_groups"]
    valid = [group for group in range(cap) if outcomes[group]][:wanted]
    length = valid[-1] + 1 if len(valid) == wanted else cap
    for ends in (first, last, order.choice):
        closing, count = finish(Controller(**options), outcomes, ends)
        assert closing.chosen == tuple(valid)
        assert closing.prefix == tuple(range(length))
        assert not set(closing.cancelled) & set(closing.prefix)
        assert length <= count <= cap


@settings(max_examples=200, deadline=None)
@given(options=steps, outcomes=validity, others=validity, order=orders)
def test_groups_after_the_prefix_do_not_matter(options, outcomes, others, order):
    marks = [order.random() for _ in outcomes]
    closing, _ = finish(Controller(**options), outcomes, in_order_of(marks))
    changed = [*outcomes[: len(closing.prefix)], *others[len(closing.prefix) :]]
    again, _ = finish(Controller(**options), changed, in_order_of(marks))
    assert (again.prefix, again.chosen, again.share) == (closing.prefix, closing.chosen, closing.share)


# Validation.


@settings(max_examples=50, deadline=None)
@given(outcomes=st.lists(st.sampled_from([VALID, INVALID]), min_size=1, max_size=24), order=orders)
def test_validation_launches_all_at_once_and_cancels_none(outcomes, order):
    controller = Controller.for_all(len(outcomes))
    assert controller.next_launches() == len(outcomes)
    closing, count = finish(controller, outcomes, order.choice)
    assert count == len(outcomes)
    assert closing.prefix == tuple(range(count))
    assert closing.cancelled == closing.surplus == ()


@pytest.mark.parametrize("max_active", [1, 3, 40])
def test_no_more_groups_are_under_way_than_may_be(max_active):
    controller, numbers, order = (
        Controller.for_all(30, max_active=max_active),
        iter(range(30)),
        random.Random(0),
    )
    active: list[int] = []
    most = 0
    while controller.closing() is None:
        for _ in range(controller.next_launches()):
            active.append(next(numbers))
            controller.launched(active[-1])
        most = max(most, len(active))
        controller.scored(active.pop(order.randrange(len(active))), valid=VALID)
    assert most == min(max_active, 30) and not active and next(numbers, None) is None


# Lengths.


def play_step(rng: random.Random, *, num_groups: int) -> tuple[list[float], list[float]]:
    """Lengths of the chosen groups, and of the valid ones that ended first, when all run side by side."""
    controller = Controller(num_groups=num_groups, cap=100 * num_groups, share_before=0.5)
    lengths: list[float] = []
    running: list[tuple[float, int]] = []
    ended: list[int] = []
    now = 0.0
    while (closing := controller.closing()) is None:
        for _ in range(controller.next_launches()):
            controller.launched(len(lengths))
            lengths.append(rng.lognormvariate(0, 1))
            heapq.heappush(running, (now + lengths[-1], len(lengths) - 1))
        now, group = heapq.heappop(running)
        outcome = VALID if rng.random() < 0.5 else INVALID  # whatever its length
        controller.scored(group, valid=outcome)
        if outcome:
            ended.append(group)
    assert len(closing.chosen) == num_groups
    return [lengths[group] for group in closing.chosen], [lengths[group] for group in ended[:num_groups]]


def test_chosen_lengths_are_the_population_s_and_first_come_ones_are_not():
    rng = random.Random(0)
    played = [play_step(rng, num_groups=16) for _ in range(600)]
    chosen = [length for lengths, _ in played for length in lengths]
    first_come = [length for _, lengths in played for length in lengths]
    assert len(chosen) == len(first_come) == 9600
    mean = math.exp(1 / 2)
    error = math.sqrt((math.e - 1) * math.e / len(chosen))  # 0.022: lognormal(0, 1) has this variance
    assert abs(fmean(chosen) - mean) < 3 * error
    assert fmean(first_come) < 0.7 * mean
    # The tail too: the share above the population's 95 % point, with binomial noise.
    long = math.exp(1.6449)
    assert abs(fmean(length > long for length in chosen) - 0.05) < 3 * math.sqrt(0.05 * 0.95 / len(chosen))
    assert fmean(length > long for length in first_come) < 0.01


def test_the_first_chosen_are_no_shorter_than_the_last():
    """Where a group stands in its step says nothing of its length either."""
    rng = random.Random(1)
    places = list(zip(*(play_step(rng, num_groups=8)[0] for _ in range(800)), strict=True))
    means = [fmean(lengths) for lengths in places]
    errors = [pstdev(lengths) / math.sqrt(len(lengths)) for lengths in places]
    assert all(abs(a - b) < 4 * max(errors) for a, b in pairwise(means))


# From a graded group.


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        (["correct", "wrong", "correct"], True),
        (["correct", "correct", "correct"], False),
        (["wrong", "unparsable", "wrong"], False),
        (["correct", "wrong", "crashed"], False),
        (["crashed", "timeout", "ungradable"], False),
    ],
)
def test_groups_teach_where_rewards_differ_and_no_verdict_failed(statuses, expected):
    assert teaches(graded_group(statuses)) == expected


def test_right_answers_of_different_rewards_teach():
    """A penalty for length makes rewards differ where every answer is right."""
    group = graded_group(["correct", "correct"])
    shaped = Group(problem=group.problem, samples=(), verdicts=group.verdicts, rewards=(1.0, 0.4))
    assert teaches(shaped)
