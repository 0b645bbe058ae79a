import pickle
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.judge.programs.program import Limits
from foresail.recipe.tables.reward import GRADERS, Code, Reward
from foresail.records import FAILURES, Message, Problem, Verdict, single_turn
from foresail.rewards.foreign_rewards import ForeignReward
from foresail.rewards.grader import find_ballot, find_grader
from foresail.rewards.group_rewards import reward
from foresail.rewards.shaping import overlong_penalty

CORRECT = Verdict(status="correct", score=1.0)
WRONG = Verdict(status="wrong", score=0.0)


def price(verdict: Verdict, settings: Reward, *, num_tokens: int = 9, limit: int = 100, **texts: str):
    given = {"prompt": "", "response": ""} | texts
    return reward(verdict, settings, num_tokens=num_tokens, limit=limit, **given)


def test_graders_judge_a_problem():
    problem = Problem(id="1", prompt=(Message(role="user", content="3+4?"),), answer="7")
    assert find_grader(Reward(grader="math"))(problem, single_turn(r"\boxed{7.0}")).status == "correct"
    assert find_grader(Reward(grader="exact"))(problem, single_turn(r"\boxed{7.0}")).status == "wrong"
    assert find_grader(Reward(grader="exact"))(problem, single_turn("7")).status == "correct"


@pytest.mark.parametrize("name", GRADERS)
def test_every_grader_a_recipe_may_name_travels_to_other_processes(name: str):
    settings = Reward(grader=name)
    assert not settings.own_function
    assert callable(pickle.loads(pickle.dumps(find_grader(settings))))


def test_settings_reach_their_grader():
    problem = Problem(id="1", prompt=(), answer="7")
    for accept, status in {"boxed": "unparsable", "stated": "correct", "any": "correct"}.items():
        assert find_grader(Reward(accept=accept))(problem, single_turn("The answer is 7.")).status == status
    code = find_grader(Reward(grader="code", code=Code(scheme="soft", seconds=2.5, memory_mb=64))).grade
    assert (code.scheme, code.limits.seconds, code.limits.memory_mb) == ("soft", 2.5, 64)
    assert find_grader(Reward(grader="code")).grade.limits == Limits()
    assert find_grader(Reward(grader="a.py:f", threshold=0.5)) == ForeignReward(name="a.py:f", threshold=0.5)


def test_what_a_response_votes_for():
    vote = find_ballot(Reward(grader="math"))
    assert vote(r"\boxed{0.50}") == vote(r"\boxed{1/2}") != vote(r"\boxed{1/3}")
    assert find_ballot(Reward(grader="rewards.py:score"))("<think>?</think> a ") == "a"


@pytest.mark.parametrize(("wrong", "halfway"), [(0.0, 0.5), (-1.0, 0.0)])
def test_scores_map_onto_wrong_to_correct(wrong: float, halfway: float):
    settings = Reward(wrong=wrong)
    assert price(CORRECT, settings) == 1.0
    assert price(WRONG, settings) == wrong
    assert price(Verdict(status="unparsable", score=0.0), settings) == wrong
    assert price(Verdict(status="wrong", score=0.5), settings) == halfway


@pytest.mark.parametrize("status", sorted(FAILURES))
def test_a_failure_has_no_reward(status):
    assert price(Verdict(status=status, score=0.0), Reward()) is None


def test_long_answers_are_taxed_when_asked():
    settings = Reward(overlong_buffer=20, overlong_factor=0.5)
    assert price(CORRECT, settings, num_tokens=80) == 1.0
    assert price(CORRECT, settings, num_tokens=90) == 0.75
    assert price(WRONG, settings, num_tokens=100) == -0.5


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


@given(st.floats(-1e6, 1e6))
def test_the_score_of_a_function_of_ones_own_is_the_reward(score: float):
    settings = Reward(grader="rewards.py:score")
    assert price(Verdict(status="wrong", score=score), settings) == score


def test_all_terms_add_up():
    settings = Reward(
        wrong=-1.0, overlong_buffer=20, overlong_factor=0.5, format_weight=0.125, language_weight=0.25
    )
    texts = {"prompt": "Сколько?", "response": "Seven"}
    assert price(CORRECT, settings, num_tokens=90, **texts) == 1 - 0.25 - 0.125 - 0.25
    assert price(WRONG, settings, num_tokens=10, **texts) == -1 - 0.125 - 0.25
    assert price(Verdict(status="timeout", score=0.0), settings, **texts) is None


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"grader": "maths"}, "did you mean math?"),
        ({"grader": "verdict"}, "use one of math, exact, qa, code"),
        ({"grader": "rewards.py"}, "rewards.py:score"),
        ({"grader": "rewards.py:"}, "rewards.py:score"),
        ({"grader": ":score"}, "rewards.py:score"),
        ({"grader": "rewards.py:sc ore"}, "rewards.py:score"),
        ({"grader": "rewards.py:score", "wrong": -1.0}, "gives rewards of its own, so remove them"),
        ({"grader": "rewards.py:score", "correct": 2.0}, "gives rewards of its own, so remove them"),
    ],
)
def test_settings_that_mean_nothing_are_refused(settings: dict, words: str):
    with pytest.raises(ValueError, match=re.escape(words)):
        Reward(**settings)
