"""Checks that the data's first row has the columns that reward functions require, before a model is loaded."""

from __future__ import annotations

from collections.abc import Sequence

from foresail.data.problems.problems import load_problems
from foresail.recipe.tables.parts import Problems
from foresail.records import Problem
from foresail.rewards.grading import RequiredColumns


def check_columns(required_columns: Sequence[RequiredColumns], table: str, settings: Problems) -> None:
    """`table` is where the recipe has this source, such as "data"."""
    if not required_columns:
        return
    alone = {"limit": 1, "difficulty": None, "difficulty_key": None, "examples": None}
    (problem,) = load_problems(settings.model_copy(update=alone))
    check_problem(required_columns, problem, f"{table}.source {settings.source}")


def check_problem(required_columns: Sequence[RequiredColumns], problem: Problem, where: str) -> None:
    for required in required_columns:
        if missing := [column for column in required.columns if column not in problem.extra]:
            available = ", ".join(sorted({"answer", *problem.extra}))
            place = f" ({required.place})" if required.place else ""
            raise ValueError(
                f"{required.function}{place} wants the column{'s' * (len(missing) > 1)} {', '.join(missing)}, and "
                f"{where} has {available}; add what is missing, or give it a default"
            )
