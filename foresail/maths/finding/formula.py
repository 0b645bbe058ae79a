r"""Where in a text a formula stands: what opened it, and in which LaTeX environments.

    formula_around("so $x = ", 8) -> (4, "$", 3, []): the formula's text begins at 4

Found by plain searches, which cost next to nothing.
"""

from __future__ import annotations

import re
from typing import NamedTuple

WINDOW_CHARS = 2_000  # characters before a place in which its formula may have begun

_ENVIRONMENT = re.compile(r"\\(begin|end)\{([a-zA-Z]+)\*?\}")
# Environments that lay out what stands in them, and change nothing of it.
_DISPLAYS = frozenset(
    (
        "align aligned alignat alignedat equation gather gathered split multline eqnarray flalign displaymath math"
    ).split()
)
_LAYOUTS = _DISPLAYS | frozenset(
    """
    array tabular table center flushleft flushright document itemize enumerate description quote quotation minipage
    proof solution answer remark theorem lemma corollary proposition claim example problem exercise tcolorbox framed
    """.split()
)
_BESIDE = re.compile(r"(?:\s|\A)(\$\$?)\Z")  # a formula begins here, however many `$` were money
_WORDED = re.compile(r"\\(?:text\w*|mbox|hbox|mathrm)\s*\{[^{}]*\}")
_PROSE = re.compile(r"(?<![\\a-zA-Z])[a-zA-Z]{2,}\s+[a-zA-Z]{2,}(?![a-zA-Z])|[.!?]\s+[A-Z][a-z]")


class Formula(NamedTuple):
    """Where its text begins, -1 outside of any; what opened it, and where; the environments that are open."""

    start: int
    opener: str
    outside: int
    environments: list[str]


NOWHERE = Formula(-1, "", -1, [])


def is_laid_out(text: str, place: int) -> bool:
    """Whether nothing around the place is a matrix, a case, a comment or program text."""
    return all(sign[2] in _LAYOUTS for sign in _open_environments(text, max(0, place - WINDOW_CHARS), place))


def formula_around(text: str, place: int) -> Formula:
    """The formula that is open at a place. A `$` that prose follows is money."""
    begin = max(0, place - WINDOW_CHARS)
    environments = _open_environments(text, begin, place)
    names = [sign[2] for sign in environments]
    for opener, closer in (("\\[", "\\]"), ("\\(", "\\)")):
        start = text.rfind(opener, begin, place)
        if start >= 0 and text.rfind(closer, start, place) < 0 and text[start - 1 : start] != "\\":
            return Formula(start + 2, opener, start, names)
    start, opener = _dollar_before(text, begin, place)
    if opener and _PROSE.search(_WORDED.sub("", text[start:place])):
        start, opener = -1, ""
    displays = [sign for sign in environments if sign[2] in _DISPLAYS]
    if not opener and displays:
        return Formula(displays[-1].end(), "\\begin", displays[-1].start(), names)
    return Formula(start, opener, start - len(opener), names)


def _dollar_before(text: str, begin: int, place: int) -> tuple[int, str]:
    """Where a `$` or `$$` stands open, and which; (-1, "") where none does."""
    last = text.rfind("$", begin, place)
    while last > 0 and text[last - 1] == "\\":
        last = text.rfind("$", begin, last)
    if last < 0:
        return -1, ""
    if beside := _BESIDE.search(text, max(begin, place - 4), place):
        return place, beside[1]
    if text.count("$$", begin, place) % 2:
        return text.rfind("$$", begin, place) + 2, "$$"
    begin = max(begin, text.rfind("\n\n", begin, place))  # which ends a `$`
    count = text.count("$", begin, place) - text.count("\\$", begin, place)
    return (last + 1, "$") if count % 2 else (-1, "")


def _open_environments(text: str, begin: int, place: int) -> list[re.Match[str]]:
    r"""The `\begin{…}` of each, the outermost first."""
    if text.find("\\begin{", begin, place) < 0:
        return []
    open_signs: list[re.Match[str]] = []
    for sign in _ENVIRONMENT.finditer(text, begin, place):
        if sign[1] == "begin":
            open_signs.append(sign)
        elif open_signs and open_signs[-1][2] == sign[2]:
            open_signs.pop()
    return open_signs
