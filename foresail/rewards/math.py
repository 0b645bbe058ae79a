r"""The maths verifier's core: numbers are equal by exact value, everything else by its undressed text.

It accepts too little rather than too much: `x+1` and `1+x` differ here. Nothing in a response makes it raise.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from foresail.records import Verdict
from foresail.rewards.extract import extract
from foresail.rewards.notation import squeeze, undress
from foresail.rewards.number import parse_number

SHOWN = 60  # characters of each side that `detail` keeps


class Reading(NamedTuple):
    """What an answer means, in a form where equal meanings are equal texts."""

    kind: Literal["number", "text"]
    form: str


def read(answer: str) -> Reading:
    r"""read("0.50") == read(r"\frac{1}{2}") == ("number", "1/2"); read("$x + 1$") == ("text", "x+1")."""
    plain = undress(answer)
    number = parse_number(plain)
    return Reading("text", squeeze(plain)) if number is None else Reading("number", str(number))


def grade(response: str, answer: str) -> Verdict:
    r"""grade(r"It is \boxed{0.5}.", "1/2") -> correct; grade("It is 0.5.", "1/2") -> unparsable."""
    gold = read(answer)
    if not gold.form:
        return Verdict(status="ungradable", score=0.0, detail="the problem's answer is empty")
    extracted = extract(response)
    if extracted is None:
        return Verdict(status="unparsable", score=0.0, detail=r"no \boxed{…} or #### line after the thinking")
    given = read(extracted.text)
    if not given.form:
        return Verdict(status="unparsable", score=0.0, detail=f"{extracted.rule} answer is empty")
    rule = "number" if gold.kind == given.kind == "number" else "text"
    detail = f"{extracted.rule} {shorten(extracted.text)} against {shorten(answer)}, compared as {rule}"
    if given.form == gold.form:
        return Verdict(status="correct", score=1.0, detail=detail)
    return Verdict(status="wrong", score=0.0, detail=detail)


def ballot(response: str) -> str | None:
    r"""What a response votes for, equal where `grade` sees equal answers: ballot(r"\boxed{0.5}") -> "1/2"."""
    extracted = extract(response)
    return read(extracted.text).form or None if extracted else None


def shorten(text: str) -> str:
    """shorten("x" * 99) -> 60 characters that end in "…"."""
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
