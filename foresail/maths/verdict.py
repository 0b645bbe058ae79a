r"""The maths verifier: whether a response's final answer means what the right answer means.

Exact arithmetic first, then many digits at random points with relative error bounds. Limits stand before
every step, so any text gets its verdict quickly, from any thread and without signals. Nothing in a response
makes it raise, and no text is ever evaluated as a program.
"""

from __future__ import annotations

import re

from foresail.maths.extract import Accept, Extracted, extract, from_boxes
from foresail.maths.finding.statements import last_statement
from foresail.maths.meaning.budget import Exhausted
from foresail.maths.meaning.compare import new_work, same_answer
from foresail.maths.meaning.sympy_process import Undecided
from foresail.maths.notation.answer import in_words, read, same_words, trim
from foresail.maths.notation.tree import CONTAINERS, Node
from foresail.maths.options import option_asked, option_chosen, value_of_option, without_typeface
from foresail.records import Verdict

SHOWN = 60  # characters of each side that `detail` keeps

_STATED = re.compile(r"^\s*(?:####|(?:the |final |the final )?answer\b)", re.IGNORECASE | re.MULTILINE)
_INTEGER = re.compile(r"[+-]?\d{1,4000}\Z", re.ASCII)


def grade(response: str, answer: str, *, accept: Accept = "any") -> Verdict:
    r"""grade(r"It is \boxed{0.5}.", "1/2") -> correct; grade("I give up.", "1/2") -> unparsable.

    `accept` says which forms of a final answer count: "boxed" only, also "stated" ones, or "any".
    """
    gold = right_answer(answer)
    readings = read(gold)
    if not readings:
        return Verdict(status="ungradable", score=0.0, detail="the problem's answer is empty")
    extracted = extract(response, accept)
    if extracted is None:
        why = f"no {_WANTED[accept]} that stands after the thinking"
        return Verdict(status="unparsable", score=0.0, detail=why)
    try:
        same, rule, extracted = _decide(extracted, gold, readings)
    except Exhausted:
        if _is_too_much(readings[0]):
            return Verdict(status="ungradable", score=0.0, detail="the problem's answer takes too much work")
        same, rule = False, "nothing, for that would be too much work"
    except Undecided as error:
        return Verdict(status=error.status, score=0.0, detail=str(error))
    except RecursionError:  # depths are bounded here, but the caller's own stack may be deep already
        return Verdict(status="crashed", score=0.0, detail="called from too deep a stack")
    if rule == "empty":
        return Verdict(status="unparsable", score=0.0, detail=f"{extracted.rule} answer is empty")
    detail = f"{extracted.rule} {shorten(extracted.text)} against {shorten(gold)}, compared by {rule}"
    return Verdict(status="correct" if same else "wrong", score=float(same), detail=detail)


def _decide(extracted: Extracted, gold: str, readings: tuple[Node, ...]) -> tuple[bool, str, Extracted]:
    """Compares the last box, or where that fails what several boxes say together."""
    same, rule = _compare(extracted.text, gold, readings)
    if not same and len(extracted.boxes) > 1:
        if readings[0].head in CONTAINERS:  # each box may hold a part of it
            extracted = extracted._replace(text=", ".join(extracted.boxes))
            same, rule = _compare(extracted.text, gold, readings)
        if not same and len(extracted.offered) > 1:  # several values that all say the same are one answer
            same = all(_compare(answer, gold, readings)[0] for answer in extracted.offered)
            rule = "alternatives"
    return same, rule, extracted


def ballot(response: str, *, accept: Accept = "any") -> str | None:
    r"""What a response votes for, equal where `grade` sees equal numbers: ballot(r"\boxed{0.5}") -> "1/2"."""
    extracted = extract(response, accept)
    readings = read(extracted.text) if extracted else ()
    if not extracted or not readings:
        return None
    facts = new_work("ballot").facts(readings[0])
    try:
        if facts.exact is not None:
            return str(facts.exact)
        if not facts.symbols and facts.value is not None:
            return str(facts.value.fine.context.nstr(facts.value.fine, 15))
    except (Exhausted, ValueError):  # str of an integer of more than 4,300 digits
        pass
    return in_words(extracted.text).replace(" ", "")


def right_answer(answer: str) -> str:
    r"""The answer itself, or the one that a worked solution ends on: right_answer(r"so $\boxed{7}$") -> "7"."""
    if "boxed" in answer:
        boxed = from_boxes(answer)
        if boxed is not None:
            return boxed.text
        opened = answer.rpartition("boxed{")[2]  # a box that was never closed
        return opened if opened != answer else answer
    if (len(answer) > SHOWN or _STATED.search(answer)) and (stated := last_statement(answer)) is not None:
        return stated
    return answer


def _compare(given: str, gold: str, gold_readings: tuple[Node, ...]) -> tuple[bool, str]:
    """Whether they mean the same, and by which rule."""
    if _INTEGER.match(given) and _INTEGER.match(gold):
        return int(given) == int(gold), "integer"
    one, other = trim(given), trim(gold)
    if _INTEGER.match(one) and _INTEGER.match(other):
        return int(one) == int(other), "integer"
    readings = read(given)
    if not readings:
        return False, "empty"
    choice = option_asked(gold_readings[0])
    if choice is not None and (chosen := option_chosen(one)) is not None:
        return chosen == choice, "choice"
    work = new_work(other)
    if readings[0] == gold_readings[0] and not work.facts(readings[0]).is_undefined:
        return True, "the same"
    for gold_place, gold_reading in enumerate(gold_readings):
        # 1,000 and 1,000,000 would be the same lists: one side must mean what it says first
        for reading in readings if gold_place == 0 else readings[:1]:
            if same_answer(work, reading, gold_reading):
                return True, work.rule
    if choice is None and (value := value_of_option(one)):
        return _compare(value, gold, gold_readings)
    if "word" in (readings[0].head, gold_readings[0].head) and same_words(one, other):
        return True, "words"
    if readings[0].head == "word" and (stated := _stated_inside(one)) is not None:
        return _compare(stated, gold, gold_readings)
    return False, work.rule


def _is_too_much(gold: Node) -> bool:
    """Whether the right answer alone exhausts a budget, so that no response is to blame."""
    try:
        new_work("alone").same(gold, gold)
    except Exhausted:
        return True
    except Undecided:
        pass
    return False


def _stated_inside(text: str) -> str | None:
    r"""A box that holds a sentence: `\text{The answer is } 42` -> 42."""
    bare = without_typeface(text)
    stated = last_statement(bare) if len(bare) <= 10 * SHOWN else None
    return stated if stated is not None and len(stated) < len(bare) else None


def shorten(text: str) -> str:
    """shorten("x" * 99) -> 60 characters that end in "…"."""
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


_WANTED = {
    "boxed": r"\boxed{…}",
    "stated": r"\boxed{…}, `the answer is …` or `#### …`",
    "any": "answer",
}
