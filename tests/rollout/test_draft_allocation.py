"""Draft lengths: the model of time a token, the allocation, and what acceptance is measured to be."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest

from foresail.rollout.drafts.allocation import (
    Acceptance,
    Lengths,
    allocate,
    best_length,
    plan_lengths,
    time_per_token,
)
from foresail.rollout.drafts.step_clock import line

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


def test_high_priority_is_favoured() -> None:
    assert allocate(40, 40, 240, GEOMETRIC) == Lengths(high=4, low=2)


@pytest.mark.parametrize("seed", range(30))
def test_the_allocation_is_the_best_of_all_where_both_sides_are_equally_many(seed: int) -> None:
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


def test_no_allocation_spends_more_than_its_budget() -> None:
    numbers = random.Random(1)
    for _ in range(300):
        high, low, budget = numbers.randrange(40), numbers.randrange(40), numbers.randrange(400)
        lengths = allocate(high, low, budget, GEOMETRIC)
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


def test_measured_times_are_joined_by_lines() -> None:
    assert line({1: 10.0, 3: 20.0}, 2) == 15
    assert line({1: 10.0, 3: 20.0}, 5) == 30
    assert line({1: 10.0, 3: 20.0}, 0) == 10


def test_where_a_step_grows_with_the_rows_few_speculate_and_many_do_not() -> None:
    def roofline(batch: int, length: float, context: int) -> float:
        return max(5.0, 0.035 * batch * (1 + length)) + 0.5 * (length > 0)

    acceptance = Acceptance(alpha=0.6)
    lengths = [plan_lengths(0, rows, 700, acceptance, roofline).low for rows in (1, 16, 64, 256, 1024)]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[0] == 8
    assert lengths[-2:] == [0, 0]
