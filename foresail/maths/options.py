r"""Multiple choice: `C`, `(C)`, `C. 42`, `option C`, and the 42 of `\textbf{(C)} 42` where a value is asked."""

from __future__ import annotations

import re

from foresail.maths.finding.choices import chosen_letter
from foresail.maths.notation.answer import in_words
from foresail.maths.notation.tree import Node

ANSWER_CHARS = 600  # characters of an answer in which an option's letter is looked for

_TYPEFACE = re.compile(r"\\(?:text|textbf|mathrm|mathbf|mbox)\s*+\{([^{}]*)\}")
_NAMED = re.compile(r"\(([A-HJ])\)\s+[^\W_]")
_CHOICE = re.compile(r"\(?([A-Z])\)?\s*(?:[.:)]|\Z)")
_OTHER_OPTION = re.compile(
    r"\A(?:\s*(?:or\b|and\b|[,;&])|[+/*^=-])"  # (C) or 17
    r"|(?:^|[\s(,;/])\(?[A-Z]\s*[.:)]|(?:^|\bor\b|\band\b|[,;/&])\s*\(?[A-Z]\)?\s*\Z"
)
_LETTERED = re.compile(
    r"\s*\([A-J]\)(?:\\[ ,;:]|[~\s])+(?=\S)|\\(?:text(?:bf)?|math(?:bf|rm))\s*\{\s*\([A-J]\)\s*\}"
)
_TAKEN_BACK = frozenset("wrong incorrect rather instead never nope but isn't".split())
_WORD = re.compile(r"[a-z']+")
_OPTION = re.compile(r"(?:option|choice|answer)\s+\(?([a-z])\)?\Z")


def option_asked(gold: Node, text: str = "") -> str | None:
    """The letter of a multiple-choice answer, C or `(C) 42`."""
    name = gold.args[0] if gold.head == "symbol" else ""
    if len(name) == 1 and name.isupper():
        return str(name)
    named = _NAMED.match(text)
    return named[1] if named else None


def option_chosen(text: str) -> str | None:
    """option_chosen("(C) 42") -> "C"; None for "(B) or (C)", which chooses nothing."""
    bare = without_typeface(text).strip().lstrip("选")
    if match := _CHOICE.match(bare):
        rest = bare[match.end() :]
        if not _OTHER_OPTION.search(rest) and _TAKEN_BACK.isdisjoint(_WORD.findall(rest.lower())):
            return match[1]
    if len(bare) <= ANSWER_CHARS and (letter := chosen_letter(bare)):
        return letter
    if match := _OPTION.match(in_words(text)):
        return match[1].upper()
    return None


def value_of_option(text: str) -> str:
    r"""The 7 of `\textbf{(C)}\ 7`; empty where no letter leads."""
    if whole := _TYPEFACE.fullmatch(text):
        text = whole[1]
    letter = _LETTERED.match(text) if len(text) <= ANSWER_CHARS else None
    value = text[letter.end() :] if letter else ""
    return "" if _LETTERED.match(value) else value


def without_typeface(text: str) -> str:
    r"""without_typeface(r"\text{The answer is } 42") -> "The answer is  42"."""
    return _TYPEFACE.sub(r"\1", text)
