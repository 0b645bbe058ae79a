"""Whether a rewritten problem still has its answer: a model solves it, and the grader looks for the gold.

[step.solve]
samples = 4
least = 0.25          # of the samples reach the gold
most_lost = 0.25      # less than of the original
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from pydantic import Field

from foresail.chat.endpoint import Refused
from foresail.curate.asking.asking import Asking
from foresail.curate.document import Document, Drop
from foresail.curate.rewriting.variant import Variant
from foresail.curate.rows.problem import problem_of
from foresail.curate.rows.row import MESSAGES
from foresail.data.problems.problems import end_question
from foresail.recipe.tables.answerer import Answerer
from foresail.recipe.tables.part import Part
from foresail.records import Problem, single_turn


class Solve(Part):
    """A model solves original and rewriting; the gold has to come out about as often."""

    answerer: Answerer | None = Field(None, description="who solves; default: who rewrites")
    samples: int = Field(
        4, ge=1, description="solutions of each; with temperature 0 more than one is of no use"
    )
    grader: Literal["math", "exact", "qa"] = Field("math", description="compares a solution with the answer")
    suffix: str = Field("\nPut the final answer in \\boxed{}.", description="after the question")
    least: float = Field(0.25, gt=0, le=1, description="share of the rewriting's solutions that are right")
    most_lost: float = Field(0.25, ge=0, le=1, description="by so much it may be below the original's share")


class Solver:
    def __init__(self, settings: Solve, ask: Asking) -> None:
        from foresail.recipe.tables.reward import Reward
        from foresail.rewards.grader import find_grader

        self.settings, self.ask = settings, ask
        self.grade = find_grader(Reward(grader=settings.grader))

    def rates(self, documents: Sequence[Document]) -> list[float]:
        """The share of right solutions of each problem."""
        samples = self.settings.samples
        problems = [problem_of(document.id, document.row or {}) for document in documents]
        questions = [end_question(one.prompt, self.settings.suffix, one.id) for one in problems]
        keys = [f"{one.id}#solve{sample}" for one in problems for sample in range(samples)]
        answers = self.ask([question for question in questions for _ in range(samples)], keys)
        right = [
            self.is_right(problem, answer)
            for problem, answer in zip(
                [problem for problem in problems for _ in range(samples)], answers, strict=True
            )
        ]
        return [sum(right[place : place + samples]) / samples for place in range(0, len(right), samples)]

    def is_right(self, problem: Problem, answer: str | Refused) -> bool:
        if isinstance(answer, Refused):
            return False
        return self.grade(problem, single_turn(answer)).status == "correct"

    def judge(self, original: float, rate: float) -> Drop | None:
        if rate >= self.settings.least and rate >= original - self.settings.most_lost:
            return None
        samples = self.settings.samples
        return Drop(
            "answer_lost",
            f"{round(rate * samples)} of {samples} solutions are right, of the original's "
            f"{round(original * samples)}",
        )


def check_solutions(solver: Solver, variants: Sequence[Variant]) -> None:
    """Each original is solved once, where a rewriting of it is left."""
    for one in variants:
        row = one.source.row or {}
        if MESSAGES in row or not problem_of(one.source.id, row).answer:
            one.drop = Drop("no_answer", "solve needs problems with answers")
    left = [one for one in variants if one.drop is None and one.document is not None]
    sources = {one.source.id: one.source for one in left}
    rates = dict(zip(sources, solver.rates([*sources.values()]), strict=True))
    rewritten = solver.rates([one.document for one in left if one.document is not None])
    for one, rate in zip(left, rewritten, strict=True):
        assert one.document is not None
        original = rates[one.source.id]
        one.drop = solver.judge(original, rate)
        solved = {"original": round(original, 4), "rewritten": round(rate, 4)}
        one.document = replace(one.document, metadata={**one.document.metadata, "solved": solved})
