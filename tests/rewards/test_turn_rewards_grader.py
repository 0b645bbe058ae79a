"""The grader `environment`: what an environment gave for the turns, added up."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.recipe.tables.reward import Reward
from foresail.records import Problem, Trajectory, Turn, Verdict
from foresail.rewards.grader import find_grader

PROBLEM = Problem(id="p", prompt=(), answer="")


def grade(rewards: list[float | None], threshold: float = 1.0) -> Verdict:
    turns = tuple(Turn(observation="", response="", reward=reward) for reward in rewards)
    return find_grader(Reward(grader="environment", threshold=threshold))(PROBLEM, Trajectory(turns=turns))


@given(st.lists(st.none() | st.floats(-1e6, 1e6), min_size=1), st.floats(-10, 10))
def test_the_score_is_the_sum_and_right_from_the_threshold_on(
    rewards: list[float | None], threshold: float
) -> None:
    verdict = grade(rewards, threshold)
    total = sum(reward for reward in rewards if reward is not None)
    assert verdict.score == total
    if abs(total - threshold) > 1e-5:
        assert verdict.status == ("correct" if total > threshold else "wrong")


def test_tenths_add_up_to_one() -> None:
    assert grade([0.1] * 10).status == "correct"


@pytest.mark.parametrize("reward", [math.nan, math.inf])
def test_what_is_no_number_is_a_failure_and_no_score(reward: float) -> None:
    assert grade([1.0, reward]).status == "crashed"
