r"""What a program printed, where the sentence after its output says it: 5 of "5 cars in the first 15 minutes"."""

from __future__ import annotations

import re
from fractions import Fraction

from foresail.maths.finding.after import is_taken_back
from foresail.maths.finding.phrases import CORRECTION, DOUBT, OR
from foresail.maths.finding.prefilter import WordPattern
from foresail.maths.finding.values import values_of
from foresail.maths.lexicon.table import words_for
from foresail.maths.notation.number_words import english_numeral
from foresail.maths.notation.numeral import value_of

_OUTPUT = re.compile(
    r"```(?:output|text|console|stdout)?[ \t]*\n\s*(-?\d[\d,]{0,30}(?:\.\d{1,30})?)\s*\n```"
    r"\s*([^\n`?]{1,300}+)\s*\Z"
)
_HEDGE = WordPattern(f"{OR}|{CORRECTION}|{DOUBT}", words_for("or", "correction", "doubt"))
_FIRST_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)?")


def printed_value(text: str) -> str | None:
    """The printed number, as the last sentence of the response repeats it; None where it does not, or hedges."""
    if "```" not in text or (output := _OUTPUT.search(text)) is None:
        return None
    printed, sentence = _number(output[1]), output[2]
    if printed is None or _HEDGE.search(sentence):
        return None
    word = _FIRST_WORD.match(sentence)
    if word and english_numeral(word[0].lower()) == printed and not is_taken_back(sentence[word.end() :]):
        return output[1]
    for value in values_of(sentence):
        if _number(value.text) == printed:
            return None if is_taken_back(sentence[value.end :]) else value.text
    return None


def _number(text: str) -> Fraction | None:
    """_number("$-1,200") -> -1200."""
    bare = text.strip("$ ").replace(",", "")
    value = value_of(bare.removeprefix("-")) if bare else None
    return value if value is None or not bare.startswith("-") else -value
