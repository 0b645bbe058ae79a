"""How hard problems are: levels 1 (easy) to 5 (hard) from the percentiles of their pass rates.

`foresail data grade-difficulty` measures the rates (evaluate/difficulty.py) and writes a file of levels; a
recipe names it as `data.difficulty`, or a column of the data that has levels already.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from foresail.recipe.tables.inputs import reach
from foresail.recipe.tables.levels import read_levels, to_level
from foresail.recipe.tables.parts import Problems
from foresail.recipe.tables.values import NUM_LEVELS
from foresail.records import Problem


def find_levels(pass_rates: Sequence[float | None]) -> list[int | None]:
    """find_levels([1.0, 0.8, 0.6, 0.4, 0.0]) -> [1, 2, 3, 4, 5]; None, where nothing was measured, stays None.

    A problem's percentile is the share of problems that are easier, half of its equals among them: equals
    share a level. Problems that always or never were solved are of level 1 or 5, however many there are.
    """
    measured = sorted(rate for rate in pass_rates if rate is not None)

    def level(rate: float) -> int:
        if rate in (0.0, 1.0):
            return 1 if rate else NUM_LEVELS
        above = len(measured) - bisect_right(measured, rate)
        not_below = len(measured) - bisect_left(measured, rate)
        # in whole numbers: (above + not_below) / 2 of all, times five, rounded down
        return 1 + NUM_LEVELS * (above + not_below) // (2 * len(measured))

    return [None if rate is None else level(rate) for rate in pass_rates]


def attach_levels(problems: Sequence[Problem], settings: Problems) -> list[Problem]:
    """The problems with their levels, as far as the settings name a source for them."""
    if settings.difficulty is not None:
        return join_levels(problems, Path(settings.difficulty))
    if settings.difficulty_key is not None:
        return [
            replace(problem, level=column_level(problem, settings.difficulty_key)) for problem in problems
        ]
    return [*problems]


def join_levels(problems: Sequence[Problem], path: Path) -> list[Problem]:
    levels = read_levels(path)
    if not any(problem.id in levels for problem in problems):
        raise ValueError(
            f"{path} has levels of {len(levels)} problems, and none of them is in the data: it has "
            f"{example(levels)}, the data {example([problem.id for problem in problems])}; grade the difficulty "
            "of the same source"
        )
    return [replace(problem, level=levels.get(problem.id)) for problem in problems]


def column_level(problem: Problem, key: str) -> int | None:
    try:
        return to_level(reach(problem.extra, key))
    except ValueError as error:
        raise ValueError(f"problem {problem.id}, column {key}: {error}") from None


def example(ids: Sequence[str] | dict[str, int | None]) -> str:
    return repr(next(iter(ids))) if ids else "none"
