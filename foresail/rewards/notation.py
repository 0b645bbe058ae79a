r"""Taking the decoration off an answer: `$\left(\text{odd}\right)$.` -> `(odd)`.

What remains still means the same; letters keep their case. One pass per rule, linear in the text.
"""

from __future__ import annotations

import re

_CHARACTERS = str.maketrans(
    {chr(0xFEE0 + code): chr(code) for code in range(0x21, 0x7F)}  # full-width forms of ASCII
    | {"\u2212": "-", "\u2010": "-", "\u2011": "-", "\u3000": " ", "。": "."}
)
_TOKEN = re.compile(r"\\!\s*|\\(?:[a-zA-Z]+|.)|\{,\}|\$", re.DOTALL)
_MEANING = {
    **dict.fromkeys(["$", r"\$", r"\(", r"\)", r"\[", r"\]", r"\left", r"\right", r"\displaystyle"], ""),
    **dict.fromkeys([r"\,", r"\;", r"\:", r"\ ", r"\quad", r"\qquad"], " "),
    **dict.fromkeys([r"\dfrac", r"\tfrac", r"\cfrac"], r"\frac"),
    "{,}": ",",
    r"\%": "%",
}
_WORDS = re.compile(r"\\(?:text|textbf|textit|textrm|textnormal|mathrm|mathbf|mbox)\s*+\{([^{}]*+)\}")
_FINAL_PERIOD = re.compile(r"(?<!\.)\.$")  # not of "0.333...", which says that digits follow
_LOOSE_SPACE = re.compile(r" (?![^\W_])|(?<![^\W_]) ")


def undress(text: str) -> str:
    r"""Removes what only decorates; keeps single spaces: undress(r"$1{,}234\,\text{m}$.") -> "1,234 m"."""
    text = _TOKEN.sub(_meaning, text.translate(_CHARACTERS))
    text = " ".join(_WORDS.sub(r"\1", text).split())
    return _FINAL_PERIOD.sub("", text).rstrip()


def squeeze(text: str) -> str:
    """Drops spaces that separate nothing: squeeze("x + 1 or 2 , 3") -> "x+1 or 2,3"."""
    return _LOOSE_SPACE.sub("", text)


def _meaning(token: re.Match[str]) -> str:
    if token[0].startswith(r"\!"):  # negative space: `1,\! 234` is one number
        return ""
    return _MEANING.get(token[0], token[0])
