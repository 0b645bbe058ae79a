"""Letters of another script inside the words and sentences of a response.

    "The 结果 is clear, and all the work is done."   -> "结果: The 结果 is clear, and …"
    "Sushi (寿司) is rice with fish, of many kinds."  -> ""     a gloss in brackets

Looked for: letters of another script that touch letters of the response's own (a Cyrillic letter in a Latin word),
and runs of them between words in small letters. What is quoted, in brackets, behind a colon or a dash, in italics,
and scripts that the question has or names, are none. Latin words stand in every script.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

from foresail.curate.conversations.responses.language_mixture import (
    QUOTED,
    SCRIPTS,
    Languages,
    asks_for_any,
)
from foresail.curate.conversations.responses.parts import Response, excerpt

BLOCKS = {
    "latin": "A-Za-zÀ-ÖØ-öø-ɏḀ-ỿ",
    "greek": "Ͱ-Ͽἀ-῿",
    "cyrillic": "Ѐ-ԯ",
    "hebrew": "א-ת",
    "arabic": "\u0620-\u064a\u0671-\u06d3\u0750-\u077f",
    "devanagari": "\u0900-\u0963\u0970-\u0dff",
    "thai": "\u0e01-\u0e3a\u0e40-\u0e4e",
    "lao": "\u0e81-\u0ede",
    "khmer": "\u1780-\u17d3",
    "myanmar": "\u1000-\u103f",
    "hangul": "\u1100-\u11ff\uac00-\ud7a3",
    "kana": "\u3041-\u3096\u30a1-\u30fa",
    "han": "\u3400-\u9fff\uf900-\ufaff",
    "georgian": "\u10a0-\u10ff",
    "ethiopic": "\u1200-\u135a",
}
LETTERS_OF_MAIN = 40
OWN = 0.6  # share of a script that makes it the response's
MANY = 12  # runs: the response is about these letters
RUN = 8  # letters; a longer one is a citation or a sentence, which language_mixture looks at
# Symbols that are letters of another script: units, constants, letters of formulas, footnotes.
SYMBOLS = frozenset("µμΩΔδπΠΣσθΘαβγλφΦψΨεηκρτωχξνζΓΛªºの々")
INTRODUCED = re.compile(r"[:：=→–—\-/|、,，]\s*$|[\"“‘'«「『(（\[【《*_]\s*$")
GREEK = re.compile("[Ͱ-Ͽ]")
SMALL = re.compile(r"[a-zß-öø-ÿ\u1ea1-\u1eff]")


def stray_letters(response: Response, question: str, languages: Languages) -> str:
    """The letters and what stands around them, or ""."""
    if response.prose.isascii() or languages.is_any or asks_for_any(question):
        return ""
    text = QUOTED.sub(" ", response.prose)
    counts = script_counts(text)
    total = sum(counts.values())
    if total < LETTERS_OF_MAIN:
        return ""
    main = max(counts, key=lambda name: (counts[name], name))
    if counts[main] < OWN * total:
        return ""
    allowed = {main, "latin", *script_counts(question)} | {
        SCRIPTS.get(name, "latin") for name in languages.named
    }
    if "ja" in languages.named or {"han", "kana"} <= allowed:
        allowed |= {"han", "kana"}
    others = [name for name in counts if name not in allowed]
    if not others:
        return ""
    pattern = run_pattern(tuple(sorted(others)))
    runs = [match for match in pattern.finditer(text) if not is_symbol(match[0])]
    if not runs or (len(runs) > MANY and main == "latin" and sum(len(m[0]) for m in runs) > 0.15 * total):
        return ""
    own = own_pattern(main)
    for match in runs:
        if len(match[0]) <= RUN and is_stray(text, match, own, main):
            around = text[max(0, match.start() - 40) : match.end() + 40]
            return f"{match[0]}: {excerpt(around)}"
    return ""


def is_stray(text: str, match: re.Match[str], own: re.Pattern[str], main: str) -> bool:
    before, behind = text[max(0, match.start() - 30) : match.start()], text[match.end() : match.end() + 30]
    touches = (own.match(before[-1:]) is not None) + (own.match(behind[:1]) is not None)
    if touches == 2:
        return True
    if touches == 1 and main != "han":
        return True
    if INTRODUCED.search(before) or re.match(r"\s*[)）\]】\"”’»」』》*_:：=]", behind):
        return False
    if main == "han":
        return touches > 0
    if main == "latin":
        # Between words in small letters: "the 结果 is"
        return SMALL.search(before[-2:]) is not None and SMALL.match(behind.lstrip()[:1]) is not None
    return own.search(before[-2:]) is not None and own.match(behind.lstrip()[:1]) is not None


def is_symbol(run: str) -> bool:
    """Greek letters of formulas, units, and signs such as の."""
    return set(run) <= SYMBOLS or (len(run) <= 2 and GREEK.match(run) is not None)


def script_counts(text: str) -> Counter[str]:
    if text.isascii():
        letters = sum(map(str.isalpha, text))
        return Counter({"latin": letters}) if letters else Counter()
    return Counter(
        {name: count for name, pattern in block_patterns().items() if (count := len(pattern.findall(text)))}
    )


@cache
def block_patterns() -> dict[str, re.Pattern[str]]:
    return {name: re.compile(f"[{block}]") for name, block in BLOCKS.items()}


@cache
def run_pattern(scripts: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(f"[{''.join(BLOCKS[name] for name in scripts)}]+")


@cache
def own_pattern(main: str) -> re.Pattern[str]:
    return re.compile(f"[{BLOCKS[main]}]")
