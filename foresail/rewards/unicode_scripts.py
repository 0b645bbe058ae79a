r"""The script of a text: dominant_script("Чему равно $x$?") -> "Cyrillic".

English and French have one script, Latin. Notation of any language is left out: LaTeX, code, links, and single
Latin or Greek letters. Kana and Han are one script here, since Japanese mixes them.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import cache

from foresail.maths.finding.visible import without_unclosed

# Unclosed LaTeX or code is cut to the end of its line at most: one stray dollar must not hide a whole response.
_NOTATION = re.compile(
    r"```.*?(?:```|\Z)"
    r"|`[^`\n]*`"
    r"|\$\$.*?\$\$|\$[^$\n]*\$"
    r"|\\\[.*?\\\]|\\\(.*?\\\)"
    r"|\\(?:text|textbf|textit|mathrm|boxed)(?=\{)"  # what stands in their braces is read
    r"|\\[a-zA-Z]+"
    r"|https?://\S+"
    r"|</?think>",
    re.DOTALL,
)
_LONE = re.compile(r"(?<![A-Za-zͰ-Ͽ])[A-Za-zͰ-Ͽ](?![A-Za-zͰ-Ͽ])")
_SAME = {"CJK": "Han", "HIRAGANA": "Han", "KATAKANA": "Han", "BOPOMOFO": "Han", "HALFWIDTH": "Han"}


def dominant_script(text: str) -> str | None:
    """The script most letters are in; None without letters. Of equally many the first that appears."""
    counts = count_scripts(text)
    return counts.most_common(1)[0][0] if counts else None


def foreign_share(text: str, script: str) -> float:
    """The share of letters in other scripts: foreign_share("ab да", "Latin") -> 0.5; 0 without letters."""
    counts = count_scripts(text)
    total = counts.total()
    return (total - counts[script]) / total if total else 0.0


def count_scripts(text: str) -> Counter[str]:
    """count_scripts("Antwort: семь") -> {"Latin": 7, "Cyrillic": 4}."""
    prose = _LONE.sub(" ", _NOTATION.sub(" ", without_unclosed(text)))
    counts: Counter[str] = Counter()
    for character, number in Counter(prose).items():  # of a long text there are few different characters
        script = script_of(character)
        if script is not None:
            counts[script] += number
    return counts


@cache
def script_of(character: str) -> str | None:
    """script_of("д") -> "Cyrillic"; script_of("語") -> "Han"; None for digits, signs and mathematical letters."""
    if not character.isalpha():
        return None
    first, _, rest = unicodedata.name(character, "").partition(" ")
    if first == "FULLWIDTH":
        first = rest.partition(" ")[0]
    if first in ("", "MATHEMATICAL", "DOUBLE-STRUCK", "SCRIPT", "BLACK-LETTER", "MODIFIER"):
        return None
    return _SAME.get(first, first.title())
