"""What a passage may say instead of the truth: an answer of the same kind.

    other_answer("1987", "When was it built?", others, chance) -> "1962"
    other_answer("Oslo", "In what city was she born?", others, chance) -> "Galați", the answer to such a question

Years and numbers are changed. Other answers come from questions that ask for the same: "who", "where", "what city".
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence

YEAR = re.compile(r"\b(1\d|20)\d\d\b")
DIGITS = re.compile(r"\d+")
ORDINAL = re.compile(r"(st|nd|rd|th)\b")
LAST_YEAR = 2024
PLACES = ("city", "town", "village", "place", "location")
BEGIN = re.compile(r"\W*(?:(?:in|on|at|by|from|to|with|for|of) )?(who|whom|whose|where)\b", re.IGNORECASE)
WHAT = re.compile(
    r"\b(?:which|what) (?:(?:is|was|are|were) the (?:(?:full )?name of the )?)?([a-z]+)\b", re.IGNORECASE
)
NO_NOUN = (
    "is",
    "was",
    "are",
    "were",
    "did",
    "does",
    "do",
    "has",
    "have",
    "the",
    "of",
    "year",
    "kind",
    "type",
)
YES_NO = ("yes", "no")
Answers = Mapping[str, Sequence[str]]  # by what is asked for


def asked_for(question: str) -> str | None:
    """asked_for("In what country is it?") -> "country"; "where"; "who"; None if the words do not say."""
    nouns = (match[1].lower() for match in WHAT.finditer(question))
    if (noun := next((noun for noun in nouns if noun not in NO_NOUN), None)) is not None:
        return "where" if noun in PLACES else noun
    # "the man who …" in the midst of a question asks for nobody
    if (begin := BEGIN.match(question)) is not None:
        return "where" if begin[1].lower() == "where" else "who"
    return None


def other_answer(answer: str, question: str, answers: Answers, chance: random.Random) -> str | None:
    if answer.lower() in YES_NO:
        return None
    if DIGITS.search(answer):
        return changed_number(answer, chance)
    alike = [
        other
        for other in answers.get(asked_for(question) or "", ())
        if other.lower() != answer.lower() and is_alike(other, answer)
    ]
    return chance.choice(alike) if alike else None


def changed_number(answer: str, chance: random.Random) -> str:
    """changed_number("3,677 seated", chance) -> "3,912 seated"; years stay within 30 years, and in the past."""
    if (year := YEAR.search(answer)) is not None:
        shift = chance.choice([*range(3, 31)])
        later = int(year[0]) + shift
        new = later if later <= LAST_YEAR and chance.random() < 0.5 else int(year[0]) - shift
        return answer[: year.start()] + str(new) + answer[year.end() :]
    last = [*DIGITS.finditer(answer)][-1]
    behind = answer[last.end() :]
    if ORDINAL.match(behind):
        others = [number for number in range(4, 20) if str(number) != last[0]]
        return f"{answer[: last.start()]}{chance.choice(others)}th{behind[2:]}"
    return answer[: last.start()] + other_digits(last[0], chance) + behind


def other_digits(digits: str, chance: random.Random) -> str:
    """As many digits, another number: other_digits("677", chance) -> "912"; the first is 0 only if it was."""
    changed = digits
    while changed == digits:
        first = "0" if digits[0] == "0" and len(digits) > 1 else chance.choice("123456789")
        changed = first + "".join(chance.choice("0123456789") for _ in digits[1:])
    return changed


def is_alike(other: str, answer: str) -> bool:
    """Names for names, of about the length; "an actor" is no name."""
    if other.lower() in YES_NO or DIGITS.search(other):
        return False
    return is_name(other) == is_name(answer) and abs(len(other.split()) - len(answer.split())) <= 1


def is_name(text: str) -> bool:
    return all(
        word[:1].isupper() or word in ("of", "the", "and", "de", "von", "van") for word in text.split()
    )
