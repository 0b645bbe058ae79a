r"""What makes another value of one: "twice 7", "7 below zero", and the signs around a box: `-\boxed{7}`."""

from __future__ import annotations

import re

from foresail.rewards.notation.english import NUMBER_WORDS
from foresail.rewards.notation.nouns import OPERATORS

BEFORE = 60  # characters before a value that are looked at
FORMULA = 200  # characters of a formula around a box

_FILLERS = frozenset("of the a an to by than as raised".split())
# Said of a value only with "of" or "to" in between: a square may be the thing that is asked for.
_OF = frozenset("square cube power sum product difference quotient all none".split())
_TO = frozenset("unequal opposed contrary close near".split())
_EXCLUDED = frozenset("except excluding without besides under beneath below above beyond times".split())
_ALL_BUT = re.compile(
    r"\b(?:anything|everything|nothing|all|none|anyone|any value)\s+but\s*[$(\\\[{*]*\Z", re.IGNORECASE
)
_WORD = re.compile(r"[a-zA-Z]+(?:-[a-zA-Z]+)*")
_LAST_CLAUSE = re.compile(r"[^,;:.=?!\n\d$\\]*\Z")
_NEXT_WORDS = re.compile(r"(?:[\s$)*\]]|\\[)\]])*(?:-\s?)?([a-zA-Z]+(?:-[a-zA-Z]+)*)(?:\s+([a-zA-Z]+))?")
_BEHIND = (OPERATORS - {"percent", "percentage", "pct", "its", "bar", "base", "point", "loss", "losses"}) | {
    "below", "above", "under", "short", "googol", "imaginary",
}  # fmt: skip
_MAY_FOLLOW = frozenset("one two second seconds first".split())  # 42 one can see
_PAIRS_BEHIND = frozenset(
    [
        ("to", "the"),
        ("out", "of"),
        ("in", "base"),
        ("more", "or"),
        ("too", "many"),
        ("point", "five"),
        ("in", "hex"),
    ]
)
_SIGN_BEFORE = re.compile(r"(?:[-−+/^_!<≠÷×·]|(?<!\*)\*|\\(?:ne|neq|not|lt|cdot|times|div|pm|mp))([ \t]*)\Z")
_GLUED_BEFORE = re.compile(r"(?<![\\a-zA-Z])[a-zA-Z]\Z|[\d)\]]\Z")
_SIGN_BEHIND = re.compile(
    r"[ \t]*(?:[+!÷×·]|[-−/](?![-\s]*[a-zA-Z]{2})|\*(?!\*)|\^(?!\s*\{?\s*(?:\\(?:circ|degree|text)|st|nd|rd|th))"
    r"|\\(?:cdot|times|div|pm|mp|pi|sqrt|[dt]?frac|binom|ln|log|sin|cos|tan|infty|sum|int)(?![a-zA-Z]))|[a-zA-Z\d(]"
)
_FREE, _FREE_BEHIND = ("", "=", "$", "(", ":"), ("", "$", ".", ",", ";", ":", "\n", ")", "}")
_OPENING = re.compile(
    r"\\(?:sqrt|frac|dfrac|tfrac|binom|log|ln|sin|cos|tan|overline|cancel|lfloor|lceil)\b[^$]*\Z"
)


def is_governed(text: str, start: int, end: int) -> bool:
    """Whether words beside the value there make another one of it: "minus 7", "the cube of 7", "7 squared"."""
    before = text[max(0, start - BEFORE) : start]
    if _ALL_BUT.search(before):
        return True
    clause = _LAST_CLAUSE.search(before)
    words = [word.lower() for word in _WORD.findall(clause[0] if clause else "")]
    fillers = []
    while words and words[-1] in _FILLERS:
        fillers.append(words.pop())
    if words and _governs(words[-1], fillers):
        return True
    behind = _NEXT_WORDS.match(text, end)
    if behind is None:
        return False
    first, second = behind[1].lower(), (behind[2] or "").lower()
    return first in _BEHIND or first in NUMBER_WORDS - _MAY_FOLLOW or (first, second) in _PAIRS_BEHIND


def _ends_freely(text: str, end: int) -> bool:
    """Whether a sign that ends a formula or a sentence follows, as it mostly does."""
    return text[end : end + 1] in _FREE_BEHIND or text.startswith(("\\)", "\\]", "\\\\"), end)


def is_about_another(text: str, cue: int) -> bool:
    """Whether the words before a cue make it say something else: "twice the answer is", "not the answer:"."""
    clause = _LAST_CLAUSE.search(text[max(0, cue - BEFORE) : cue])
    words = [word.lower() for word in _WORD.findall(clause[0] if clause else "")]
    fillers = []
    while words and words[-1] in _FILLERS | {"final", "correct", "right"}:
        fillers.append(words.pop())
    return bool(words) and (words[-1] in ("not", "wrong", "incorrect") or _governs(words[-1], fillers))


def _governs(word: str, fillers: list[str]) -> bool:
    if word in _OF:
        return "of" in fillers
    if word in _TO or word in NUMBER_WORDS:
        return bool(fillers) and (word in NUMBER_WORDS or "to" in fillers)
    return word in OPERATORS or word in _EXCLUDED


def is_part_of_formula(text: str, start: int, end: int) -> bool:
    r"""Whether the box there is a part of a formula: `-\boxed{7}`, `\boxed{7}^2`, but not `x = \boxed{7}`."""
    if not _ends_freely(text, end) and _SIGN_BEHIND.match(text, end):
        return True
    before = text[max(0, start - FORMULA) : start]
    line = before[before.rfind("\n") + 1 :]
    if line[-1:] in _FREE and line.count("{") <= line.count("}"):
        return False
    opening = max(line.rfind("$"), line.rfind("\\("), line.rfind("\\["))
    sign = _SIGN_BEFORE.search(line)
    if sign and (not sign[1] or (opening >= 0 and sign.start() > opening + 1)):  # and no dash between words
        return True
    if _GLUED_BEFORE.search(line):
        return True
    formula = line[opening + 1 :]
    if formula.count("{") <= formula.count("}"):
        return False
    group = _OPENING.search(formula)
    return group is not None and group[0].count("{") > group[0].count("}")
