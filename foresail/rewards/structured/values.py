"""Choices, numbers, texts and lists: from a row's `check` to a function that says whether an answer is right.

choice("B", {"options": {"A": "red", "B": "blue"}})("(B) blue")     True
number("1.234,50", {"decimal": ","})("1.234,50")                    True
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any

from foresail.rewards.structured.final_answer import normalise

Compare = Callable[[str], bool]

_LETTER = re.compile(r"[(\[]?([A-Za-z])[)\].:、,]?(?:\s+(.+))?", re.DOTALL)
_SEPARATORS = re.compile(r"[,;、，；\n]")
LONGEST_NUMBER = 60  # characters


def choice(answer: str, check: Mapping[str, Any]) -> Compare:
    """The letter, the letter with its option, or the option alone where no other reads the same."""
    options = {
        letter.upper(): normalise(str(text))
        for letter, text in dict(check["options"]).items()
        if text is not None
    }
    right = answer.strip().upper()
    if right not in options:
        raise ValueError(f"the answer {answer!r} is none of the options {', '.join(options)}")

    def compare(text: str) -> bool:
        meant = [letter for letter, option in options.items() if option == normalise(text)]
        if len(meant) == 1 and len(normalise(text)) > 1:
            return meant[0] == right
        letter = _LETTER.fullmatch(text.strip(" *_`."))
        if letter is None or letter[1].upper() != right:
            return False
        return letter[2] is None or normalise(letter[2]) == options[right]

    return compare


def text(answer: str, check: Mapping[str, Any]) -> Compare:
    accepted = {normalise(str(one)) for one in check.get("accept") or [answer]}
    return lambda text: normalise(text) in accepted


def number(answer: str, check: Mapping[str, Any]) -> Compare:
    """`decimal` is the language's sign: with a comma, 1.234,50 and 1234.50 are read, and 1.234 is 1234."""
    decimal = check.get("decimal", ".")
    if decimal not in (".", ","):
        raise ValueError(f"check.decimal is {decimal!r}; write . or ,")
    units = sorted((normalise(str(unit)) for unit in check.get("units") or ()), key=len, reverse=True)
    right = read_number(answer, decimal, units)
    if right is None:
        raise ValueError(f"the answer {answer!r} is no number")
    return lambda text: read_number(text, decimal, units) == right


def read_number(text: str, decimal: str, units: Iterable[str] = ()) -> Decimal | None:
    """read_number("US$ 1.234,50", ",", ["us$"]) -> 1234.50; None for anything but one number."""
    plain = normalise(text)
    for unit in units:
        if plain.startswith(unit) or plain.endswith(unit):
            plain = plain.removeprefix(unit) if plain.startswith(unit) else plain.removesuffix(unit)
            break
    plain = plain.replace("−", "-").strip()
    if len(plain) > LONGEST_NUMBER:
        return None
    thousands = "," if decimal == "." else "."
    grouped = rf"-?[1-9]\d{{0,2}}(?:{re.escape(thousands)}\d{{3}})+(?:{re.escape(decimal)}\d+)?"
    if re.fullmatch(grouped, plain) or re.fullmatch(rf"-?\d+(?:{re.escape(decimal)}\d+)?", plain):
        return Decimal(plain.replace(thousands, "").replace(decimal, "."))
    return Decimal(plain) if re.fullmatch(r"-?\d+\.\d+", plain) else None


def several(answer: str, check: Mapping[str, Any]) -> Compare:
    """All items in any order, separated by commas or as the language says "and"; or a JSON list of them."""
    items = {normalise(str(item)) for item in check["items"]}
    words = [str(word).casefold() for word in check.get("and") or ()]
    if not items:
        raise ValueError("check.items is empty")

    def compare(text: str) -> bool:
        return any(reading == items for reading in readings(text, words))

    return compare


def readings(text: str, words: list[str]) -> Iterable[set[str]]:
    if text.lstrip().startswith("["):
        listed = json.loads(text)
        yield {normalise(one) for one in listed if isinstance(one, str)} if all_texts(listed) else set()
        return
    parts = [part for part in _SEPARATORS.split(text) if part.strip()]
    yield {normalise(part) for part in parts}
    for word in words:
        parts = [one for part in parts for one in part.casefold().split(word) if one.strip()]
    # "red, and blue" leaves the word at the start of a part
    starts = [word.strip() + " " for word in words if word.strip()]
    parts = [next((one.strip()[len(s) :] for s in starts if one.strip().startswith(s)), one) for one in parts]
    yield {normalise(part) for part in parts}


def all_texts(listed: Any) -> bool:
    return isinstance(listed, list) and all(isinstance(one, str) for one in listed)
