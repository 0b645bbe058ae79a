r"""Answers of a stated form: a choice, a number, a text, a list, a JSON object, a text under constraints.

    {"prompt": "…", "answer": "B", "check": {"kind": "choice", "options": {"A": "red", "B": "blue"}}}

The column `check` of a row says how its answer is compared; a row without it is a JSON object if its answer is one,
else a text. What a response says beside the answer makes it wrong, and no response can make its own grading fail:
an error while it is read is a wrong answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from foresail.records import Problem, Verdict
from foresail.rewards.structured import constraints, objects, values
from foresail.rewards.structured.final_answer import FinalAnswer, find_answer, find_object, normalise

KINDS = ("choice", "number", "text", "list", "json", "constraints")
SHOWN_CHARS = 60  # characters of each side that `detail` keeps

Compare = Callable[[str], bool]


def grade(problem: Problem, response: str) -> Verdict:
    """grade(problem, "It is blue.\nAnswer: B") -> correct."""
    try:
        kind, compare = comparison(problem)
    except (ValueError, TypeError, KeyError, AttributeError, ArithmeticError, RecursionError) as error:
        why = f"the column check or the answer cannot be used: {type(error).__name__}: {error}"
        return Verdict(status="ungradable", score=0.0, detail=why[:300])
    try:
        final = find_object(response) if kind == "json" else find_answer(response)
        if final.text is None:
            return refused(final)
        right = compare(final.text)
    except Exception as error:  # of what the response is: it must not drop its group by it
        why = f"the answer cannot be read: {type(error).__name__}: {error}"
        return Verdict(status="wrong", score=0.0, detail=why[:300])
    detail = f"{kind}: {shorten(final.text)} against {shorten(problem.answer)}"
    return Verdict(status="correct" if right else "wrong", score=float(right), detail=detail)


def refused(final: FinalAnswer) -> Verdict:
    status: Any = "wrong" if final.several else "unparsable"
    return Verdict(status=status, score=0.0, detail=final.why)


def comparison(problem: Problem) -> tuple[str, Compare]:
    """How the problem's answers are compared; raises if its columns do not say."""
    if not problem.answer.strip():
        raise ValueError("the problem's answer is empty")
    check = problem.extra.get("check")
    if isinstance(check, str):  # as parquet files and some tables have it
        check = json.loads(check)
    if check is None:
        check = {"kind": "json" if problem.answer.lstrip().startswith(("{", "[")) else "text"}
    if not isinstance(check, Mapping) or check.get("kind") not in KINDS:
        raise ValueError(f"check needs a kind, one of {', '.join(KINDS)}")
    # tables fill the keys that a row does not have with null
    check = {key: value for key, value in check.items() if value is not None}
    return check["kind"], COMPARISONS[check["kind"]](problem.answer, check)


COMPARISONS: dict[str, Callable[[str, Mapping[str, Any]], Compare]] = {
    "choice": values.choice,
    "number": values.number,
    "text": values.text,
    "list": values.several,
    "json": objects.json_object,
    "constraints": constraints.constrained,
}


def ballot(response: str) -> str | None:
    """What a response votes for; equal where its last answer is the same text, or the same JSON object."""
    try:
        whole = find_object(response)
        if whole.text is not None and "{" in whole.text:
            return objects.canonical(whole.text)
        final = find_answer(response)
        return None if final.text is None else normalise(final.text)
    except Exception:  # what cannot be read has no vote
        return None


def shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN_CHARS else line[: SHOWN_CHARS - 1] + "…"
