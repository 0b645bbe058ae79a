r"""What the verifier must say on a right answer: trials, each a response and whether it is right.

    trials = gold_trials("3/4", solution="… so it is \boxed{0.75}.")
    [trial.against for trial in trials] -> ["itself", "another form", …, "a wrong answer", …, "its solution"]
    find_fault("3/4", trials) -> None, or Fault(reason="contradicted", …)

Reasons, first to last:

    ungradable      the verifier cannot compare the answer even with itself
    one_form        written otherwise it is wrong: what the policy writes would have to be the very text
    accepts_wrong   an answer with another number is right
    contradicted    its own worked solution ends on something else
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from foresail.maths.extract import Accept, extract
from foresail.maths.gold.forms import equal_forms, other_answers
from foresail.maths.notation.answer import read
from foresail.maths.verdict import grade
from foresail.records import Verdict

Against = Literal["itself", "another form", "a wrong answer", "its solution"]
Reason = Literal["ungradable", "one_form", "accepts_wrong", "contradicted"]
REASONS: dict[Against, Reason] = {
    "itself": "ungradable",
    "another form": "one_form",
    "a wrong answer": "accepts_wrong",
    "its solution": "contradicted",
}
SHOWN = 80
DAMAGED = re.compile(r"\\begin\b|\d[A-Za-z]{3}|[A-Za-z]{3}\d|\\phantom")
# of what the verifier does not read, how it may be written as well
SPELLINGS = (
    (re.compile(r"\\mathbb\{Z\}_\{?(\w+)\}?"), r"\\mathbb{Z}/\1\\mathbb{Z}"),
    (re.compile(r"\\mathbb\{Z\}/(\w+)\\mathbb\{Z\}"), r"\\mathbb{Z}_\1"),
    (re.compile(r"\\mathbb\{F\}_"), r"GF_"),
    (re.compile(r"\^\\top|\^\{\\top\}"), "^T"),
    (re.compile(r"\\oplus"), r"\\times"),
    (re.compile(r"\\mathbb\{E\}\((.*)\)"), r"E[\1]"),
    (re.compile(r"\A[^=<>]+=([^=<>]+)\Z"), r"\1"),
    (re.compile(r"\A([^+<>=]+)\+([^+<>=]+)\Z"), r"\2+\1"),
)


@dataclass(frozen=True, kw_only=True)
class Trial:
    """`response` is graded as a model's; `right` is what the verdict should be."""

    against: Against
    response: str
    right: bool = True


@dataclass(frozen=True, kw_only=True)
class Fault:
    reason: Reason
    detail: str


def gold_trials(
    answer: str, *, solution: str | None = None, forms: bool = True, wrong: bool = True
) -> list[Trial]:
    trials = [Trial(against="itself", response=boxed(answer))]
    if forms:
        trials += [Trial(against="another form", response=boxed(form)) for form in equal_forms(answer)]
    if wrong:
        others = other_answers(answer) or [f"{answer}7"]
        trials += [Trial(against="a wrong answer", response=boxed(other), right=False) for other in others]
    if answer and solution is not None:
        trials.append(Trial(against="its solution", response=solution))
    return trials


def boxed(answer: str) -> str:
    return rf"\boxed{{{answer}}}"


def is_suspicious(trial: Trial, verdict: Verdict) -> bool:
    """A solution that states no final answer says nothing."""
    if not trial.right:
        return verdict.status == "correct"
    unstated = trial.against == "its solution" and verdict.status == "unparsable"
    return verdict.status != "correct" and not unstated


def find_fault(
    answer: str,
    trials: Sequence[Trial],
    *,
    accept: Accept = "boxed",
    judge: Callable[..., Verdict] = grade,
) -> Fault | None:
    """The first trial whose verdict is not as it should be. The verifier bounds its own work."""
    if is_unread(answer):
        return Fault(reason="one_form", detail=f"it is compared letter by letter: {shorten(answer)}")
    for trial in trials:
        verdict = judge(trial.response, answer, accept=accept)
        if is_suspicious(trial, verdict) and not (
            trial.against == "its solution" and begins_with(trial.response, answer, accept)
        ):
            written = "" if trial.against in ("itself", "its solution") else f" {shorten(trial.response)}"
            return Fault(
                reason=REASONS[trial.against],
                detail=f"{verdict.status} against {trial.against}{written}: {shorten(answer)}; {verdict.detail}",
            )
    return None


def begins_with(solution: str, answer: str, accept: Accept) -> bool:
    r"""Whether of several boxes the first is the answer: the others are steps, or remarks.

    Where a solution gives several answers, data sets took its last box and lost the first.
    """
    extracted = extract(solution, accept)
    if extracted is None or len(extracted.offered) < 2:
        return False
    return grade(boxed(extracted.offered[0]), answer).status == "correct"


def is_unread(answer: str) -> bool:
    """Whether it is no mathematics to the verifier, and either damaged or such that people spell it otherwise."""
    readings = read(answer)
    if not readings or readings[0].head != "word":
        return False
    if answer.count("{") != answer.count("}") or DAMAGED.search(answer):
        return True
    spelt = [pattern.sub(written, answer) for pattern, written in SPELLINGS]
    other = next((text for text in spelt if text != answer), None)
    return other is not None and grade(boxed(other), answer).status != "correct"


def shorten(text: str) -> str:
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
