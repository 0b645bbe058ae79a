"""Parses a model's JSON strictly: ambiguous values are refused with an error of one line.

Refused besides bad syntax: numbers that no float holds, repeated keys, very deep nesting, halves of characters.
Line breaks inside strings, which JSON forbids and models write, are accepted.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from typing import Any

MAX_LEVELS = 64
MAX_DIGITS = 1000
SHOWN = 40  # characters of the wrong part in an error
WINDOW = 256  # characters that are parsed first
LONGEST_WORD = 16  # of words that a window may cut in two: `false`, `\\ud83d`, `-Infinity`
SPACE = re.compile(r"[ \t\n\r]*")
HALF = re.compile(r"\\u[dD][89a-fA-F]")  # how JSON writes half of a character


class BadJSON(ValueError):
    """An error of one line."""


class Refused:
    """A number to refuse once the window holds all of it."""

    def __init__(self, why: str) -> None:
        self.why = why


def read_value(text: str, start: int) -> tuple[Any, int]:
    """The JSON value that begins at `start`, and where it ends: read_value('x {"a": 1} y', 1) -> ({"a": 1}, 10).

    The window grows with the value. Parsing the whole text would be slow: each error counts its line and column
    from the beginning of the text, and a text may hold a million errors.
    """
    begin, size = end_of_space(text, start), WINDOW
    while True:
        window = text[begin : begin + size]
        is_all = begin + size >= len(text)
        try:
            value, end = DECODER.raw_decode(window)
            if is_all or end < len(window):
                check(value, window, end)
                return value, begin + end
        except RecursionError:
            raise BadJSON(f"it is nested deeper than {MAX_LEVELS} levels") from None
        except json.JSONDecodeError as error:
            if is_all or not may_be_cut(error, window):
                near = window[error.pos : error.pos + SHOWN].partition("<")[0]
                raise BadJSON(f"{error.msg} " + (f"at {near!r}" if near else "at its end")) from None
        size *= 2


def may_be_cut(error: json.JSONDecodeError, window: str) -> bool:
    """Whether the error may only be due to the window's end."""
    return error.msg.startswith("Unterminated") or error.pos > len(window) - LONGEST_WORD


def check(value: Any, text: str, end: int) -> None:
    levels, layer = 0, [value]
    while layer:
        for part in layer:
            if isinstance(part, Refused):
                raise BadJSON(part.why)
        levels += 1
        if levels > MAX_LEVELS + 1:
            raise BadJSON(f"it is nested deeper than {MAX_LEVELS} levels")
        layer = [inner for part in layer for inner in inside(part)]
    if HALF.search(text, 0, end) and not is_whole(value):
        raise BadJSON("a \\u escape gives half of a character")


def inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def end_of_space(text: str, start: int) -> int:
    space = SPACE.match(text, start)
    assert space is not None
    return space.end()


def is_whole(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def read_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for key, value in pairs:
        if key in members:
            raise BadJSON(f"the key {key[:SHOWN]!r} stands twice")
        members[key] = value
    return members


def read_float(text: str) -> float | Refused:
    value = float(text)
    return value if math.isfinite(value) else Refused(f"the number {text[:SHOWN]} is too large")


def read_int(text: str) -> int | Refused:
    if len(text) > MAX_DIGITS:
        return Refused(f"a number of {len(text)} digits is too long")
    return int(text)


def refuse_constant(text: str) -> Any:
    raise BadJSON(f"{text} is no JSON number")


DECODER = json.JSONDecoder(
    object_pairs_hook=read_object,
    parse_float=read_float,
    parse_int=read_int,
    parse_constant=refuse_constant,
    strict=False,
)
