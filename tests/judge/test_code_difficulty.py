from fractions import Fraction
from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.judge.programs.difficulty import Scheme, best_cuts, difficulty_levels, pass_rates, score

SCHEMES: tuple[Scheme, ...] = ("all", "strict", "soft")
results = st.lists(st.tuples(st.booleans(), st.integers(0, 3)), min_size=1, max_size=12)


def test_pass_rates_of_one_model():
    assert pass_rates([[[1, 0, 1], [1, 1, 0], [1, 0, 0], [1, 0, 0]]]) == [1.0, 0.25, 0.25]


def test_models_count_alike_however_many_samples_they_have():
    weak, strong = [[True, False]] * 6, [[True, True]] * 2
    assert pass_rates([weak, strong]) == [1.0, 0.5]
    assert pass_rates([weak, [], strong]) == [1.0, 0.5]


@pytest.mark.parametrize("models", [[], [[]], [[[1, 0], [1]]], [[[1, 0]], [[1]]]])
def test_pass_rates_need_samples_of_the_same_tests(models: list):
    with pytest.raises(ValueError, match="same tests"):
        pass_rates(models)


def test_levels_follow_the_gaps():
    rates = [1.0, 0.95, 0.5, 0.05, 0.45, 0.0, 0.9]
    assert difficulty_levels(rates, 3) == [0, 0, 1, 2, 1, 2, 0]
    assert difficulty_levels(rates, 1) == [0] * 7


def test_no_more_levels_than_rates():
    assert difficulty_levels([0.5, 0.5, 0.5], 4) == [0, 0, 0]
    assert difficulty_levels([0.25, 1.0], 4) == [1, 0]
    assert difficulty_levels([], 4) == []


@pytest.mark.parametrize(("rates", "count"), [([0.5], 0), ([1.5], 2), ([-0.1], 2), ([float("nan")], 2)])
def test_bad_levels_are_refused(rates: list[float], count: int):
    with pytest.raises(ValueError, match=r"level|between 0 and 1"):
        difficulty_levels(rates, count)


@given(st.lists(st.integers(0, 8).map(lambda k: k / 8), min_size=1, max_size=12), st.integers(1, 4))
def test_levels_order_tests_by_difficulty(rates: list[float], count: int):
    levels = difficulty_levels(rates, count)
    assert set(levels) == set(range(min(count, len(set(rates)))))  # no level is empty
    for (rate, level), (other, above) in product(zip(rates, levels, strict=True), repeat=2):
        if rate == other:
            assert level == above
        if rate > other:
            assert level <= above


def squared_error(rates: list[float], levels: list[int]) -> Fraction:
    total = Fraction(0)
    for level in set(levels):
        own = [Fraction(rate) for rate, its in zip(rates, levels, strict=True) if its == level]
        mean = sum(own) / len(own)
        total += sum((rate - mean) ** 2 for rate in own)
    return total


@given(st.lists(st.integers(0, 16).map(lambda k: k / 16), min_size=1, max_size=9), st.integers(1, 4))
def test_no_other_levels_fit_better(rates: list[float], count: int):
    """Against brute force over all ways to cut the sorted distinct rates."""
    distinct = sorted(set(rates), reverse=True)
    runs = min(count, len(distinct))
    best = min(
        squared_error(rates, [sum(distinct[cut] >= rate for cut in cuts) for rate in rates])
        for cuts in combinations(range(1, len(distinct)), runs - 1)
    )
    assert squared_error(rates, difficulty_levels(rates, count)) == best


def test_weights_move_the_cut():
    assert best_cuts([(1.0, 1), (0.6, 1), (0.0, 1)], 2) == [2]
    assert best_cuts([(1.0, 9), (0.6, 9), (0.0, 1)], 2) == [1]


@pytest.mark.parametrize(
    ("passed", "levels", "expected"),
    [
        ([1, 1, 1, 1], [0, 0, 1, 2], {"all": 1.0, "strict": 1.0, "soft": 1.0}),
        ([0, 0, 0, 0], [0, 0, 1, 2], {"all": 0.0, "strict": 0.0, "soft": 0.0}),
        ([1, 1, 0, 0], [0, 0, 1, 2], {"all": 0.0, "strict": 1 / 3, "soft": 1 / 3}),
        ([1, 1, 0, 1], [0, 0, 1, 2], {"all": 0.0, "strict": 1 / 3, "soft": 2 / 3}),  # hard without middle
        ([1, 0, 1, 1], [0, 0, 1, 2], {"all": 0.0, "strict": 0.0, "soft": 5 / 6}),  # an easy one is missing
        ([1, 0, 1], [0, 0, 1], {"all": 0.0, "strict": 0.0, "soft": 0.75}),
        ([1, 0], [0, 5], {"all": 0.0, "strict": 0.5, "soft": 0.5}),  # numbers of levels need not be close
        ([1, 0, 1], None, {"all": 0.0, "strict": 0.0, "soft": 2 / 3}),
    ],
)
def test_scores_by_hand(passed: list, levels: list[int] | None, expected: dict):
    assert {scheme: score(passed, levels, scheme) for scheme in SCHEMES} == pytest.approx(expected)


@given(results)
def test_scores_keep_their_order(rows: list[tuple[bool, int]]):
    passed, levels = [good for good, _ in rows], [level for _, level in rows]
    hard, strict, soft = (score(passed, levels, scheme) for scheme in SCHEMES)
    assert 0 <= hard <= strict <= soft <= 1
    for value in (hard, strict, soft):
        assert (value == 1) == all(passed)
    assert (soft == 0) == (not any(passed))


@given(results, st.data())
def test_passing_one_more_test_never_lowers_the_score(rows: list[tuple[bool, int]], data: st.DataObject):
    passed, levels = [good for good, _ in rows], [level for _, level in rows]
    place = data.draw(st.integers(0, len(rows) - 1))
    better = [*passed[:place], True, *passed[place + 1 :]]
    for scheme in SCHEMES:
        assert score(better, levels, scheme) >= score(passed, levels, scheme)


@given(results, st.randoms())
def test_order_of_tests_does_not_matter(rows: list[tuple[bool, int]], random):
    shuffled = random.sample(rows, len(rows))
    for scheme in SCHEMES:
        values = {score([g for g, _ in r], [level for _, level in r], scheme) for r in (rows, shuffled)}
        assert len(values) == 1


def test_what_cannot_be_scored_is_refused():
    with pytest.raises(ValueError, match="no tests"):
        score([], [], "soft")
    with pytest.raises(ValueError, match="2 levels for 1 tests"):
        score([True], [0, 1], "soft")
    with pytest.raises(ValueError, match="all, strict, soft"):
        score([True], [0], "hard")  # type: ignore[arg-type]
