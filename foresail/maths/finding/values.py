r"""Values in a sentence: formulas, numbers, pairs; which of them are offered, and which are ruled out."""

from __future__ import annotations

import re
from typing import NamedTuple

from foresail.maths.finding.phrases import (
    AND,
    BECAUSE,
    FILLING,
    FILLING_UNSPACED,
    NOT,
    NOT_AFTER,
    NOT_UNSPACED,
    NUMBER_AFTER,
    NUMBER_BEFORE,
    OR,
    STEP,
)
from foresail.maths.finding.prefilter import WordPattern
from foresail.maths.finding.visible import without_unclosed
from foresail.maths.lexicon.table import compiled, spaced, unspaced, words_for
from foresail.maths.notation.answer import read
from foresail.maths.notation.nouns import OPERATORS
from foresail.maths.notation.number_words import NUMBER_WORDS
from foresail.maths.notation.tree import EMPTY, INFINITY

TIME_CHARS = 20  # characters before a value in which a preposition stands
SENTENCE_CHARS = 500  # of which only the end is looked at

_SIGNS = r"(?:[-−]\s?)?(?:[$€£¥₹]\s?)?(?<![A-Za-z0-9.^{_])"
_AFTER_DIGITS = r"(?:\s*/\s*\d+)?(?:\s?\\?%|\s?(?:percent|pct)\b)?"
_NUMBER = rf"{_SIGNS}(?:\d[\d,.]*\d|\d|\.\d+){_AFTER_DIGITS}"
# Without commas, for they part coordinates: what can be read in many ways, such as "1,2,3", takes too long.
_COORDINATE = rf"{_SIGNS}(?:\d[\d.]*\d|\d|\.\d+){_AFTER_DIGITS}"
_FORMULA = r"\\\[(?:.+?)\\\]|\$\$(?:.+?)\$\$|\\\((?:.+?)\\\)|\$[^$]+\$(?!\d)"
# A formula without delimiters, known by its π, root, fraction or letter: 9π/2, 2 * sqrt(3), (\frac{2}{5}), 2x + 3.
_FACTOR = r"\d++(?:[.,]\d++)*+"
_TERM = (
    r"(?:π|\\pi(?![a-zA-Z])|(?:√|\\sqrt|\bsqrt)\s?(?:\d++|\(\s?\d++\s?\)|\{[^{}]{1,40}\})"
    r"|\\[dt]?frac\s?\{[^{}]{1,40}\}\s?\{[^{}]{1,40}\}|(?<=\d)[a-cknp-rt-z](?![^\Wπ]))(?:[²³]|\^\s?\d)?"
)
_SIGNED = r"\s?(?:[-−+*·×⋅/]|\\cdot|\\times)\s?"
_BARE = (
    rf"(?:[-−]\s?)?(?<![A-Za-z0-9.^{{_])(?:{_FACTOR}(?:{_SIGNED}|\s?)){{0,3}}{_TERM}"
    rf"(?:{_SIGNED}(?:{_FACTOR}\s?{_TERM}|{_TERM}|{_FACTOR})|\s?{_TERM}){{0,6}}"
)
_VALUES = re.compile(
    rf"({_FORMULA})|\(\s*{_BARE}\s*\)|{_BARE}|\(\s*{_COORDINATE}(?:\s*,\s*{_COORDINATE})+\s*\)"
    rf"|{_NUMBER}(?:\s*(?:,\s*and|,\s|and|or)\s*{_NUMBER}|\s{_NUMBER})*",
    re.DOTALL,
)
_NUMBER_AFTER = compiled(rf"(?:\s*+(?:-\s*+)?{NUMBER_AFTER})++(?!-)")
_NUMBER_BEFORE = compiled(rf"{NUMBER_BEFORE}[\s$*]*\Z")
_PROSE = re.compile(r"(?<![\\a-zA-Z{])[a-z]{2,}\s+[a-z]{2,}\s+[a-z]{2,}\b")
_COMMA_GROUP = re.compile(r"\s?\{\s*,\s*\}\s?")
_FOREIGN_WORD = re.compile(r"[\u0400-\u1fff\u3040-\u9fff\uac00-\ud7ff]|[à-öø-ɏḀ-ỹ]|[.!][)*]*\s+\S")
_JOINERS = re.compile("并且|而且|或者|[且或和与]")  # of conditions: k > -1 且 k ≠ 0
_WORD = re.compile(r"(?<![\\a-zA-Z])[a-zA-Z]{3}")
_TWO_WORDS = re.compile(r"(?<![\\{a-zA-Z])(?!(?:or|and)\b)[a-zA-Z]{2,}\s+(?!(?:or|and)\b)[a-zA-Z]{2,}")
_NUMBER_WORD = compiled(rf"(?<!\\)(?:{NUMBER_AFTER}|{NUMBER_BEFORE})")
_NAMED = ("number", "set", EMPTY.head, INFINITY.head)
_SIGN = re.compile(r"[\d\\$=^]")
_MARKS = r"[\s$({\[\\\"'“*]"
DENIED = WordPattern(
    rf"\b(?:{NOT})(?!\w)(?:{_MARKS}|(?:{FILLING})(?!\w)|(?:{FILLING_UNSPACED}))*+\Z"
    rf"|(?:{NOT_UNSPACED})(?:{_MARKS}|(?:{FILLING_UNSPACED}))*+\Z"
    r"|\bnot (?:the|my|our|an?) (?:\w+ ){0,2}answer\s*:\W*+\Z",
    words_for("denial"),
)
_UNEQUAL = re.compile(rf"(?:[≠≤≥]|(?<![-=<])[<>]=?|\\(?:neq?|leq?|geq?|lt|gt)(?![a-zA-Z])){_MARKS}*+\Z")
_DENIED_AFTER = compiled(NOT_AFTER)
_OPERATOR = re.compile(r"[-+*/^×÷·()\s\\]+")  # between two parts of one formula without delimiters
_OPEN = re.compile(r"[-+*/^×÷·]\s*\Z")
_EQUALS = compiled(rf"\s*(?:[^,;.\d]{{0,30}}[=≈]|(?:{spaced('is')})(?!\w)|{unspaced('is')})\s*")
_FACTORS = re.compile(r"^[^,;.]{0,40}[*×·+/÷-]")
_DELIMITERS = re.compile(r"\A(?:\\[\[(]|\$\$?)|(?:\\[\])]|\$\$?)\Z")
_BOUND = compiled(rf"(?:\b(?:{spaced('bound')})|(?:{unspaced('bound')}))\s*[$(]*\Z")
_WITHIN = compiled(rf"\b(?:{spaced('within')})\s*\Z")
_TIME = compiled(rf"\s*(?:{spaced('time')})(?!\w)")
_THEREFORE = compiled(rf"\A\s*{STEP}[,，:\s]+")
_ASIDE = re.compile(r"\$?(-?[\d.,/]+)\$?\s+\(([^()a-zA-Z\\]*\d[^()a-zA-Z\\]*)\)")
_BECAUSE = compiled(rf"{BECAUSE}|[(（]\s*{BECAUSE}")
_ALTERNATIVE = WordPattern(OR, words_for("or"))
_WORKED_OUT = re.compile(r"\d[^=]*=\s*\$?\s*\Z")  # or 3 + 4 = 7
_TIGHT = compiled(rf"(?:[\s/|()（）\[\]?？。.*$]|{AND})*+\Z")
# Words beside a value that make another one of it: "twice 7", "7 below zero".
BEFORE_CHARS = 60  # characters before a value that are looked at
_FILLERS = frozenset("of the a an to by than as raised".split())
# Said of a value only with "of" or "to" in between: a square may be the thing that is asked for.
_OF = frozenset("square cube power sum product difference quotient all none".split())
_TO = frozenset("unequal opposed contrary close near".split())
_EXCLUDED = frozenset("except excluding without besides under beneath below above beyond times".split())
_ALL_BUT = re.compile(
    r"\b(?:anything|everything|nothing|all|none|anyone|any value)\s+but\s*[$(\\\[{*]*\Z", re.IGNORECASE
)
_ENGLISH_WORD = re.compile(r"[a-zA-Z]+(?:-[a-zA-Z]+)*")
_LAST_CLAUSE = re.compile(r"[^,;:.=?!\n\d$\\]*\Z")
_NEXT_WORDS = re.compile(r"(?:[\s$)*\]]|\\[)\]])*(?:-\s?)?([a-zA-Z]+(?:-[a-zA-Z]+)*)(?:\s+([a-zA-Z]+))?")
_AFTER = (OPERATORS - {"percent", "percentage", "pct", "its", "bar", "base", "point", "loss", "losses"}) | {
    "below", "above", "under", "short", "googol", "imaginary",
}  # fmt: skip
_MAY_FOLLOW = frozenset("one two second seconds first".split())  # 42 one can see
_PAIRS_AFTER = frozenset(
    tuple(pair.split()) for pair in "to the,out of,in base,more or,too many,point five,in hex".split(",")
)


class Value(NamedTuple):
    text: str
    start: int
    end: int
    open: bool = False  # a part of a sum or product that is not worked out


def values_of(sentence: str) -> list[Value]:
    """The values that are not ruled out: values_of("3 + 4 = 7 cats, not 8") -> 7."""
    return [value for value in all_values(sentence) if not is_denied(sentence, value.start, value.end)]


def all_values(sentence: str) -> list[Value]:
    """Every value in order, and of an equation what it ends on: all_values("3 + 4 = 7, not 8") -> 7, 8."""
    values: list[Value] = []
    end = 0
    for match in _VALUES.finditer(without_unclosed(sentence)):
        between = sentence[end : match.start()]
        opened = _OPEN.search(between) is not None
        value = _whole_value(sentence, match, end)
        if values and opened and _OPERATOR.fullmatch(between):
            values[-1] = Value(sentence[values[-1].start : value.end], values[-1].start, value.end, True)
        else:
            if values and (_EQUALS.fullmatch(between) or values[-1].text.endswith("=")):
                _drop_left(sentence, values)
            values.append(value._replace(open=opened))
        end = value.end
    return values


def _whole_value(sentence: str, match: re.Match[str], floor: int) -> Value:
    """The value with the words that belong to its number: "minus 7 million" is neither 7 nor -7."""
    start, end = match.span()
    if after := _NUMBER_AFTER.match(sentence, end):
        end = after.end()
    if before := _NUMBER_BEFORE.search(sentence, max(floor, start - 20), start):
        start = before.start()
    if (start, end) == match.span() and match[1]:
        return Value(_DELIMITERS.sub("", sentence[start:end]).strip(" \t\n.,;"), start, end)
    return Value(sentence[start:end].strip(), start, end)


def _drop_left(sentence: str, values: list[Value]) -> None:
    """Drops what an equation begins with: the 3 + 4 of "3 + 4 = 7", the name in "$ABC$ is 7", 3 cats * 4 cats."""
    left = values[-1]
    if left.open or left.text.endswith("=") or not any(character.isdigit() for character in left.text):
        values.pop()
        while left.open and values and _FACTORS.search(sentence, values[-1].end, left.start + 1):
            left = values.pop()


def is_denied(text: str, start: int, end: int) -> bool:
    """Whether the value there is ruled out: "not 7", "不是7", "7ではない"."""
    before = text[max(0, start - 60) : start]
    return (
        DENIED.search(before) is not None
        or _UNEQUAL.search(before) is not None
        or _BOUND.search(before) is not None
        or _DENIED_AFTER.match(text, end) is not None
        or is_governed(text, start, end)
    )


def stated_values(sentence: str) -> tuple[str, ...]:
    """What a statement offers: ("42 because 6·7 = 42") -> 42; ("$42$ or $43$") -> $42$, $43$; words -> nothing.

    All its values count, whatever stands between them, up to a reason that is given for them.
    """
    sentence = without_lead(sentence[:SENTENCE_CHARS])
    if aside := _ASIDE.fullmatch(sentence):  # 42 (20 + 22), which is no product
        return tuple(dict.fromkeys((aside[1], *stated_values(aside[2]))))
    if "{" in sentence:
        sentence = _COMMA_GROUP.sub(",", sentence)
    if is_one_formula(sentence):
        return (sentence,)
    first = _VALUES.search(sentence)
    if first is None:
        return ()
    reason = _BECAUSE.search(sentence, first.end())
    if reason and not _ALTERNATIVE.search(sentence[first.end() : reason.start()]):
        sentence = sentence[: reason.start()]
    values = values_of(sentence)
    values = [value for value in values if not _tells_time(sentence, value)] or values
    return tuple(dict.fromkeys(value.text for value in values if not value.open))


def _tells_time(sentence: str, value: Value) -> bool:
    """Whether a value only says when: the 12 of "220 $ à payer d'ici 12 mois"."""
    before = sentence[max(0, value.start - TIME_CHARS) : value.start]
    return _WITHIN.search(before) is not None and _TIME.match(sentence, value.end) is not None


def ending_values(sentence: str) -> tuple[str, ...]:
    """What a sentence ends on: ("The volume of $ABC$ is 120") -> 120; ("It is $42$ or $43$.") -> $42$, $43$."""
    sentence = without_lead(sentence[-SENTENCE_CHARS:])
    if "{" in sentence:
        sentence = _COMMA_GROUP.sub(",", sentence)
    if is_one_formula(sentence):
        return (sentence,)
    values = values_of(sentence)
    if not values or values[-1].open:  # cut off, or x + 7
        return ()
    run = values[-1:]
    for earlier in reversed(values[:-1]):
        between = sentence[earlier.end : run[0].start]
        alternative = len(between) <= 60 and _ALTERNATIVE.search(between) and not _WORKED_OUT.search(between)
        if not (alternative or _TIGHT.match(between)):
            break
        run.insert(0, earlier)
    return tuple(dict.fromkeys(value.text for value in run))


def without_lead(sentence: str) -> str:
    """without_lead("So 3 + 4 = 7") -> "3 + 4 = 7"."""
    return _THEREFORE.sub("", sentence)


def is_one_formula(text: str) -> bool:
    """Whether the text is mathematics from end to end, and not several formulas side by side."""
    if _FOREIGN_WORD.search(_JOINERS.sub(",", text)) or formulas(text) > 1 or not is_mathematics(text):
        return False
    if "\n" in text.strip() and not text.lstrip().startswith(("$", "\\[", "\\(", "\\begin")):
        return False
    if not _SIGN.search(text):  # no product of letters, but "no solution"
        return not _WORD.search(text) or read(text)[0].head in _NAMED
    return not _TWO_WORDS.search(text) or _NUMBER_WORD.search(text) is not None


def is_mathematics(text: str) -> bool:
    if _PROSE.search(text):
        return False
    readings = read(text)
    return bool(readings) and readings[0].head != "word"


def formulas(text: str) -> int:
    """How many formulas stand in delimiters: formulas("$7$ or $8$") -> 2."""
    if "$" not in text and "\\(" not in text and "\\[" not in text:
        return 0
    return len(re.findall(_FORMULA, without_unclosed(text), re.DOTALL))


def is_governed(text: str, start: int, end: int) -> bool:
    """Whether words beside the value there make another one of it: "minus 7", "the cube of 7", "7 squared"."""
    before = text[max(0, start - BEFORE_CHARS) : start]
    if _ALL_BUT.search(before) or _governs(*_word_before(text, start, _FILLERS)):
        return True
    after = _NEXT_WORDS.match(text, end)
    if after is None:
        return False
    first, second = after[1].lower(), (after[2] or "").lower()
    return first in _AFTER or first in NUMBER_WORDS - _MAY_FOLLOW or (first, second) in _PAIRS_AFTER


def is_about_another(text: str, cue: int) -> bool:
    """Whether the words before a cue make it say something else: "twice the answer is", "not the answer:"."""
    word, skipped = _word_before(text, cue, _FILLERS | {"final", "correct", "right"})
    return word in ("not", "wrong", "incorrect") or _governs(word, skipped)


def _word_before(text: str, place: int, fillers: frozenset[str]) -> tuple[str, list[str]]:
    """The last word of the clause before a place that is no filler, and the fillers after it."""
    clause = _LAST_CLAUSE.search(text[max(0, place - BEFORE_CHARS) : place])
    words = [word.lower() for word in _ENGLISH_WORD.findall(clause[0] if clause else "")]
    skipped = []
    while words and words[-1] in fillers:
        skipped.append(words.pop())
    return (words[-1] if words else ""), skipped


def _governs(word: str, fillers: list[str]) -> bool:
    if word in _OF:
        return "of" in fillers
    if word in _TO or word in NUMBER_WORDS:
        return bool(fillers) and (word in NUMBER_WORDS or "to" in fillers)
    return word in OPERATORS or word in _EXCLUDED
