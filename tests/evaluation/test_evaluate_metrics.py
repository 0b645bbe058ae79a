import random
from itertools import combinations
from math import comb
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.evaluation.metrics import majority_at_k, pass_at_k


def test_pass_at_k_equals_enumeration():
    for n in range(1, 8):
        for c in range(n + 1):
            samples = [True] * c + [False] * (n - c)
            for k in range(1, n + 1):
                enumerated = fmean(any(chosen) for chosen in combinations(samples, k))
                assert pass_at_k(n, c, k) == pytest.approx(enumerated, abs=1e-12)


def test_pass_at_k_equals_the_closed_form_at_large_n():
    for c in (0, 1, 17, 500, 4999, 5000):
        for k in (1, 2, 64, 1000, 5000):
            exact = 1 - comb(5000 - c, k) / comb(5000, k)
            assert pass_at_k(5000, c, k) == pytest.approx(exact, abs=1e-12)


def test_pass_at_k_does_not_overflow():
    assert 0 < pass_at_k(10**6, 1, 1000) < pass_at_k(10**6, 1000, 1000) < 1


def test_pass_at_k_is_unbiased():
    # Over all outcomes of n samples, weighed by their chance, the mean is the chance that one of k is right.
    n, k, p = 8, 3, 0.3
    mean = sum(comb(n, c) * p**c * (1 - p) ** (n - c) * pass_at_k(n, c, k) for c in range(n + 1))
    assert mean == pytest.approx(1 - (1 - p) ** k)


@pytest.mark.parametrize(("n", "c", "k"), [(4, 1, 5), (4, 5, 1), (4, 1, 0), (0, 0, 1), (4, -1, 1)])
def test_pass_at_k_refuses_the_impossible(n: int, c: int, k: int):
    with pytest.raises(ValueError, match="undefined"):
        pass_at_k(n, c, k)


@given(st.lists(st.booleans(), min_size=1, max_size=20))
def test_pass_at_1_is_the_mean(outcomes: list[bool]):
    assert pass_at_k(len(outcomes), sum(outcomes), 1) == pytest.approx(sum(outcomes) / len(outcomes))


@pytest.mark.parametrize(
    ("answers", "gold", "value"),
    [
        (["7", "7", "8"], "7", 1.0),
        (["7", "7", "8"], "8", 0.0),
        (["7", "8"], "7", 1 / 2),
        (["7", "8", "9"], "9", 1 / 3),
        (["7", "7", "8", "8", "9"], "8", 1 / 2),
        (["7", "7", "8", "8", "9"], "9", 0.0),
        ([None, None, "7"], "7", 1.0),  # silence is no vote
        ([None, None], "7", 0.0),
        ([], "7", 0.0),
    ],
)
def test_majority_by_hand(answers: list[str | None], gold: str, value: float):
    assert majority_at_k(answers, [answer == gold for answer in answers]) == pytest.approx(value)


def test_majority_of_an_answer_judged_both_ways_is_its_share():
    assert majority_at_k(["a", "a", "a", "a"], [True, True, True, False]) == 0.75


@given(st.lists(st.sampled_from([None, "a", "b", "c"]), min_size=1, max_size=8), st.randoms())
def test_majority_does_not_depend_on_order(answers: list[str | None], rng: random.Random):
    shuffled = rng.sample(answers, len(answers))
    values = [majority_at_k(row, [answer == "a" for answer in row]) for row in (answers, shuffled)]
    assert values[0] == values[1]


def test_majority_is_what_a_fair_vote_gives_on_average():
    answers, rng = ["a", "b", "b", "c", "a", None], random.Random(0)

    def vote() -> bool:
        order = rng.sample(answers, len(answers))
        return max((answer for answer in order if answer), key=order.count) == "a"  # first of the tied wins

    simulated = fmean(vote() for _ in range(4000))
    assert majority_at_k(answers, [answer == "a" for answer in answers]) == pytest.approx(simulated, abs=0.03)
