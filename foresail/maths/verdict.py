r"""The maths verifier: whether a response's final answer means what the right answer means.

Answers are compared by exact arithmetic, then by many digits at random points with relative error bounds. Every
step has a limit, and one budget covers all steps, so any text gets its verdict quickly, in any thread. No response
makes the verifier raise: an answer that is too deep or too much work is wrong. No text is ever run as a program.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from functools import lru_cache

from foresail.maths.extract import Accept, Extracted, extract, from_boxes
from foresail.maths.finding.statements import last_statement
from foresail.maths.meaning.budget import MAX_WORK, Budget, Exhausted
from foresail.maths.meaning.compare import new_work, same_answer
from foresail.maths.meaning.sympy_process import Undecided
from foresail.maths.notation.answer import in_words, is_split, read, same_words, trim
from foresail.maths.notation.tree import Node
from foresail.maths.options import option_asked, option_chosen, value_of_option, without_typeface
from foresail.maths.stack import again_with_room, has_room, with_room
from foresail.records import Verdict

MAX_CACHED_CHARS = 300  # characters of two answers whose comparison is remembered
VALUE_COST = 50  # work to look at one of several values, beside one for each character
FAULT = "a fault of the verifier"  # in the detail of a verdict that ended in an unexpected error
SHOWN_CHARS = 60  # characters of each side that `detail` keeps

_LISTS = frozenset(["list", "{}", "braces"])
_JOINED = re.compile("and|or|[;和与或且]")
_STATED = re.compile(r"^\s*(?:####|(?:the |final |the final )?answer\b)", re.IGNORECASE | re.MULTILINE)
_INTEGER = re.compile(r"[+-]?\d{1,4000}\Z", re.ASCII)


@again_with_room
def grade(response: str, answer: str, *, accept: Accept = "any") -> Verdict:
    r"""grade(r"It is \boxed{0.5}.", "1/2") -> correct; grade("I give up.", "1/2") -> unparsable.

    `accept` says which forms of a final answer count: "boxed" only, also "stated" ones, or "any".
    """
    gold = right_answer(answer)
    readings = read(gold)
    if not readings:
        return Verdict(status="ungradable", score=0.0, detail="the problem's answer is empty")
    try:
        return _judge(response, gold, accept)
    except Undecided as error:
        return Verdict(status=error.status, score=0.0, detail=str(error))
    except Exception as error:
        if isinstance(error, RecursionError) and not has_room():
            raise
        return _without_comparison(error, readings[0])


def _judge(response: str, gold: str, accept: Accept) -> Verdict:
    extracted = extract(response, accept)
    if extracted is None:
        why = f"no {_ANSWER_FORMS[accept]} that stands after the thinking"
        return Verdict(status="unparsable", score=0.0, detail=why)
    same, rule = _decide(extracted, gold)
    if rule == "empty":
        return Verdict(status="unparsable", score=0.0, detail=f"{extracted.rule} answer is empty")
    detail = f"{extracted.rule} {shorten(extracted.text)} against {shorten(gold)}, compared by {rule}"
    return Verdict(status="correct" if same else "wrong", score=float(same), detail=detail)


def _without_comparison(error: Exception, gold: Node) -> Verdict:
    """The verdict after an error: `ungradable` if the right answer alone fails, else `wrong`.

    Exhausted and RecursionError are expected; the second where Python's stack is smaller than `stack.py` assumes.
    Any other error is a bug of this verifier, and `wrong`, so that no response can drop its group by it.
    """
    why = "too much work"
    if not isinstance(error, Exhausted | RecursionError):
        why = f"{FAULT}: {type(error).__name__}: {shorten(str(error))}"
        warnings.warn(
            f"the maths verifier could not compare an answer ({why}); please report it", stacklevel=3
        )
    if _fails_alone(gold):
        return Verdict(
            status="ungradable", score=0.0, detail=f"the problem's answer cannot be compared: {why}"
        )
    return Verdict(status="wrong", score=0.0, detail=f"compared by nothing: {why}")


def _decide(extracted: Extracted, gold: str) -> tuple[bool, str]:
    """Compares a list as a whole, or where that fails each of the values: all may say the same."""
    budget = Budget()  # of them all
    if extracted.is_list:
        same, rule = _compare(extracted.text, gold, budget, len(extracted.offered) < 2)
        if same or len(extracted.offered) < 2:
            return same, rule
    for value in extracted.offered:
        budget.spend(VALUE_COST + len(value) + len(gold))
        if not _compare(value, gold, budget)[0]:
            return False, "alternatives"
    return True, "alternatives"


def _compare(candidate: str, gold: str, budget: Budget, is_one: bool = True) -> tuple[bool, str]:
    """Whether they mean the same, and by which rule. Short ones come again and are remembered with their cost."""
    if _INTEGER.match(candidate) and _INTEGER.match(gold):
        return int(candidate) == int(gold), "integer"
    if len(candidate) + len(gold) > MAX_CACHED_CHARS:
        return _compare_texts(candidate, gold, budget, is_one)
    same, rule, work = _compare_short(candidate, gold, is_one)
    budget.spend(work)
    return same, rule


@lru_cache(maxsize=4096)  # responses to one problem give the same few answers
def _compare_short(candidate: str, gold: str, is_one: bool) -> tuple[bool, str, int]:
    budget = Budget()
    same, rule = _compare_texts(candidate, gold, budget, is_one)
    return same, rule, MAX_WORK - budget.left


@with_room
def ballot(response: str, *, accept: Accept = "any") -> str | None:
    r"""What a response votes for, equal where `grade` sees equal numbers: ballot(r"\boxed{0.5}") -> "1/2"."""
    extracted = extract(response, accept)
    readings = read(extracted.text) if extracted else ()
    if not extracted or not readings:
        return None
    facts = new_work("ballot", Budget()).facts(readings[0])
    try:
        if facts.exact is not None:
            return str(facts.exact)
        if not facts.symbols and facts.value is not None:
            return str(facts.value.fine.context.nstr(facts.value.fine, 15))
    except Exception:  # too much work, or str of an integer of more than 4,300 digits: its words are its vote
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
    if (len(answer) > SHOWN_CHARS or _STATED.search(answer)) and (
        stated := last_statement(answer)
    ) is not None:
        return stated
    return answer


def _compare_texts(candidate: str, gold: str, budget: Budget, is_one: bool = True) -> tuple[bool, str]:
    """Whether they mean the same, and by which rule. `is_one`: the response gives it in one piece."""
    one, other = trim(candidate), trim(gold)
    if _INTEGER.match(one) and _INTEGER.match(other):
        return int(one) == int(other), "integer"
    return _compare_readings(candidate, gold, budget, is_one)


@with_room
def _compare_readings(candidate: str, gold: str, budget: Budget, is_one: bool) -> tuple[bool, str]:
    one, other = trim(candidate), trim(gold)
    readings = read(candidate)
    if not readings:
        return False, "empty"
    gold_readings = read(gold)
    choice = option_asked(gold_readings[0], other)
    if choice is not None and (chosen := option_chosen(one)) is not None:
        return chosen == choice, "choice"
    work = new_work(other, budget)
    if readings[0] == gold_readings[0] and not work.facts(readings[0]).is_undefined:
        return True, "the same"
    is_list = is_one and len(gold_readings) > 1 and _JOINED.search(one) is None
    if any(same_answer(work, *pair) for pair in _meant(readings, gold_readings, is_list)):
        return True, work.rule
    if choice is None and (value := value_of_option(one)):
        return _compare_texts(value, gold, budget)
    if choice is not None and (value := value_of_option(other)):
        return _compare_texts(candidate, value, budget)
    if "word" in (readings[0].head, gold_readings[0].head) and same_words(one, other):
        return True, "words"
    if readings[0].head == "word" and (stated := _stated_inside(one)) is not None:
        return _compare_texts(stated, gold, budget)
    return False, work.rule


def _meant(
    readings: tuple[Node, ...], gold_readings: tuple[Node, ...], is_list: bool
) -> Iterator[tuple[Node, Node]]:
    """The pairs of readings of a response and of a right answer that may be meant together.

    One side means what it says first. `1,200` is also 1 and 200 where the right answer is a list. Where it is the
    right answer itself it may be one only for `1, 200`, in this order: not for (1, 200), or 1 or 200. `is_list`:
    commas alone join what the response gives.
    """
    candidate, gold = readings[0], gold_readings[0]
    for reading in readings:
        if gold.head in _LISTS or not is_split(reading, candidate):
            yield reading, gold
    for other in gold_readings[1:]:
        if not is_split(other, gold):
            yield candidate, other
        elif is_list and candidate.head == "list" and all(item.head != "chain" for item in candidate.args):
            yield candidate, Node("()", other.args)


@with_room
def _fails_alone(gold: Node) -> bool:
    """Whether the right answer cannot even be compared with itself, so that no response is to blame."""
    try:
        new_work("alone", Budget()).same(gold, gold)
    except Undecided:
        return False
    except Exception:
        return True
    return False


def _stated_inside(text: str) -> str | None:
    r"""A box that holds a sentence: `\text{The answer is } 42` -> 42."""
    bare = without_typeface(text)
    stated = last_statement(bare) if len(bare) <= 10 * SHOWN_CHARS else None
    return stated if stated is not None and len(stated) < len(bare) else None


def shorten(text: str) -> str:
    """shorten("x" * 99) -> 60 characters that end in "…"."""
    return text if len(text) <= SHOWN_CHARS else text[: SHOWN_CHARS - 1] + "…"


_ANSWER_FORMS = {
    "boxed": r"\boxed{…}",
    "stated": r"\boxed{…}, `the answer is …` or `#### …`",
    "any": "answer",
}
