"""The plainest grader: correct where the response after its thinking, stripped, equals the answer."""

from __future__ import annotations

from foresail.records import Verdict, final_text


def grade(response: str, answer: str) -> Verdict:
    """grade("<think>…</think> Paris", "Paris") -> correct; grade("Paris, I think", "Paris") -> wrong."""
    if not answer.strip():
        return Verdict(status="ungradable", score=0.0, detail="the problem's answer is empty")
    final_answer = ballot(response)
    if final_answer is None:
        return Verdict(status="unparsable", score=0.0, detail="nothing stands after the thinking")
    if final_answer == answer.strip():
        return Verdict(status="correct", score=1.0, detail="the same text")
    return Verdict(status="wrong", score=0.0, detail=f"text differs: {final_answer[:60]}")


def ballot(response: str) -> str | None:
    """What a response votes for, equal where `grade` sees equal answers: ballot(" Paris ") -> "Paris"."""
    final = final_text(response)
    return final.strip() or None if final else None
