r"""Edits that change what an answer means and keep its form, and rewritings that keep the meaning.

    edit("digit", "12", rng) -> "19"; edit("brackets", "(1,2]", rng) -> "(1,2)"; None where there is nothing to edit

Whether an edited text is really wrong is the oracle's to say: `-x^2` with another sign may mean the same.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

Edit = Callable[[str, random.Random], str | None]

_DIGIT = re.compile(r"(?<!\\circ)\d")
_INTEGER = re.compile(r"(?<![\d.])\d+(?![\d.])")
_LETTER = re.compile(r"(?<![\\a-zA-Z{])[a-zA-Z](?![a-zA-Z])|(?<=\{)[a-zA-Z](?=[-+*/^_)}\d])")
_FUNCTIONS = ("sin", "cos", "tan", "ln", "sinh", "cosh", "arcsin", "arccos")
_FUNCTION = re.compile(r"\\(" + "|".join(_FUNCTIONS) + r")(?![a-zA-Z])")
_ENVIRONMENT = re.compile(r"\\(?:begin|end)\{[a-z]+\}|\\text\{[^{}]*\}")
_BASE = re.compile(r"\d+|(?<![\\a-zA-Z])[a-zA-Z](?![a-zA-Z{])|\)|\}")

_PIECE = re.compile(r"\\[a-zA-Z]+|\\.|\d+\.?\d*|[a-zA-Z]+|.", re.DOTALL)
_SPARE = tuple(
    r"1 2 7 12 0.5 x y n + - / ^2 _1 , ( ) [ ] | < > = \le \cdot \sqrt \pi \sin \frac \cup \infty \pm".split()
)


def _one(pattern: str | re.Pattern[str], change: Callable[[re.Match[str], random.Random], str]) -> Edit:
    """An edit of one match, chosen at random."""
    compiled = re.compile(pattern)

    def edit(text: str, rng: random.Random) -> str | None:
        fixed = [span.span() for span in _ENVIRONMENT.finditer(text)]  # names of environments and words stay
        matches = [
            match
            for match in compiled.finditer(text)
            if not any(start <= match.start() < end for start, end in fixed)
        ]
        if not matches:
            return None
        match = rng.choice(matches)
        return text[: match.start()] + change(match, rng) + text[match.end() :]

    return edit


def _other_digit(match: re.Match[str], rng: random.Random) -> str:
    return rng.choice([digit for digit in "123456789" if digit != match[0]])


def _swap(pairs: dict[str, str]) -> Edit:
    signs = sorted(pairs, key=len, reverse=True)
    pattern = "|".join(re.escape(sign) + ("(?![a-zA-Z])" if sign[-1].isalpha() else "") for sign in signs)
    return _one(pattern, lambda match, rng: pairs[match[0]])


def _items(text: str) -> tuple[str, list[str], str] | None:
    """The parts of a list, a tuple or a set: _items("(1, 2)") -> "(", ["1", " 2"], ")"."""
    bracketed = re.fullmatch(r"((?:\\left)?(?:[(\[]|\\\{))(.*?)((?:\\right)?(?:[)\]]|\\\}))", text, re.DOTALL)
    opening, inner, closing = bracketed.groups() if bracketed else ("", text, "")
    items, depth = [""], 0
    for character in inner:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            items.append("")
        else:
            items[-1] += character
    if len(items) < 2 or depth or re.fullmatch(r"-?\d{1,3}(,\d{3})+", inner):
        return None
    return opening, items, closing


def _on_items(change: Callable[[list[str], random.Random], list[str]]) -> Edit:
    def edit(text: str, rng: random.Random) -> str | None:
        parts = _items(text)
        if parts is None:
            return None
        opening, items, closing = parts
        return opening + ",".join(change(list(items), rng)) + closing

    return edit


def _drop_item(items: list[str], rng: random.Random) -> list[str]:
    items.pop(rng.randrange(len(items)))
    return items


def _double_item(items: list[str], rng: random.Random) -> list[str]:
    place = rng.randrange(len(items))
    return [*items[: place + 1], *items[place:]]


def _add_item(items: list[str], rng: random.Random) -> list[str]:
    return [*items, str(rng.randrange(100, 999))]


def _reorder(items: list[str], rng: random.Random) -> list[str]:
    return items[1:] + items[:1] if rng.random() < 0.5 else items[::-1]


def _repeat_first(items: list[str], rng: random.Random) -> list[str]:
    """One item replaced by another: 1, 2, 3 -> 1, 1, 3."""
    source, target = rng.sample(range(len(items)), 2)
    items[target] = items[source]
    return items


def _drop_term(text: str, rng: random.Random) -> str | None:
    """3x^2+2x-1 -> 3x^2-1."""
    depth, cuts = 0, []
    for place, character in enumerate(text):
        if character in "+-" and depth == 0 and place:
            cuts.append(place)
        depth += (character in "([{") - (character in ")]}")
    if not cuts:
        return None
    place = rng.randrange(len(cuts))
    end = cuts[place + 1] if place + 1 < len(cuts) else len(text)
    return text[: cuts[place]] + text[end:]


def _rename(text: str, rng: random.Random) -> str | None:
    """One occurrence of a letter becomes another letter of the text."""
    matches = [match for match in _LETTER.finditer(text) if match[0] not in "ei"]
    letters = sorted({match[0] for match in matches})
    if len(letters) < 2:
        return None
    match = rng.choice(matches)
    other = rng.choice([letter for letter in letters if letter != match[0]])
    return text[: match.start()] + other + text[match.end() :]


def _turn_fraction(match: re.Match[str], rng: random.Random) -> str:
    return rf"\frac{{{match[2]}}}{{{match[1]}}}"


def _exponent(match: re.Match[str], rng: random.Random) -> str:
    return f"{match[0]}^{{{rng.choice((2, 3, -1))}}}"


def _pieces(text: str) -> list[str]:
    """Commands, numbers, words, and every other character by itself."""
    return _PIECE.findall(text)


def _drop_piece(text: str, rng: random.Random) -> str | None:
    pieces = _pieces(text)
    pieces.pop(rng.randrange(len(pieces)))
    return "".join(pieces)


def _swap_pieces(text: str, rng: random.Random) -> str | None:
    pieces = _pieces(text)
    one, other = rng.randrange(len(pieces)), rng.randrange(len(pieces))
    pieces[one], pieces[other] = pieces[other], pieces[one]
    return "".join(pieces)


def _replace_piece(text: str, rng: random.Random) -> str | None:
    pieces = _pieces(text)
    pieces[rng.randrange(len(pieces))] = rng.choice(_SPARE)
    return "".join(pieces)


def _around(before: str, after: str) -> Edit:
    return lambda text, rng: before + text + after


EDITS: dict[str, Edit] = {
    "digit": _one(_DIGIT, _other_digit),
    "off by one": _one(_INTEGER, lambda match, rng: str(int(match[0]) + rng.choice((1, -1)))),
    "digits turned": _one(r"\d\d", lambda match, rng: match[0][::-1]),
    "digit added": _one(_INTEGER, lambda match, rng: match[0] + rng.choice("0123456789")),
    "point moved": _one(r"(\d)\.(\d)", lambda match, rng: f".{match[1]}{match[2]}"),
    "sign outside": lambda text, rng: text[1:] if text.startswith("-") else f"-{text}",
    "sign inside": _swap({"+": "-", "-": "+"}),
    "sign before a number": _one(r"(?<![\d.^_{])\d+", lambda match, rng: f"-{match[0]}"),
    "operator": _swap({"+": r"\cdot ", r"\cdot": "+", r"\times": "+", "/": "+"}),
    "exponent": _one(r"\^(\d)|\^\{(-?\d+)\}", lambda match, rng: f"^{{{int(match[1] or match[2]) + 1}}}"),
    "exponent added": _one(_BASE, _exponent),
    "index": _one(r"_(\d)|_\{(\d+)\}", lambda match, rng: f"_{{{int(match[1] or match[2]) + 1}}}"),
    "term dropped": _drop_term,
    "brackets": _swap({"(": "[", ")": "]", "[": "(", "]": ")", r"\{": "(", r"\}": ")"}),
    "item dropped": _on_items(_drop_item),
    "item doubled": _on_items(_double_item),
    "item added": _on_items(_add_item),
    "item repeated": _on_items(_repeat_first),
    "order": _on_items(_reorder),
    "function": _one(_FUNCTION, lambda m, rng: "\\" + rng.choice([f for f in _FUNCTIONS if f != m[1]])),
    "letter": _rename,
    "absolute value": _one(_LETTER, lambda match, rng: f"|{match[0]}|"),
    "absolute value of all": _around("|", "|"),
    "relation": _swap({"<": r"\le ", ">": r"\ge ", r"\le": "<", r"\ge": ">", r"\leq": "<", r"\geq": ">"}),
    "relation turned": _swap({"<": ">", ">": "<", r"\le": r"\ge ", r"\ge": r"\le ", r"\leq": r"\geq "}),
    "fraction turned": _one(r"\\[dt]?frac\{([^{}]*)\}\{([^{}]*)\}", _turn_fraction),
    "root dropped": _one(r"\\sqrt(?=\{)", lambda match, rng: ""),
    "root index": _one(r"\\sqrt(?=\{)", lambda match, rng: r"\sqrt[3]"),
    "constant dropped": _one(r"\\pi|(?<![a-zA-Z\\])i(?![a-zA-Z])", lambda match, rng: "{1}"),
    "constant swapped": _one(r"\\pi(?![a-zA-Z])", lambda match, rng: "e"),
    "infinity": _one(r"(?<!-)\\infty", lambda match, rng: str(rng.randrange(100, 999))),
    "factor": _one(_INTEGER, lambda match, rng: str(int(match[0]) * rng.choice((2, 3, 10, 100)))),
    "piece dropped": _drop_piece,
    "pieces swapped": _swap_pieces,
    "piece replaced": _replace_piece,
    "plus one": _around("", "+1"),
    "squared": _around("(", ")^2"),
    "root of all": _around(r"\sqrt{", "}"),
    "reciprocal": _around(r"\frac{1}{", "}"),
    "doubled": _around("2(", ")"),
}

# What keeps the meaning wherever it applies.
RESPELLINGS: dict[str, Edit] = {
    "dfrac": lambda text, rng: text.replace(r"\frac", r"\dfrac") if r"\frac" in text else None,
    "spaces": lambda text, rng: re.sub(r"(?<=[\w})])([+=])(?=[\w\\({])", r" \1 ", text),
    "left right": lambda text, rng: (
        rf"\left{text[0]}{text[1:-1]}\right{text[-1]}" if _wrapped(text) else None
    ),
    "dollars": _around("$", "$"),
    "full stop": _around("", "."),
    "braces": lambda text, rng: re.sub(r"\^(\d)(?!\d)", r"^{\1}", text) if "^" in text else None,
    "thin spaces": lambda text, rng: (
        text.replace(",", r",\ ") if _items(text) and r",\!" not in text else None
    ),
    "minus sign": lambda text, rng: text.replace("-", "−") if "-" in text else None,
    "nothing": lambda text, rng: text,
}


def _wrapped(text: str) -> bool:
    """Whether one pair of brackets holds everything: (1, 2), not (1)(2)."""
    return (
        text[:1] in "([" and text[-1:] in ")]" and not re.search(r"[()\[\]\\]", text[1:-1]) and len(text) > 2
    )


def edit(name: str, text: str, rng: random.Random) -> str | None:
    """The text with one such change; None where it does not apply or changes nothing."""
    changed = EDITS[name](text, rng)
    return changed if changed is not None and changed != text and len(changed) < 400 else None
