from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.data.selection.easy_pool import EasyPool
from foresail.data.selection.launch_order import LaunchOrder, two_uniforms
from foresail.data.selection.order import problem_at
from foresail.rollout.controller import Controller

SOLVED, MIXED, WRONG, FAILED = 1.0, 0.5, 0.0, None  # pass rates


def names(count: int) -> list[str]:
    return [f"p{number}" for number in range(count)]


def launch_order(
    count: int, *easy: int, alpha: float = 0.1, position: int = 0, seed: int = 0, step: int = 1
) -> LaunchOrder:
    pool = EasyPool(alpha=alpha, problems=tuple(f"p{number}" for number in easy))
    return LaunchOrder(names(count), pool, position=position, seed=seed, step=step)


def picks(line: LaunchOrder) -> list[int]:
    return [line.pick(launch) for launch in range(len(line))]


# The pool.


def test_solved_problems_come_in_and_missed_ones_go():
    pool = EasyPool(alpha=0.1, problems=("a", "b", "c"))
    after = pool.after({"d": SOLVED, "b": MIXED, "c": SOLVED, "e": WRONG, "a": WRONG, "f": SOLVED})
    assert after.problems == ("c", "d", "f")
    assert pool.problems == ("a", "b", "c")


@given(st.lists(st.text(), unique=True), st.floats(0, 1))
def test_the_state_survives_json(problems, alpha):
    pool = EasyPool(alpha=alpha, problems=tuple(problems))
    assert EasyPool(alpha=alpha, problems=tuple(json.loads(json.dumps(pool.state())))) == pool


@pytest.mark.parametrize("alpha", [-0.1, 1.1, float("nan")])
def test_alpha_is_a_probability(alpha):
    with pytest.raises(ValueError, match="use one from 0 to 1"):
        EasyPool(alpha=alpha)


# The launch_order.


def test_without_easy_problems_the_data_s_order_is_kept():
    assert picks(launch_order(20, position=40, seed=3)) == [
        problem_at(place, 20, 3) for place in range(40, 60)
    ]
    assert [launch_order(20, position=40, seed=3).position_after(n) for n in range(21)] == list(range(40, 61))


@given(
    count=st.integers(1, 30),
    easy=st.sets(st.integers(0, 29)),
    alpha=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    position=st.integers(0, 100),
    step=st.integers(0, 5),
)
@settings(deadline=None)
def test_a_step_draws_every_problem_once_before_it_runs_out(count, easy, alpha, position, step):
    """Wherever in a pass over the data it starts, and with any pool, even one that holds other data's ids."""
    line = launch_order(count, *easy, alpha=alpha, position=position, step=step)
    assert sorted(picks(line)) == list(range(count))
    with pytest.raises(AssertionError, match="would repeat one"):
        line.pick(count)


@given(easy=st.sets(st.integers(0, 19)), asked=st.permutations(range(20)), position=st.integers(0, 60))
@settings(deadline=None)
def test_draws_do_not_depend_on_the_order_of_calls(easy, asked, position):
    expected = picks(launch_order(20, *easy, alpha=0.4, position=position))
    places = [launch_order(20, *easy, alpha=0.4, position=position).position_after(n) for n in range(21)]
    line = launch_order(20, *easy, alpha=0.4, position=position)
    for launch in asked:
        assert line.pick(launch) == expected[launch]
        assert line.position_after(launch) == places[launch]


@given(easy=st.sets(st.integers(0, 19), max_size=19), position=st.integers(0, 60), step=st.integers(0, 99))
@settings(deadline=None)
def test_the_position_passes_what_was_drawn_from_the_data_and_nothing_else(easy, position, step):
    line = launch_order(20, *easy, alpha=0.4, position=position, step=step)
    drawn: set[int] = set()
    for launch in range(20):
        before, after = line.position_after(launch), line.position_after(launch + 1)
        passed = [problem_at(place, 20, 0) for place in range(before, after)]
        if line.pick(launch) in easy:
            assert passed == []
        else:
            assert passed[-1] == line.pick(launch)
            assert set(passed[:-1]) <= easy | drawn  # skipped: in the pool, or drawn in this step already
            drawn.add(passed[-1])


def test_a_launch_is_easy_with_probability_alpha_and_each_easy_problem_equally_often():
    easy, launches, steps = range(0, 600, 2), 30, 1000
    drawn: Counter[int] = Counter()
    for step in range(steps):
        line = launch_order(600, *easy, alpha=0.1, step=step)
        drawn.update(line.pick(launch) for launch in range(launches))
    total = launches * steps
    counts = [drawn[number] for number in easy]
    assert abs(sum(counts) - 0.1 * total) < 3 * math.sqrt(total * 0.1 * 0.9)
    expected = sum(counts) / len(easy)
    chi_square = sum((count - expected) ** 2 / expected for count in counts)
    freedom = len(easy) - 1
    assert abs(chi_square - freedom) < 3 * math.sqrt(2 * freedom)


def test_an_empty_pool_falls_back_to_the_data_and_the_other_way_round():
    assert picks(launch_order(10, alpha=1.0)) == [problem_at(place, 10, 0) for place in range(10)]
    solved = launch_order(10, *range(10), alpha=0.0, position=7)
    assert sorted(picks(solved)) == list(range(10))
    assert solved.position_after(10) == 7
    two_left = [pick for pick in picks(launch_order(10, *range(8), alpha=0.0)) if pick >= 8]
    assert picks(launch_order(10, *range(8), alpha=0.0))[:2] == two_left
    assert set(picks(launch_order(10, 3, 5, alpha=1.0))[:2]) == {3, 5}


def test_seeds_and_steps_draw_differently_and_stay_what_they_were():
    easy = range(25)
    lines = [launch_order(50, *easy, alpha=0.5), launch_order(50, *easy, alpha=0.5, step=2)]
    assert picks(lines[0]) != picks(lines[1])
    assert two_uniforms(0, 1, 0) != two_uniforms(1, 1, 0)
    # Written down once: a change here would make every old run resume wrongly.
    assert two_uniforms(0, 1, 2) == (0.938396045287491, 0.7237951908273764)
    assert picks(launch_order(8, 0, 1, 2, alpha=0.5)) == [2, 3, 7, 5, 6, 1, 0, 4]


# Pool, launch_order and controller over many steps.


def rate_in(step: int, problem: str) -> float | None:
    """A problem's pass rate in a step, a pure function as the samples' noise makes it; None: not gradable."""
    return random.Random(f"{step} {problem}").choice([SOLVED, MIXED, WRONG, MIXED, FAILED])


State = tuple[int, list[str], float]
Trace = list[tuple[list[str], State]]


def train(state: State, first_step: int, last_step: int, ends: Callable[[list[int]], int]) -> Trace:
    """Chosen problems and the state after every step, when `ends` says which group ends next."""
    ids, trace = names(60), []
    for step in range(first_step, last_step + 1):
        position, easy, share = json.loads(json.dumps(state))
        pool = EasyPool(alpha=0.2, problems=tuple(easy))
        line = LaunchOrder(ids, pool, position=position, seed=5, step=step)
        controller, running, count = Controller(num_groups=6, cap=len(line), share_before=share), [], 0
        while (closing := controller.closing()) is None:
            for _ in range(controller.next_launches()):
                controller.launched(count)
                running.append(count)
                count += 1
            running.remove(group := ends(running))
            controller.scored(group, valid=rate_in(step, ids[line.pick(group)]) == MIXED)
        problems = [ids[line.pick(group)] for group in closing.prefix]
        graded = {problem: rate for problem in problems if (rate := rate_in(step, problem)) is not None}
        state = (line.position_after(len(closing.prefix)), pool.after(graded).state(), closing.share)
        trace.append(([ids[line.pick(group)] for group in closing.chosen], state))
    return trace


@settings(max_examples=20, deadline=None)
@given(order=st.randoms(use_true_random=False), stop=st.integers(1, 24))
def test_a_run_is_the_same_whatever_ends_first_and_wherever_it_is_resumed(order, stop):
    expected = train((0, [], 1.0), 1, 25, lambda running: running[0])
    assert any(easy for _, (_, easy, _) in expected)
    before = train((0, [], 1.0), 1, stop, order.choice)
    after = train(before[-1][1], stop + 1, 25, order.choice)
    assert before + after == expected
