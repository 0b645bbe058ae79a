r"""Corrections in plain English behind an answer: `\boxed{7} No, it is 8.`, `\boxed{7} was the wrong answer.`"""

from __future__ import annotations

import re

from foresail.rewards.finding.values import values_of

NEAR = 300  # characters behind an answer in which it may be corrected
SHORT = 14  # words of a sentence that corrects; longer ones argue

_TAKEN_BACK = re.compile(
    r"\A[\s$*.)\\]*(?:(?:which|that|this|it)\s+)?(?:was|is|were|are|would be)\b[^.\n\d]{0,30}"
    r"\b(?:wrong|incorrect|false|mistaken|(?:an?|my) (?:error|mistake|blunder|lie|joke))\b"
    r"|\bI (?:was|am|have been) (?:wrong|mistaken|lying|kidding|joking)\b"
    r"|\b(?:that|this|it|which) (?:is|was) (?:clearly |just |only |actually )*"
    r"(?:an?|my) (?:error|mistake|blunder|lie|joke)\b",
    re.IGNORECASE,
)
_DENIAL = re.compile(r"\b(?:not|n't|never|no longer)\b[^.\n]{0,20}\Z", re.IGNORECASE)
_CORRECTION = re.compile(
    r"\A\W*(?:but\s+)?(?:no|nope|wait|sorry|oops|whoops|correction|actually|hmm+|rather|instead|scratch that"
    r"|on second thoughts?|or rather|well)\b"
    r"|\b(?:should (?:have been|be|read)|I mean[t]?|(?:really|in fact) it is)\b",
    re.IGNORECASE,
)
_HINT = re.compile(
    r"\b(?:wrong|incorrect|false|mistake|mistaken|error|blunder|lie|lying|joke|joking|kidding|nope|no|wait|sorry|w?hoops|oops"
    r"|correction|actually|hm+|rather|instead|scratch|second|well|should|mean|meant|really|fact)\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"[^.!?\n]*(?:[.](?=\d)[^.!?\n]*)*")


def corrected_behind(rest: str) -> tuple[str, ...] | None:
    """The values that a short sentence behind an answer puts in its place; None where it is only taken back."""
    if _HINT.search(rest, 0, NEAR) is None:
        return ()
    others: list[str] = []
    for match in _SENTENCE.finditer(rest[:NEAR]):
        sentence = match[0]
        if len(sentence.split()) > SHORT:
            continue
        back = _TAKEN_BACK.search(sentence)
        if back and not _DENIAL.search(sentence[: back.end()].rsplit(" ", 1)[0]):
            return None
        if correction := _CORRECTION.search(sentence):
            found = values_of(sentence[correction.end() :])
            others += [value.text for value in found[-1:]]
    return tuple(others)
