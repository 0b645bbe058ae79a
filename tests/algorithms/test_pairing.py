"""Pairs of a prompt's answers, tried on answers of all kinds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from foresail.algorithms.pairing import ScoredAnswer, pair_answers

REWARDS = st.sampled_from([-1.0, 0.0, 0.25, 0.5, 1.0])  # few, so that many are equal
ANSWERS = st.lists(
    st.builds(ScoredAnswer, reward=REWARDS, right=st.sampled_from([True, False, None])), max_size=9
)
KINDS = st.sampled_from(["auto", "rank", "rule"])


def answers(*rewards: float, right: str = "") -> list[ScoredAnswer]:
    """answers(.2, .9, right="+-"): the first right, the second wrong."""
    said = [{"+": True, "-": False}[sign] for sign in right] or [None] * len(rewards)
    return [
        ScoredAnswer(reward=reward, right=is_right) for reward, is_right in zip(rewards, said, strict=True)
    ]


@given(ANSWERS, KINDS, st.integers(1, 5))
def test_a_chosen_answer_is_better_and_none_is_used_twice(found: list[ScoredAnswer], kind, most) -> None:
    pairs = pair_answers(found, kind, most)
    places = [place for pair in pairs for place in pair]
    assert len(pairs) <= most and len({*places}) == len(places)
    for chosen, rejected in pairs:
        one, other = found[chosen], found[rejected]
        assert not (other.right and one.right is False)
        assert one.reward > other.reward or (one.right and other.right is False)


@given(ANSWERS, KINDS)
def test_nothing_comes_of_answers_that_are_alike(found: list[ScoredAnswer], kind) -> None:
    for right in (True, False):
        alike = [ScoredAnswer(reward=answer.reward, right=right) for answer in found]
        assert pair_answers(alike, "auto", 9) == []
    same = [ScoredAnswer(reward=0.5) for _ in found]
    assert pair_answers(same, kind, 9) == []


@given(ANSWERS)
def test_where_some_are_right_and_some_wrong_there_is_a_pair_of_the_best_of_both(
    found: list[ScoredAnswer],
) -> None:
    right = [answer.reward for answer in found if answer.right]
    wrong = [answer.reward for answer in found if answer.right is False]
    pairs = pair_answers(found, "rule", 1)
    assert bool(pairs) == bool(right and wrong)
    for chosen, rejected in pairs:
        assert (found[chosen].reward, found[rejected].reward) == (max(right), max(wrong))


def test_ties_go_to_the_first_and_more_pairs_go_inwards() -> None:
    assert pair_answers(answers(0.1, 0.9, 0.5, 0.9), "auto", 4) == [(1, 0), (3, 2)]
    assert pair_answers(answers(0.1, 0.1, 0.9, 0.9), "rank", 1) == [(2, 1)]
    assert pair_answers(answers(0.2, 0.7, 0.9, 0.1, right="++--"), "auto", 4) == [(1, 2), (0, 3)]
    assert pair_answers(answers(0.2, 0.7, right="+-"), "rank", 1) == []


def test_answers_that_are_the_same_are_passed_over() -> None:
    """By tokens, whatever a reward model's rounding made of them; the next pair takes their place."""
    found = [
        ScoredAnswer(reward=reward, tokens=tokens)
        for reward, tokens in ((0.9, [1, 2]), (0.8, [3]), (0.4, [4]), (0.1, [1, 2]))
    ]
    assert pair_answers(found, "rank", 1) == [(1, 2)]
    assert pair_answers([found[0], found[3]], "rank", 1) == []
