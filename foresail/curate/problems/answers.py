"""The step `check_answers`: drops problems of maths on whose gold answer our verifier errs.

[[step]]
name = "check_answers"

Reasons: ungradable, one_form, accepts_wrong, contradicted (`maths/gold/trials.py` says what they mean). The answer
is graded against itself, against itself written otherwise, against wrong ones, and against the end of its own
solution.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, get_args

from pydantic import Field

from foresail.curate.document import Document, Drop
from foresail.curate.problems.columns import ABSENT, key_of
from foresail.curate.problems.kind import is_maths
from foresail.curate.rows.holds import Holds
from foresail.curate.rows.problem import problem_of
from foresail.curate.step import Outcome, StepFunction
from foresail.data.problems.problems import ANSWER_KEYS
from foresail.data.problems.solutions import SOLUTION_KEYS, find_solution
from foresail.maths.gold.trials import Fault, Reason, find_fault, gold_trials
from foresail.recipe.tables.inputs import reach
from foresail.recipe.tables.part import CheckedPart
from foresail.recipe.tables.values import Texts

REASONS = get_args(Reason)
LONGEST_SOLUTION = 100_000  # characters


class CheckAnswers(CheckedPart):
    """Drops problems whose answer fails the verifier's own trials."""

    takes: ClassVar[Holds] = ("problems",)

    flag: Texts = Field(
        (), description="reasons that drop nothing and are written to metadata `answer_fault`"
    )
    solution_key: str = Field("", description="column of the worked solution; default: solution")

    def mistakes(self) -> Iterator[str]:
        if unknown := sorted({*self.flag} - {*REASONS}):
            yield f"there is no reason {unknown[0]}; reasons are {', '.join(REASONS)}"

    def open(self) -> StepFunction:
        return partial(check_answer, settings=self)


def check_answer(document: Document, settings: CheckAnswers) -> Outcome:
    row = document.row
    assert row is not None
    if not is_maths(document.metadata, row):
        return document
    fault = answer_fault(row, problem_of(document.id, row).answer, settings.solution_key)
    if fault is None:
        return document
    if fault.reason in settings.flag:
        return replace(document, metadata={**document.metadata, "answer_fault": fault.reason})
    return Drop(fault.reason, fault.detail)


def answer_fault(row: Mapping[str, Any], answer: str, solution_key: str = "") -> Fault | None:
    """A solution without a boxed answer is no evidence."""
    column = key_of(row, ANSWER_KEYS)
    written = reach(row, column, ABSENT) if column is not None else ""
    key = solution_key or key_of(row, SOLUTION_KEYS)
    solution = find_solution(row, written, key if key != column else None)
    if solution is not None and len(solution) > LONGEST_SOLUTION:
        solution = None
    # without a column of solutions it is GSM8K's answer, which ends in ####
    accept = "stated" if key is None or key == column else "boxed"
    return find_fault(answer, gold_trials(answer, solution=solution), accept=accept)  # type: ignore[arg-type]
