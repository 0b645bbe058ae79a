"""Draft lengths: the model of time a token, both allocations, and what acceptance is measured to be."""

from __future__ import annotations

import random
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from foresail.rollout.drafts.allocation import (
    Acceptance,
    Lengths,
    allocate,
    allocate_as_printed,
    best_length,
    plan_lengths,
    time_per_token,
)
from foresail.rollout.drafts.step_times import StepTimes, line
from foresail.rollout.step_table import MeasuredStep, read_step_table

MEASURED = Path(__file__).parents[2] / "benchmarks/measured/h200_step_costs.json"
GEOMETRIC = 0.6 ** np.arange(17)


def test_time_per_token_is_what_simulated_steps_take() -> None:
    numbers = random.Random(0)
    alpha, length, steps = 0.7, 4, 40_000
    drawn = 0
    for _ in range(steps):
        accepted = 0
        while accepted < length and numbers.random() < alpha:
            accepted += 1
        drawn += accepted + 1
    assert time_per_token(alpha ** np.arange(9), length, 3.0, 0.5) == pytest.approx(
        3.5 * steps / drawn, rel=0.01
    )


@pytest.mark.parametrize(("alpha", "length"), [(0.3, 1), (0.6, 5), (0.9, 8)])
def test_time_per_token_is_the_printed_formula(alpha: float, length: int) -> None:
    printed = (1 - alpha) * (0.5 + 3.0) / (1 - alpha ** (length + 1))
    assert time_per_token(alpha ** np.arange(9), length, 3.0, 0.5) == pytest.approx(printed)


def test_drafts_are_off_where_a_plain_step_is_faster() -> None:
    def dear(batch: int, length: float, context: int) -> float:
        return 1.0 + length

    def free(batch: int, length: float, context: int) -> float:
        return 1.0

    assert best_length(64, 500, Acceptance(alpha=0.99), dear) == 0
    assert best_length(64, 500, Acceptance(alpha=0.1), free) == 8
    assert best_length(64, 500, Acceptance(alpha=0.0), free) == 0
    assert best_length(64, 500, Acceptance(alpha=0.5), free, draft_time=lambda batch, length: 2.0) == 0
    assert plan_lengths(10, 54, 500, Acceptance(), dear) == Lengths(0, 0)
    assert plan_lengths(0, 0, 500, Acceptance(), free) == Lengths(0, 0)


def test_the_printed_algorithm_favours_low_priority_and_the_corrected_one_high() -> None:
    assert allocate_as_printed(40, 40, 240, GEOMETRIC) == Lengths(high=2, low=4)
    assert allocate(40, 40, 240, GEOMETRIC) == Lengths(high=4, low=2)


def test_the_printed_algorithm_by_hand() -> None:
    # One token for each of 4 high ones, 12 left. Falls: high 4 (.6 - .36) = .96, low 2 × 2 (1 - .6) = 1.6: low.
    # Then .96 > 2 × 2 (.6 - .36) = .96 is not: low again, 8 left; .96 > .576: high, 4 left; .576 > .576 is not:
    # low, 2 left; .576 > 2 × 2 (.216 - .1296) = .3456, but 2 are too few for four rows: low, none left.
    assert allocate_as_printed(4, 2, 16, GEOMETRIC) == Lengths(high=2, low=4)
    assert allocate_as_printed(4, 2, 3, GEOMETRIC) == Lengths(0, 0)
    assert allocate_as_printed(0, 2, 40, GEOMETRIC, max_length=16).low == 16


@pytest.mark.parametrize("seed", range(30))
def test_the_corrected_allocation_is_the_best_of_all_where_both_sides_are_equally_many(seed: int) -> None:
    numbers = random.Random(seed)
    survival = sorted([1.0, *(numbers.random() for _ in range(16))], reverse=True)
    rows, max_length, priority = (
        numbers.randrange(1, 9),
        numbers.randrange(1, 9),
        numbers.choice([1.0, 2.0, 4.0]),
    )
    budget = numbers.randrange(0, 2 * rows * max_length + 3)

    def worth(lengths: tuple[int, int]) -> float:
        high, low = (sum(survival[1 : length + 1]) for length in lengths)
        return rows * (priority * high + low)

    possible = [
        lengths for lengths in product(range(max_length + 1), repeat=2) if rows * sum(lengths) <= budget
    ]
    found = allocate(rows, rows, budget, survival, priority=priority, max_length=max_length)
    assert found in possible
    assert worth(found) == pytest.approx(max(map(worth, possible)))


@pytest.mark.parametrize("rule", [allocate, allocate_as_printed])
def test_no_allocation_spends_more_than_its_budget(rule: object) -> None:
    numbers = random.Random(1)
    for _ in range(300):
        high, low, budget = numbers.randrange(40), numbers.randrange(40), numbers.randrange(400)
        lengths = rule(high, low, budget, GEOMETRIC)  # type: ignore[operator]
        assert high * lengths.high + low * lengths.low <= budget
        assert max(lengths) <= 8


def test_acceptance_is_learnt_however_long_the_drafts_were_allowed_to_be() -> None:
    numbers = np.random.default_rng(0)
    chances = np.array([0.9, 0.8, 0.7, 0.6, 0.9, 0.5, 0.4, 0.8])
    acceptance = Acceptance(alpha=0.1, memory=1e5)
    for _ in range(300):
        asked = numbers.integers(0, 9, size=100)
        right = numbers.random((100, 8)) < chances
        accepted = np.minimum(np.cumprod(right, axis=1).sum(1), asked)
        acceptance.record(asked, asked, accepted)
    assert acceptance.beta[:9] == pytest.approx([1, *np.cumprod(chances)], abs=0.02)
    assert acceptance.tokens_to_check(5) == 5


def test_drafts_that_were_not_found_cost_nothing_and_bring_nothing() -> None:
    acceptance = Acceptance(alpha=0.5, weight=1e-6)
    acceptance.record([8, 8, 8, 8], [0, 0, 4, 2], [0, 0, 4, 0])
    assert acceptance.beta[1] == pytest.approx(0.25, abs=1e-3)
    assert acceptance.tokens_to_check(8) == pytest.approx(6 / 4, abs=1e-3)


def test_lengths_nobody_tried_have_the_mean_chance() -> None:
    acceptance = Acceptance(alpha=0.5, weight=1.0, memory=1e9)
    acceptance.record([2] * 1000, [2] * 1000, [2] * 900 + [0] * 100)
    assert acceptance.beta[3] / acceptance.beta[2] == pytest.approx(acceptance.alpha, abs=0.01)
    assert acceptance.alpha == pytest.approx(1800 / 1900, abs=0.01)


def test_what_was_accepted_long_ago_is_forgotten() -> None:
    acceptance = Acceptance(memory=4, weight=0.01)
    for _ in range(20):
        acceptance.record([4] * 50, [4] * 50, [4] * 50)
    assert acceptance.alpha > 0.99
    for _ in range(40):
        acceptance.record([4], [4], [0])  # by one row as well as by fifty
    assert acceptance.alpha < 0.01


def test_before_anything_is_measured_a_chance_is_assumed() -> None:
    assert Acceptance(alpha=0.3).alpha == pytest.approx(0.3)
    assert Acceptance(alpha=0.3).beta == pytest.approx(0.3 ** np.arange(17))


def test_measured_times_are_given_back_and_joined_by_lines() -> None:
    rows = [(1, 0, 100, 5), (1, 0, 300, 7), (1, 2, 100, 8), (1, 4, 100, 12), (3, 0, 100, 9)]
    times = StepTimes(MeasuredStep(*row) for row in rows)
    assert times(1, 0, 100) == 5
    assert times(1, 0, 200) == 6
    assert times(1, 3, 100) == 10
    assert times(2, 0, 100) == 7
    assert line({1: 10.0, 3: 20.0}, 5) == 30
    assert line({1: 10.0, 3: 20.0}, 0) == 10


def test_on_the_measured_card_few_rows_speculate_and_many_do_not() -> None:
    times, acceptance = StepTimes(read_step_table(MEASURED, "7B")), Acceptance(alpha=0.6)
    assert times(256, 0, 521) == 8.99
    lengths = [plan_lengths(0, rows, 700, acceptance, times).low for rows in (1, 16, 64, 256, 1024)]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[0] == 8
    assert lengths[-2:] == [0, 0]
    with pytest.raises(ValueError, match='for "70B"'):
        read_step_table(MEASURED, "70B")
