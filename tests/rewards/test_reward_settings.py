from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.recipe.parts import Reward
from foresail.records import FAILURES, Message, Problem, Verdict
from foresail.rewards.grader import BALLOTS, GRADERS, reward
from foresail.rewards.shaping import overlong_penalty

CORRECT = Verdict(status="correct", score=1.0)
WRONG = Verdict(status="wrong", score=0.0)


def test_every_grader_a_recipe_may_name_exists():
    names = set(get_args(Reward.model_fields["grader"].annotation))
    assert set(GRADERS) == set(BALLOTS) == names


def test_graders_judge_a_problem():
    problem = Problem(id="1", prompt=(Message(role="user", content="3+4?"),), answer="7")
    assert GRADERS["math"](problem, r"\boxed{7.0}").status == "correct"
    assert GRADERS["exact"](problem, r"\boxed{7.0}").status == "wrong"
    assert GRADERS["exact"](problem, "7").status == "correct"


@pytest.mark.parametrize(("wrong", "halfway"), [(0.0, 0.5), (-1.0, 0.0)])
def test_scores_map_onto_wrong_to_correct(wrong: float, halfway: float):
    settings = Reward(wrong=wrong)
    assert reward(CORRECT, settings, num_tokens=9, limit=10) == 1.0
    assert reward(WRONG, settings, num_tokens=9, limit=10) == wrong
    assert reward(Verdict(status="unparsable", score=0.0), settings, num_tokens=9, limit=10) == wrong
    assert reward(Verdict(status="wrong", score=0.5), settings, num_tokens=9, limit=10) == halfway


@pytest.mark.parametrize("status", sorted(FAILURES))
def test_a_failure_has_no_reward(status):
    assert reward(Verdict(status=status, score=0.0), Reward(), num_tokens=9, limit=10) is None


def test_long_answers_are_taxed_when_asked():
    settings = Reward(overlong_buffer=20, overlong_factor=0.5)
    assert reward(CORRECT, settings, num_tokens=80, limit=100) == 1.0
    assert reward(CORRECT, settings, num_tokens=90, limit=100) == 0.75
    assert reward(WRONG, settings, num_tokens=100, limit=100) == -0.5


def test_overlong_penalty_by_hand():
    # DAPO's own numbers: 20480 tokens at most, the last 4096 of them a buffer.
    lengths = [0, 16384, 17408, 18432, 20480, 99999]
    penalties = [overlong_penalty(length, limit=20480, buffer=4096, factor=1.0) for length in lengths]
    assert penalties == [0.0, 0.0, -0.25, -0.5, -1.0, -1.0]


@given(st.integers(0, 1000), st.integers(1, 1000), st.floats(0, 4))
def test_overlong_penalty_is_the_published_formula_up_to_the_limit(
    num_tokens: int, buffer: int, factor: float
):
    published = min(-(num_tokens - (1000 - buffer)) / buffer * factor, 0)
    assert overlong_penalty(num_tokens, limit=1000, buffer=buffer, factor=factor) == pytest.approx(published)


def test_no_buffer_no_penalty():
    assert overlong_penalty(100, limit=100, buffer=0, factor=1.0) == 0.0
