r"""Looks for problems that a reward by rule cannot use, with the rules of the curation's steps.

    warning: data: 3 of 1,000 problems looked at are multiple choice, such as train:17 (4 options, (A) 1 (B) 2 …)

All problems of a small source are looked at, else a thousand that are spread over it. Programs are not run here:
the step `check_programs` does that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from foresail.check.finding import Finding, warning
from foresail.curate.problems.answers import answer_fault
from foresail.curate.problems.columns import has_tests
from foresail.curate.problems.form_rules import REASONS, find_faults
from foresail.curate.problems.wording import Wording
from foresail.recipe.tables.reward import Reward
from foresail.records import Problem

MOST_PROBLEMS = 1000  # about two seconds
FEW = 0.002  # of the problems: not worth a line
MEANINGS = {
    "picture": "have pictures, which no model sees",
    "link": "have links, which no model follows",
    "mangled": "have damaged text",
    "no_answer": "have no answer that can be compared",
    "drawing": "refer to a drawing that is code",
    "figure": "refer to a figure that is not there",
    "choice": "are multiple choice, which a guess answers",
    "guessable": "are answered by yes, no, or one of a few words",
    "several": "ask several questions and have one answer",
    "proof": "ask for a proof",
    "solved": "have their answer in the prompt",
    "restated": "have the unknown itself as their answer",
    "ungradable": "have an answer that the verifier cannot compare",
    "one_form": "have an answer that is right in one spelling only",
    "accepts_wrong": "have an answer that wrong ones equal to the verifier",
    "contradicted": "have another answer than their own solution",
}
# a prompt such as "2 + 2 =" is short and asks nothing, and may be meant so
LOOKED_FOR = frozenset(REASONS) - {"short", "no_question"}


def look_at_faults(key: str, problems: Sequence[Problem], settings: Reward) -> Iterator[Finding]:
    if settings.grader != "math" or not problems:
        return
    step = max(1, -(-len(problems) // MOST_PROBLEMS))
    looked_at = problems[::step]
    examples_by_reason: dict[str, list[tuple[str, str]]] = {}
    for problem in looked_at:
        if (fault := first_fault(problem)) is not None:
            examples_by_reason.setdefault(fault[0], []).append((problem.id, fault[1]))
    for reason, examples in sorted(examples_by_reason.items(), key=lambda item: (-len(item[1]), item[0])):
        if len(examples) > FEW * len(looked_at):
            name, evidence = examples[0]
            yield warning(
                f"{key}: {len(examples):,} of {len(looked_at):,} problems looked at {MEANINGS[reason]} ({reason}), "
                f"such as {name} ({evidence[:80]}); a curation takes them out: docs/curate-problems.md"
            )


def first_fault(problem: Problem) -> tuple[str, str] | None:
    """The reason for which a curation would drop it, and the evidence."""
    if not problem.prompt or has_tests(problem.extra):
        return None
    asked = problem.prompt[-1].content
    fault = next(find_faults(Wording.of(asked, problem.answer), reasons=LOOKED_FOR), None)
    if fault is not None:
        return fault
    answer = answer_fault(problem.extra, problem.answer)
    return None if answer is None else (answer.reason, answer.detail)
