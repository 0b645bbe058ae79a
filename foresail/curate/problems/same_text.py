r"""What two problems share if they are one: their numbers, and nearly all their words.

comparable("Find $\dfrac{1}{2} + 1,000$.") -> "find frac 1 2 + 1000"
numbers_in("Add 3 and 1,000.") -> "1000 3"
"""

from __future__ import annotations

import re

from foresail.curate.problems.wording import DRAWING

COMMANDS = re.compile(
    r"\\[()\[\]]|\\(?:left|right|displaystyle|text(?:bf|it|rm)?|math(?:rm|bf|it|cal|bb)|qquad|quad|[,;:! ])|"
    r"\\begin\{[a-z*]+\}|\\end\{[a-z*]+\}"
)
FRACTIONS = re.compile(r"\\[dt](frac|binom)")
SHORT_FRACTION = re.compile(r"\\frac(\d)(\d)")
GROUPS = re.compile(r"(?<=\d)(?:,|\{,\}|\\,)(?=\d{3}(?!\d))")
NUMBER = re.compile(r"\d+(?:\.\d+)?")
LABEL = re.compile(r'label\([^"()]*(?:rotate\(\d+\)\*)?"([^"]*)"')
OPERATORS = re.compile(
    r"[+=<>^!]|\\(?:sin|cos|tan|log|ln|sqrt|le|ge|leq|geq|lt|gt|times|cdot|div|int|sum|prod|pi|pm)(?![a-z])"
)
SAME_OPERATORS = {r"\leq": r"\le", r"\geq": r"\ge", r"\lt": "<", r"\gt": ">", r"\times": "*", r"\cdot": "*"}


def comparable(text: str) -> str:
    """Lower case, without layout and the spelling of formulas; of a drawing its labels."""
    return spelt_alike(DRAWING.sub(labels_of, text))


def labels_of(drawing: re.Match[str]) -> str:
    return " ".join(LABEL.findall(drawing[0]))


def spelt_alike(text: str) -> str:
    text = FRACTIONS.sub(r"\\\1", text)
    text = SHORT_FRACTION.sub(r"\\frac{\1}{\2}", text)
    text = COMMANDS.sub(" ", text)
    return GROUPS.sub("", text).lower()


def numbers_in(comparable_text: str) -> str:
    """Every number, as often as it is there, in one order."""
    return " ".join(sorted(NUMBER.findall(comparable_text)))


def operators_in(comparable_text: str) -> str:
    signs = (SAME_OPERATORS.get(sign, sign) for sign in OPERATORS.findall(comparable_text))
    return " ".join(sorted(signs))


def tokens_in(comparable_text: str) -> str:
    """Letters, digits, brackets and signs of formulas, without spaces: equal for one text in two layouts."""
    return re.sub(r"[\s$.,:;?~`'\"{}\\_&|]+", "", comparable_text)
