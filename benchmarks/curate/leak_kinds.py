"""Ways in which rows of benchmarks come to stand in training data, by kind: `decontamination.py` plants them."""

from __future__ import annotations

import random
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

HOMOGLYPHS = str.maketrans("aeopcyxABEKMHOPCTX", "аеорсухАВЕКМНОРСТХ")
SMART = str.maketrans({"'": "’", '"': "”", "-": "‑"})
NAMES = (
    "Aisyah Bruno Chai Dewi Emeka Farid Giang Hana Ines Joko Kirana Linh Mateus Nok Olga Putri Rafael Somchai"
).split()
SWAPPED = {"he": "she", "she": "he", "his": "her", "her": "his", "him": "her"}
PRONOUNS = SWAPPED | {one.title(): other.title() for one, other in SWAPPED.items()}
WORD = re.compile(r"[^\W\d_]+")
Change = Callable[[random.Random, str], str]


def as_it_is(dice: random.Random, text: str) -> str:
    return text


def first_half(dice: random.Random, text: str) -> str:
    return text[: len(text) // 2]


def other_case(dice: random.Random, text: str) -> str:
    return dice.choice([str.upper, str.lower, str.title])(text)


def other_unicode(dice: random.Random, text: str) -> str:
    """Wide letters, decomposed ones, homoglyphs, signs without width, typographic quotes: two of them at once."""
    for change in dice.sample([wide, decomposed, homoglyphs, zero_width, smart], 2):
        text = change(dice, text)
    return text


def wide(dice: random.Random, text: str) -> str:
    return "".join(chr(ord(sign) + 0xFEE0) if "!" <= sign <= "~" else sign for sign in text)


def decomposed(dice: random.Random, text: str) -> str:
    return unicodedata.normalize("NFKD", text)


def homoglyphs(dice: random.Random, text: str) -> str:
    return "".join(sign.translate(HOMOGLYPHS) if dice.random() < 0.2 else sign for sign in text)


def zero_width(dice: random.Random, text: str) -> str:
    return "".join(sign + ("\u200b" if dice.random() < 0.1 else "") for sign in text)


def smart(dice: random.Random, text: str) -> str:
    return text.translate(SMART)


def broken_lines(dice: random.Random, text: str) -> str:
    """Lines of 30 to 60 characters, as of a PDF or a mail: with hyphens, or with signs of a quotation."""
    start, lines, width = 0, [], dice.randrange(30, 60)
    quote = dice.choice(["", "", "> ", "    ", "| "])
    while start < len(text):
        line = text[start : start + width]
        start += width
        inside = line[-1:].islower() and line[-1:].isascii() and text[start : start + 1].islower()
        lines.append(quote + line.strip(" ") + ("-" if inside and not quote else ""))
        if inside and quote:  # a quotation does not break words
            rest = re.match(r"\S*", text[start:])
            assert rest is not None
            lines[-1] += rest[0]
            start += len(rest[0])
    return "\n".join(lines)


def marked_up(dice: random.Random, text: str) -> str:
    """Bold and italic words, code, links, tags."""
    marks = [("**", "**"), ("*", "*"), ("`", "`"), ("<b>", "</b>"), ('<span class="w">', "</span>"),
             ("[", "](https://example.org/w?x=1)")]  # fmt: skip

    def mark(word: re.Match[str]) -> str:
        before, after = dice.choice(marks) if dice.random() < 0.15 else ("", "")
        return f"{before}{word[0]}{after}"

    return "<p>" + re.sub(r"(?<!\S)[^\W\d_]+(?!\S)", mark, text).replace("\n", "<br />\n") + "</p>"


def other_formulas(dice: random.Random, text: str) -> str:
    """Numbers as formulas and back, other commands and other spaces: $1{,}000$, \\dfrac, \\left( and \\;."""
    if "$" in text.replace("\\$", ""):
        text = text.replace("\\frac", "\\dfrac").replace("(", "\\left( ").replace(")", " \\right)")
        text = text.replace("+", "\\,+\\;").replace("\\le ", "\\leq ").replace("$", dice.choice(["$", "$$"]))
        return text.replace("\\cdot", "\\times").replace("\\pi", "π")
    text = re.sub(r"(?<=\d),(?=\d{3})", "{,}", text)
    return re.sub(r"(?<![\w.])\d+(\{,\}\d{3})*(?![\w.])", lambda number: f"${number[0]}$", text).replace(
        "%", "\\%"
    )


def renamed(dice: random.Random, text: str, names: Iterable[str] = ()) -> str:
    """Other names for those of people, and in half of the cases other pronouns."""
    others = dict(zip(sorted({*names} & {*WORD.findall(text)}), dice.sample(NAMES, len(NAMES)), strict=False))
    if dice.random() < 0.5:
        others |= PRONOUNS
    return WORD.sub(lambda word: others.get(word[0], word[0]), text)


def renumbered(dice: random.Random, text: str) -> str:
    return re.sub(
        r"(?<![\w.,])\d+(?![\w.,]*\d)", lambda number: str(int(number[0]) + dice.randrange(1, 9)), text
    )


def some_other_words(dice: random.Random, text: str) -> str:
    """Every twelfth word is another one."""
    place = iter(range(dice.randrange(12), 10**6))
    return WORD.sub(lambda word: word[0][::-1] + "o" if next(place) % 12 == 0 else word[0], text)


def names_of(texts: Sequence[str]) -> set[str]:
    """Words with a capital that have none nowhere in these texts, and stand in the middle of a sentence."""
    small = {word for text in texts for word in WORD.findall(text) if word.islower()}
    inner = Counter(
        word
        for text in texts
        for word in re.findall(r"(?<=[a-z,] )[A-Z][a-z]+", text)
        if word.lower() not in small
    )
    days = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
    return {*inner} - {*days}


KINDS: dict[str, Change] = {
    "as it is": as_it_is,
    "its first half": first_half,
    "other case": other_case,
    "other Unicode": other_unicode,
    "broken lines": broken_lines,
    "markup": marked_up,
    "other formulas": other_formulas,
    "other words": some_other_words,
}
