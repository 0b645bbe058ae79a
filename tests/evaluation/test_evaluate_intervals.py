from math import comb, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.evaluation.interval import Z, bootstrap_interval, confidence_interval, wilson_interval


def test_wilson_matches_published_values():
    # Newcombe (1998), Statistics in Medicine 17, table I, method 3.
    for successes, trials, low, high in [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605)]:
        assert wilson_interval(successes, trials) == pytest.approx((low, high), abs=5e-5)
    assert wilson_interval(0, 20) == pytest.approx((0, 0.1611), abs=5e-5)
    assert wilson_interval(1, 29) == pytest.approx((0.0061, 0.1718), abs=5e-5)


@given(st.integers(1, 500), st.data())
def test_wilson_bounds_are_where_the_score_test_turns(trials: int, data: st.DataObject):
    successes = data.draw(st.integers(0, trials))
    share = successes / trials
    for bound in wilson_interval(successes, trials):
        assert abs(share - bound) == pytest.approx(Z * sqrt(bound * (1 - bound) / trials), abs=1e-9)


def test_wilson_covers_about_95_percent():
    def coverage(trials: int, p: float) -> float:
        inside = [low <= p <= high for low, high in (wilson_interval(c, trials) for c in range(trials + 1))]
        return sum(comb(trials, c) * p**c * (1 - p) ** (trials - c) for c, hit in enumerate(inside) if hit)

    coverages = [coverage(trials, p) for trials in (20, 50, 200) for p in np.linspace(0.05, 0.95, 37)]
    assert np.mean(coverages) == pytest.approx(0.95, abs=0.01)
    assert min(coverages) > 0.9


@pytest.mark.parametrize("num_problems", [30, 100])
def test_bootstrap_covers_about_95_percent_of_clustered_scores(num_problems: int):
    # Problems differ in difficulty, each is tried 8 times; the truth is the mean over all possible problems.
    rng = np.random.default_rng(0)
    trials, hits = 600, 0
    for trial in range(trials):
        difficulty = rng.beta(0.8, 1.2, size=num_problems)
        low, high = bootstrap_interval((rng.binomial(8, difficulty) / 8).tolist(), seed=trial)
        hits += low <= 0.4 <= high
    assert hits / trials == pytest.approx(0.95, abs=0.025)


def test_more_samples_of_the_same_problems_are_not_more_evidence():
    scores = [0.25, 0.5, 0.5, 1.0, 0.0, 0.75] * 5
    low, high = bootstrap_interval(scores)
    assert high - low == pytest.approx(2 * Z * np.std(scores, ddof=1) / sqrt(len(scores)), rel=0.1)
    assert low < np.mean(scores) < high


def test_each_kind_of_score_gets_its_rule():
    assert confidence_interval([1, 0, 1, 1]) == wilson_interval(3, 4)
    assert confidence_interval([1.0, 0.0, 0.5]) == bootstrap_interval([1.0, 0.0, 0.5])
    assert confidence_interval([0.5]) == (0.0, 1.0)
    low, high = confidence_interval([1.0] * 4)
    assert (low, high) == (pytest.approx(0.5101, abs=1e-4), 1.0)


def test_bootstrap_repeats_and_seeds_differ():
    scores = np.random.default_rng(1).random(50).tolist()
    assert bootstrap_interval(scores) == bootstrap_interval(scores)
    assert bootstrap_interval(scores) != bootstrap_interval(scores, seed=1)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_intervals_stay_in_bounds_and_hold_the_mean(scores: list[float]):
    low, high = confidence_interval(scores)
    assert 0 <= low <= high <= 1
    assert low - 1e-9 <= np.mean(scores) <= high + 1e-9


def test_no_scores_no_interval():
    with pytest.raises(ValueError, match="at least one"):
        confidence_interval([])
