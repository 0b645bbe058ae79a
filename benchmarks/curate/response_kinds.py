"""Faults that `response_faults.py` makes in real responses, and refusals composed in eleven languages.

Each function takes dice and a response, and gives a faulty response, or nothing where it cannot.
"""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Callable
from pathlib import Path

Make = Callable[[random.Random, str], str | None]
SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")
TOKEN = re.compile(r"\s?[^\W\d_]{1,6}|\s?\d{1,3}|\s?[^\w\s]|\s+")  # pieces as long as those of a tokenizer


def sentences(text: str) -> list[str]:
    return [part.strip() for part in SENTENCE.split(text) if part and len(part.strip()) > 8]


def tokens(text: str) -> list[str]:
    return TOKEN.findall(text)


def cut_at_token(dice: random.Random, text: str) -> str | None:
    """As a limit of tokens cuts: anywhere behind the first quarter, but not behind a sentence."""
    pieces = tokens(text)
    if len(pieces) < 40:
        return None
    for _try in range(8):
        cut = "".join(pieces[: dice.randrange(len(pieces) // 4, len(pieces) - 2)]).rstrip()
        if cut and not cut.endswith((".", "!", "?", "。", "！", "？", ":", "：", "```", '"', "”", ")", "*")):
            return cut
    return None


def cut_in_code(dice: random.Random, text: str) -> str | None:
    lines = [f"    total_{k} = total_{k - 1} + {dice.randrange(99)}" for k in range(1, dice.randrange(3, 9))]
    return f"{text}\n\n```python\ndef add():\n" + "\n".join(lines)


def cut_in_formula(dice: random.Random, text: str) -> str | None:
    opening = dice.choice(["\\begin{align}\n", "$$\n", "\\[\n"])
    return (
        f"{text}\n\n{opening}x_{dice.randrange(9)} &= \\frac{{{dice.randrange(99)}}}{{{dice.randrange(9)}}} +"
    )


def cut_in_thought(dice: random.Random, text: str) -> str | None:
    return f"<think>\n{text[: dice.randrange(20, max(21, len(text)))]}"


def cut_in_json(dice: random.Random, text: str) -> str | None:
    items = ", ".join(f'"key_{k}": {dice.randrange(999)}' for k in range(dice.randrange(2, 9)))
    return f'{{"items": [{{{items}, "name": "{text[:20].replace(chr(34), "")}'


def cut_in_table(dice: random.Random, text: str) -> str | None:
    rows = [
        f"| {dice.randrange(99)} | {dice.randrange(99)} | {dice.randrange(99)} |"
        for _ in range(dice.randrange(2, 6))
    ]
    return f"{text}\n\n| a | b | c |\n|---|---|---|\n" + "\n".join(rows) + f"\n| {dice.randrange(99)} |"


def cut_in_list(dice: random.Random, text: str) -> str | None:
    parts = sentences(text)
    if len(parts) < 3:
        return None
    items = [f"{k + 1}. {part}" for k, part in enumerate(parts[: dice.randrange(2, 6)])]
    return "\n".join(items) + f"\n{len(items) + 1}." + dice.choice(["", " ", " **"])


def empty(dice: random.Random, _: str) -> str | None:
    return dice.choice(
        ["", " ", "\n\n", "...", "```\n```", "\u200b", "<think>\nOk.\n</think>\n\n", "**", "-"]
    )


def loop_of_sentences(dice: random.Random, text: str) -> str | None:
    parts = sentences(text)
    if len(parts) < 2:
        return None
    start = dice.randrange(len(parts))
    piece = " ".join(parts[start : start + dice.choice([1, 1, 2, 3])])
    if sum(map(str.isalpha, piece)) < 15:
        return None
    return " ".join([*parts[:start], *[piece] * dice.randrange(4, 12), *parts[start:]])


def loop_of_tokens(dice: random.Random, text: str) -> str | None:
    """At the end, cut at the limit, as a model does that falls into a loop."""
    pieces = tokens(text)
    if len(pieces) < 30:
        return None
    start, period = dice.randrange(10, len(pieces) - 12), dice.randrange(2, 12)
    piece = "".join(pieces[start : start + period])
    if sum(map(str.isalpha, piece)) < 4:
        return None
    return "".join(pieces[:start]) + piece * dice.randrange(20, 60)


def loop_of_numbered_items(dice: random.Random, text: str) -> str | None:
    long = [part for part in sentences(text) if sum(map(str.isalpha, part)) >= 25]
    if not long:
        return None
    item = dice.choice(long)
    return "\n".join(f"{k + 1}. {item}" for k in range(dice.randrange(6, 20)))


def loop_with_others_between(dice: random.Random, text: str) -> str | None:
    """The same sentence behind every other sentence."""
    parts = sentences(text)
    long = [part for part in parts if sum(map(str.isalpha, part)) >= 40]
    if len(parts) < 6 or not long:
        return None
    again = dice.choice(long)
    return " ".join(part for one in parts for part in (one, again))


def loop_of_a_letter(dice: random.Random, text: str) -> str | None:
    letters = [sign for sign in text if sign.isalpha()]
    return text + " " + dice.choice(letters) * dice.randrange(200, 900) if letters else None


MAKES: dict[str, tuple[str, Make]] = {
    "empty": ("empty", empty),
    "cut at a token": ("incomplete", cut_at_token),
    "cut in code": ("incomplete", cut_in_code),
    "cut in a formula": ("incomplete", cut_in_formula),
    "cut in a thought": ("incomplete", cut_in_thought),
    "cut in JSON": ("incomplete", cut_in_json),
    "cut in a table": ("incomplete", cut_in_table),
    "cut in a list": ("incomplete", cut_in_list),
    "loop of sentences": ("repeating", loop_of_sentences),
    "loop of tokens": ("repeating", loop_of_tokens),
    "loop of numbered items": ("repeating", loop_of_numbered_items),
    "a sentence between all others": ("repeating", loop_with_others_between),
    "loop of a letter": ("repeating", loop_of_a_letter),
}

STRAY = {
    "Han in a sentence": ["结果", "重要", "因此", "问题", "的", "安全", "例如", "方法"],
    "Cyrillic in a word": ["а", "е", "о", "р", "с", "и", "ж", "д"],
    "Cyrillic word in a sentence": ["работа", "и", "это", "важно"],
    "Thai in a sentence": ["สำคัญ", "และ", "ผลลัพธ์"],
}


IN_WORD = re.compile(r"(?<=[^\W\d_])[^\W\d_](?=[^\W\d_])")
BETWEEN = re.compile(r"(?<=[a-zà-ỹ]) (?=[a-zà-ỹ])")


def with_stray_letters(dice: random.Random, text: str, kind: str) -> str | None:
    """In a Latin text between two small words, or in a word; in Thai and Han anywhere."""
    letters = dice.choice(STRAY[kind])
    in_word = kind == "Cyrillic in a word"
    places = [match.start() + 1 for match in (IN_WORD if in_word else BETWEEN).finditer(text)]
    if not places:
        places = [match.start() + 1 for match in re.finditer("[ก-ฮ](?=[ก-ฮ])|[一-龥](?=[一-龥])", text)]
    if not places or letters[0] in text:
        return None
    place = dice.choice(places)
    gap = "" if in_word or dice.random() < 0.3 or text[place - 1] != " " else " "
    return text[:place] + letters + gap + text[place:]


PARTS = tomllib.loads(Path(__file__).with_name("refusal_parts.toml").read_text(encoding="utf-8"))


def composed_refusal(dice: random.Random, language: str) -> str:
    text = "".join(dice.choice(parts) for parts in PARTS[language].values())
    return text[0].upper() + text[1:]
