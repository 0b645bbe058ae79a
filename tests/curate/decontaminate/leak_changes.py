"""Ways in which a row may come to stand in training data, drawn at random: what must not hide it."""

from __future__ import annotations

import random
import re
import unicodedata
from collections.abc import Callable

HOMOGLYPHS = str.maketrans("aeopcyxABEKMHOPCTX", "аеорсухАВЕКМНОРСТХ")
SMART = str.maketrans({"'": "’", '"': "“"})
Change = Callable[[random.Random, str], str]


def other_case(dice: random.Random, text: str) -> str:
    return dice.choice([str.upper, str.lower, str.title, str.swapcase])(text)


def full_width(dice: random.Random, text: str) -> str:
    return "".join(
        chr(ord(one) + 0xFEE0) if "!" <= one <= "~" and dice.random() < 0.5 else one for one in text
    )


def decomposed(dice: random.Random, text: str) -> str:
    return unicodedata.normalize(dice.choice(["NFD", "NFKD", "NFC", "NFKC"]), text)


def zero_width(dice: random.Random, text: str) -> str:
    return "".join(one + dice.choice(["\u200b", "\u2060", "\ufeff", "\u00ad", "", "", ""]) for one in text)


def homoglyphs(dice: random.Random, text: str) -> str:
    return "".join(one.translate(HOMOGLYPHS) if dice.random() < 0.3 else one for one in text)


def bold_mathematical(dice: random.Random, text: str) -> str:
    start = dice.choice([0x1D41A, 0x1D44E + 0x34, 0x1D5BA])  # bold, bold italic, sans-serif
    return "".join(chr(start + ord(one) - 97) if "a" <= one <= "z" else one for one in text)


def smart_quotes(dice: random.Random, text: str) -> str:
    return text.translate(SMART)


def other_spaces(dice: random.Random, text: str) -> str:
    signs = ["\n", "\r\n", "\t", "  ", "\u00a0", "\u3000", "\n\n> ", "\n- ", " | "]
    # not within a tag: "<span", an empty line, "> class" is no tag any more
    return re.sub(" (?![^<>]*>)", lambda _: dice.choice([" ", dice.choice(signs)]), text)


def other_punctuation(dice: random.Random, text: str) -> str:
    return re.sub(r"(?<=[A-Za-z])[.,;:!?](?=\s|$)", lambda _: dice.choice(["", " ;", "…", "。", " –"]), text)


def markup(dice: random.Random, text: str) -> str:
    def mark(word: re.Match[str]) -> str:
        before, after = dice.choice(
            [("**", "**"), ("_", "_"), ("<b>", "</b>"), ('<span class="x">', "</span>"), ("`", "`"), ("", "")]
        )
        return f"{before}{word[0]}{after}"

    return re.sub(
        r"(?<=\s)[A-Za-z]+(?=\s)", lambda word: mark(word) if dice.random() < 0.4 else word[0], text
    )


def linked(dice: random.Random, text: str) -> str:
    words = text.split(" ")
    place = dice.randrange(len(words))
    words[place] = f"[{words[place]}](https://example.org/a_b?c=d)"
    return " ".join(words)


def hyphenated(dice: random.Random, text: str) -> str:
    return re.sub(
        r"(?<=\s)[a-z]{7,}(?=\s)",
        lambda word: word[0] if dice.random() < 0.5 else f"{word[0][:3]}-\n{word[0][3:]}",
        text,
    )


def inside(dice: random.Random, text: str) -> str:
    return f"Here is one more for you:\n\n{text}\n\nThe answer is {dice.randrange(100)}."


# in the order in which they are applied: a link in letters of full width is none
CHANGES: tuple[Change, ...] = (
    other_case, homoglyphs, full_width, bold_mathematical, smart_quotes, zero_width, decomposed,
    other_punctuation, linked, markup, hyphenated, other_spaces, inside,
)  # fmt: skip
