"""The step `check_programs`: drops code problems whose tests tell no right program from a wrong one.

[[step]]
name = "check_programs"
seconds = 5             # of processor time, for each test

Reasons: no_tests, few_tests, gold_fails (no program that comes with the problem passes), nondeterministic (it
passes once and fails once), guessed (a program that returns a constant or its argument passes), unrun (the sandbox
failed). Programs run in the judge's sandbox. A problem without a program of its own is checked for guesses alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from pydantic import Field

from foresail.curate.document import Document, Drop
from foresail.curate.problems.columns import prompt_of
from foresail.curate.problems.kind import is_maths
from foresail.curate.rows.holds import Holds
from foresail.curate.step import Outcome, StepFunction
from foresail.data.problems.solutions import gold_programs
from foresail.judge.grader import add_prelude, call_methods
from foresail.judge.judge import judge, shared_judge
from foresail.judge.programs.guesses import guesses
from foresail.judge.programs.program import Limits, Program
from foresail.judge.programs.rows import read_task
from foresail.judge.programs.task import CodeTask
from foresail.recipe.tables.part import CheckedPart
from foresail.recipe.tables.values import Texts
from foresail.records import Verdict

REASONS = ("no_tests", "few_tests", "gold_fails", "nondeterministic", "guessed", "unrun")
MOST_AGAIN = 20  # tests of a further run


class CheckPrograms(CheckedPart):
    """Drops code problems with too few tests, a gold program that fails, or tests that a guess passes."""

    takes: ClassVar[Holds] = ("problems",)

    least_tests: int = Field(2, ge=1, description="problems with fewer tests are dropped")
    runs: int = Field(2, ge=1, le=10, description="of the gold program; it must pass in each")
    seconds: float = Field(10.0, gt=0, description="processor time of a program for each test")
    memory_mb: int = Field(512, ge=16, description="memory of a program")
    need_gold: bool = Field(
        False, description="problems without a program of their own are dropped as gold_fails"
    )
    flag: Texts = Field(
        (), description="reasons that drop nothing and are written to metadata `program_fault`"
    )

    def mistakes(self) -> Iterator[str]:
        if unknown := sorted({*self.flag} - {*REASONS}):
            yield f"there is no reason {unknown[0]}; reasons are {', '.join(REASONS)}"

    def preflight(self) -> None:
        """Raises OSError where no sandbox holds here."""
        shared_judge()

    def open(self) -> StepFunction:
        return ProgramCheck(self)


@dataclass(frozen=True)
class ProgramCheck:
    settings: CheckPrograms

    def __call__(self, document: Document) -> Outcome:
        assert document.row is not None
        if is_maths(document.metadata, document.row):
            return document
        drop = self.find_fault(document)
        if drop is None or drop.reason not in self.settings.flag:
            return drop or document
        return replace(document, metadata={**document.metadata, "program_fault": drop.reason})

    def find_fault(self, document: Document) -> Drop | None:
        row = document.row
        assert row is not None
        prompt = prompt_of(row)
        try:
            task = read_task({**row, "prompt": prompt})
        except ValueError as error:
            return Drop("no_tests", str(error)[:200])
        if len(task.tests) < self.settings.least_tests:
            return Drop(
                "few_tests", f"{len(task.tests)} tests, at least {self.settings.least_tests} are required"
            )
        return self.run_gold(task, gold_programs(row, prompt)) or self.run_guesses(task)

    def run_gold(self, task: CodeTask, sources: list[str]) -> Drop | None:
        if not sources:
            return Drop("gold_fails", "there is no gold program") if self.settings.need_gold else None
        first: Verdict | None = None
        for source in sources:
            program = Program(source=source)
            failure = self.failure(task, program)
            if failure is None:
                return self.run_again(task, program)
            if failure.status == "crashed":
                return Drop("unrun", failure.detail[:200])
            first = first or failure
        assert first is not None
        return Drop("gold_fails", f"{first.status}: {first.detail}"[:300])

    def run_again(self, task: CodeTask, program: Program) -> Drop | None:
        few = replace(task, tests=task.tests[:MOST_AGAIN], levels=None)
        for number in range(2, self.settings.runs + 1):
            if (failure := self.failure(few, program)) is not None:
                return Drop("nondeterministic", f"run {number}: {failure.detail}"[:300])
        return None

    def run_guesses(self, task: CodeTask) -> Drop | None:
        for guess in guesses(task):
            if self.failure(task, guess.program) is None:
                return Drop("guessed", f"all of {len(task.tests)} tests pass with {guess.name}")
        return None

    def failure(self, task: CodeTask, program: Program) -> Verdict | None:
        """The verdict on the first test that fails."""
        limits = Limits(seconds=self.settings.seconds, memory_mb=self.settings.memory_mb)
        verdicts = judge(
            add_prelude(program, task.prelude),
            call_methods(task.tests, program),
            limits,
            stop_at_first_failure=True,
        )
        return next((verdict for verdict in verdicts if verdict.status != "correct"), None)
