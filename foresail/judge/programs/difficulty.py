"""The test-difficulty reward of MiMo (its section 3.3.1): partial points for hard problems, as in an olympiad.

How often each test was passed in earlier rollouts tells how hard it is. Tests of like hardness form a level,
and levels are what a program earns points for:

    rates = pass_rates([rollouts_of_one_model, rollouts_of_another])
    levels = difficulty_levels(rates, count=4)     # [0, 0, 1, 2, …]: 0 is the easiest
    score(passed, levels, "strict")                # in [0, 1]

The paper leaves two things open. Points: here each level is worth the same, so all of them together are 1.
Clustering: here the partition with the least squared distance of pass rates to their level's mean, which in
one dimension is found exactly, so equal tables give equal levels, without a seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Literal, get_args

Scheme = Literal["all", "strict", "soft"]
Table = Sequence[Sequence[bool]]  # one row per sample: which tests it passed


def pass_rates(models: Sequence[Table]) -> list[float]:
    """How often each test was passed, first among a model's samples, then averaged over the models.

    pass_rates([[[1, 0], [1, 1]], [[1, 0]]]) -> [1.0, 0.25]: the model with fewer samples counts as much.
    A model without samples says nothing and is left out.
    """
    tables = [table for table in models if table]
    widths = {len(row) for table in tables for row in table}
    if len(widths) != 1:
        raise ValueError(
            f"the samples were run on {sorted(widths) or 'no'} tests; give at least one sample, and all of the "
            "same tests"
        )
    per_model = [
        [Fraction(sum(map(bool, test)), len(table)) for test in zip(*table, strict=True)] for table in tables
    ]
    return [float(sum(rates) / len(tables)) for rates in zip(*per_model, strict=True)]


def difficulty_levels(rates: Sequence[float], count: int = 4) -> list[int]:
    """The level of each test, 0 for the easiest, at most `count` of them and no more than distinct rates.

    difficulty_levels([0.9, 0.1, 1.0, 0.0], 2) -> [0, 1, 0, 1]; tests with one rate always share a level.
    """
    if count < 1:
        raise ValueError(f"count is {count}; there must be at least one level")
    if any(not 0 <= rate <= 1 for rate in rates):
        raise ValueError(f"pass rates lie between 0 and 1, but these are {list(rates)}")
    if not rates:
        return []
    values = sorted(set(rates), reverse=True)
    cuts = best_cuts([(value, rates.count(value)) for value in values], min(count, len(values)))
    level_of = {value: sum(cut <= place for cut in cuts) for place, value in enumerate(values)}
    return [level_of[rate] for rate in rates]


def best_cuts(points: Sequence[tuple[float, int]], count: int) -> list[int]:
    """Where to cut sorted (value, weight) points into `count` runs with the least squared error within runs.

    best_cuts([(1.0, 5), (0.9, 1), (0.1, 1)], 2) -> [2]: the second run begins at place 2. Of equally good
    partitions, the one whose last cut is earliest. Exact fractions, so rounding never decides.
    """
    weight, total, square = [Fraction(0)], [Fraction(0)], [Fraction(0)]
    for value, times in points:
        exact = Fraction(value)
        weight.append(weight[-1] + times)
        total.append(total[-1] + times * exact)
        square.append(square[-1] + times * exact * exact)

    def error(start: int, stop: int) -> Fraction:
        """Squared distance of points[start:stop] to their mean."""
        summed = total[stop] - total[start]
        return square[stop] - square[start] - summed * summed / (weight[stop] - weight[start])

    size = len(points)
    # best[stop]: (error, cuts) of the best partition of points[:stop] into as many runs as rounds so far
    best: dict[int, tuple[Fraction, list[int]]] = {stop: (error(0, stop), []) for stop in range(1, size + 1)}
    for runs in range(2, count + 1):
        best = {
            stop: min(
                (best[cut][0] + error(cut, stop), [*best[cut][1], cut]) for cut in range(runs - 1, stop)
            )
            for stop in range(runs, size + 1)
        }
    return best[size][1]


def score(passed: Sequence[bool], levels: Sequence[int] | None, scheme: Scheme) -> float:
    """The share of points that a program earns; 1.0 exactly when it passes every test.

    With levels [0, 0, 1] and passed [True, False, True]: "all" -> 0.0, "strict" -> 0.0, "soft" -> 0.75.
    Without levels all tests are of one level: "strict" is then "all", and "soft" the share of tests passed.
    """
    if not passed:
        raise ValueError("there are no tests to score; give the problem at least one")
    levels = [0] * len(passed) if levels is None else levels
    if len(levels) != len(passed):
        raise ValueError(
            f"{len(levels)} levels for {len(passed)} tests; compute them again with difficulty_levels"
        )
    if scheme == "all":
        return float(all(passed))
    if scheme == "strict":
        return float(strict_share(passed, levels))
    if scheme == "soft":
        return float(soft_share(passed, levels))
    raise ValueError(f"unknown scheme {scheme!r}; choose one of {', '.join(get_args(Scheme))}")


def strict_share(passed: Sequence[bool], levels: Sequence[int]) -> Fraction:
    """A level pays only when it and all easier ones pass: strict_share([1, 1, 0, 1], [0, 0, 1, 2]) -> 1/3."""
    named = sorted(set(levels))
    failed = [level for level, good in zip(levels, passed, strict=True) if not good]
    earned = [level for level in named if not failed or level < min(failed)]
    return Fraction(len(earned), len(named))


def soft_share(passed: Sequence[bool], levels: Sequence[int]) -> Fraction:
    """A level's points are shared among its tests: soft_share([1, 0, 0, 1], [0, 0, 1, 2]) -> 1/2."""
    size = {level: levels.count(level) for level in levels}
    shares = [Fraction(bool(good), size[level]) for level, good in zip(levels, passed, strict=True)]
    return sum(shares, Fraction(0)) / len(size)
