"""JSON objects compared by their fields: the same keys, and values that are the same.

    json_object('{"size": "11", "color": "red"}', {})('```json\\n{"color": "Red", "size": 11}\\n```')     True

The order of keys, case and spaces of texts do not matter. A number may stand for a text of the same digits, not a
text for a number. Two objects, a key twice, NaN, or anything in braces beside the object make the answer wrong.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from foresail.rewards.structured.final_answer import normalise

DEEPEST = 20  # braces and brackets within each other


def json_object(answer: str, check: Mapping[str, Any]) -> Callable[[str], bool]:
    right = parse(answer)
    if not isinstance(right, dict | list):
        raise ValueError(f"the answer {answer!r} is no JSON object and no list")
    opening = "{" if isinstance(right, dict) else "["
    return lambda text: same(read_object(text, opening), right)


def canonical(text: str) -> str:
    """One text for equal objects, for votes."""
    return json.dumps(plain(read_object(text)), sort_keys=True, ensure_ascii=False)


def read_object(text: str, opening: str = "{") -> Any:
    """The only object (or list) in the text; words and a fence of code may stand around it."""
    start = text.find(opening)
    if start < 0:
        raise ValueError("no JSON object")
    check_depth(text)
    value, end = decoder().raw_decode(text, start)
    if set("{}[]") & set(text[end:] + text[:start]):
        raise ValueError("more than one JSON object")
    return value


def parse(text: str) -> Any:
    """A whole JSON text."""
    check_depth(text)
    return decoder().decode(text.strip())


def decoder() -> json.JSONDecoder:
    return json.JSONDecoder(
        object_pairs_hook=without_repeats, parse_float=Decimal, parse_int=Decimal, parse_constant=refuse
    )


def check_depth(text: str) -> None:
    depth = 0
    for letter in text:
        if letter in "{[":
            depth += 1
            if depth > DEEPEST:
                raise ValueError("nested too deeply")
        elif letter in "}]":
            depth -= 1


def without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = {normalise(key): value for key, value in pairs}
    if len(fields) < len(pairs):
        raise ValueError("a key stands twice")
    return fields


def refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")


def same(value: Any, right: Any) -> bool:
    """Of two parsed values."""
    if isinstance(right, dict):
        if not isinstance(value, dict) or value.keys() != right.keys():
            return False
        return all(same(value[key], right[key]) for key in right)
    if isinstance(right, list):
        if not isinstance(value, list) or len(value) != len(right):
            return False
        return all(map(same, value, right))
    if isinstance(right, str):
        if isinstance(value, Decimal):
            return str(value) == normalise(right)
        return isinstance(value, str) and normalise(value) == normalise(right)
    return type(value) is type(right) and bool(value == right)


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, Decimal):
        return str(value.normalize())
    return normalise(value) if isinstance(value, str) else value
