r"""From the text of an answer to what it may mean: one tree, or several where its commas can be read in two ways.

`read("1,234")` is the number 1234, or else the list 1, 234; `read("no solution")` is the empty set;
`read("Evelyn")` a word.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

from foresail.maths.lexicon.table import words_for
from foresail.maths.notation.characters import plain
from foresail.maths.notation.grammar import MAX_LENGTH, parse
from foresail.maths.notation.nouns import changes_value, names_things
from foresail.maths.notation.number_words import chinese_numeral, english_numeral
from foresail.maths.notation.numeral import decimal_comma, significant_digits
from foresail.maths.notation.tree import EMPTY, INFINITY, Node, Unreadable, number
from foresail.maths.stack import again_with_room

MAX_WRAPPINGS = 12
MAX_CACHED_CHARS = 300  # characters of a text whose readings are remembered

_SIMPLE = re.compile(
    r"\$?(-?)(?:(\d{1,18})|(\d{1,18}\.\d{1,18})|\\[dt]?frac\{(-?\d{1,18})\}\{(\d{1,18})\})(\\?%)?\$?",
    re.ASCII,
)
_COMMAS = re.compile(r"\d,\d")
_GROUPED = re.compile(r"(?<![\d,])\d{1,3}(?:,\d{3})+(?!,?\d)")
_DECIMAL_COMMA = re.compile(
    r"(?:([^\W\d_]+)\s*:\s*)?(?:[$€£¥₹]|R[pM]|USD|EUR)?\s*(-?)\s*(\d+,\d+)((?:\s|[^\W\d_]|[$€£¥₹])*)"
)
_WRAPPERS = re.compile(
    r"\\(?:text|textbf|textit|textrm|textnormal|mathrm|mathbf|mbox|operatorname|left|right|displaystyle)(?![a-zA-Z])\s*"
    r"|\\[,;:! ()\[\]]|[${}~]|\*\*|\\q?quad"
)
_NOT_WORDS = re.compile(r"[\d\\^_=<>+*/|()\[\]!?']")
_DATED = re.compile(r"(?=.*[^\W\d_]{3})[\w ,:'.-]+")  # words with figures among them: March 5
_SCRIPT = re.compile(r"([_^])\{([\w+*-])\}")
_LOOSE = re.compile(r"\s+|\$|\\(?:left|right|displaystyle)(?![a-zA-Z])|\\[,;:! ]")
_FRACTIONS = re.compile(r"(?<=\\)[dt]frac")
_AND = re.compile(r",\s*and\b|\band\b|,")
_EDGES = " \t\r\n.,;:!*`'\"。，"
_ARTICLES = re.compile(r"^(?:the|a|an)\s+")
_MEANINGS = (
    dict.fromkeys(words_for("no solution"), EMPTY)
    | dict.fromkeys(words_for("all reals"), Node("set", ("R",)))
    | dict.fromkeys(["infinity", "positive infinity"], INFINITY)
    | dict.fromkeys(["dne", "does not exist", "doesn't exist"], Node("word", ("does not exist",)))
)


def read(text: str) -> tuple[Node, ...]:
    r"""Every reading of an answer, likeliest first; none where the text says nothing."""
    return _read(text) if len(text) <= MAX_CACHED_CHARS else _read.__wrapped__(text)


@lru_cache(maxsize=4096)
def _read(text: str) -> tuple[Node, ...]:
    if len(text) > MAX_LENGTH:
        return (Node("word", (text.strip(),)),) if text.strip() else ()
    if (simple := _SIMPLE.fullmatch(text)) is not None:
        return (_read_simple(simple),)
    return _readings(text)


@again_with_room
def _readings(text: str) -> tuple[Node, ...]:
    text = trim(text)
    words = in_words(text)
    if not words:
        return ()
    if words in _MEANINGS:
        return (_MEANINGS[words],)
    if words == "nan":
        return ()
    for numeral in (chinese_numeral, english_numeral):
        if (spelt := numeral(words)) is not None:
            return (number(spelt),)
    readings: list[Node] = []
    for commas in _comma_readings(text):
        try:
            tree = parse(text, commas=commas)
        except Unreadable:
            continue
        if tree not in readings:
            readings.append(tree)
    if (decimal := _as_decimal(text)) is not None:
        readings.append(decimal)
    return tuple(readings) or (Node("word", (_as_words(text, words),)),)


def _read_simple(match: re.Match[str]) -> Node:
    """The tree that the grammar would build, for the numbers that make up most answers."""
    sign, whole, decimal, top, bottom, percent = match.groups()
    if top is not None:
        negative = top.startswith("-")
        above = number(int(top.lstrip("-")))
        tree = Node("/", (Node("neg", (above,)) if negative else above, number(int(bottom))))
    elif decimal is not None:
        value = Fraction(decimal)
        tree = number(value, significant_digits(decimal))
    else:
        tree = number(int(whole))
    if percent:
        tree = Node("%", (tree,))
    return Node("neg", (tree,)) if sign else tree


def trim(text: str) -> str:
    r"""Takes off what ends a sentence or wraps a formula: trim("$42$.") -> "42"."""
    return _trim(text) if len(text) <= MAX_CACHED_CHARS else _trim.__wrapped__(text)


@lru_cache(maxsize=4096)  # an answer is trimmed again whenever it is read or compared
def _trim(text: str) -> str:
    if len(text) > MAX_LENGTH or text.isalnum():
        return plain(text)
    text = plain(text).strip()
    for _ in range(MAX_WRAPPINGS):
        before = text
        text = text.strip(" \t\r\n$").lstrip("& ").removesuffix("\\").rstrip()
        if text.endswith((".", ",", ";", ":")) and not text.endswith(("...", "\\,", "\\;", "\\:", "\\.")):
            text = text[:-1].rstrip()
        if text.startswith(("\\(", "\\[")) and text.endswith(("\\)", "\\]")):
            text = text[2:-2]
        if text.startswith(("**", "__")) and text.endswith(("**", "__")) and len(text) > 4:
            text = text[2:-2]
        if text.startswith("`") and text.endswith("`") and len(text) > 1:
            text = text.strip("`")
        if text == before:
            break
    return text


def in_words(text: str) -> str:
    r"""The text without its typeface, for comparing words: in_words(r"\text{The Even} ") -> "even"."""
    bare = " ".join(_WRAPPERS.sub(" ", text).split()).strip(_EDGES).casefold().replace(" -", "-")
    return _ARTICLES.sub("", bare)


def same_words(one: str, other: str) -> bool:
    r"""Words without regard to case and typeface: same_words("EVEN", r"\textbf{Even}") -> True."""
    if any(_NOT_WORDS.search(_WRAPPERS.sub(" ", text)) for text in (one, other)):
        return _DATED.fullmatch(in_words(one)) is not None and in_words(one) == in_words(other)
    return in_words(one) == in_words(other)


def _comma_readings(text: str) -> tuple[str, ...]:
    if "," not in text or not _COMMAS.search(text):
        return ("top",)
    grouped = ", " in text and not _COMMAS.search(_GROUPED.sub("", text))  # (1,234, 5), and not (1,7,103, 5)
    return ("top", "nowhere", "everywhere") if grouped else ("top", "nowhere")


def is_split(reading: Node, first: Node) -> bool:
    """Whether a second reading takes grouping commas for those of a list: `1,200` as 1 and 200."""
    return reading.head == "list" and (first.head != "list" or len(reading.args) > len(first.args))


def _as_words(text: str, words: str) -> str:
    """Words in a form where order in a list does not matter; what is no words keeps its every sign."""
    if _NOT_WORDS.search(_WRAPPERS.sub(" ", text)):
        return _SCRIPT.sub(r"\1\2", _LOOSE.sub("", _FRACTIONS.sub("frac", text)))
    return ",".join(sorted(part.strip() for part in _AND.split(words)))


def _as_decimal(text: str) -> Node | None:
    """The reading with a decimal comma: "2,74 $" -> 2.74; None for "1,2", which is a list."""
    match = _DECIMAL_COMMA.fullmatch(text.rstrip(".")) if "," in text and len(text) < 100 else None
    value = decimal_comma(match[3]) if match else None
    if match is None or value is None:
        return None
    whole, _, places = match[3].partition(",")
    words = [word for word in match[4].split() if word.isalpha() and len(word) > 1]
    if (words and not names_things(words)) or (match[1] and changes_value(match[1])):
        return None
    if len(places) == 1 and len(whole) < 4 and whole != "0":
        return None
    return number(-value if match[2] else value)
