"""Reading the fields of a wire format: each reader returns a value of its type, or refuses and names the field.

text_at({"name": "add"}, "name", "tools[0]") -> "add"
text_at({"name": 3}, "name", "tools[0]")     raises Refusal("tools[0].name must be text", param="tools[0].name")
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from foresail.chat.errors import Refusal

Fields = Mapping[str, Any]


def refuse(place: str, text: str) -> Refusal:
    return Refusal(f"{place} {text}", param=place)


def named(place: str, name: str) -> str:
    """named("tools[0]", "name") -> "tools[0].name"."""
    return f"{place}.{name}" if place else name


def text_at(fields: Fields, name: str, place: str = "", *, default: str | None = None) -> str:
    value = fields.get(name)
    if value is None and default is not None:
        return default
    if not isinstance(value, str):
        raise refuse(named(place, name), "is missing" if value is None else "must be text")
    return value


def list_at(fields: Fields, name: str, place: str = "") -> Sequence[Any]:
    """An empty list where there is none."""
    value = fields.get(name)
    if value is None:
        return ()
    if not isinstance(value, list):
        raise refuse(named(place, name), "must be a list")
    return value


def object_at(fields: Fields, name: str, place: str = "") -> Fields:
    """An empty object where there is none."""
    value = fields.get(name)
    return {} if value is None else an_object(value, named(place, name))


def an_object(value: Any, place: str) -> Fields:
    if not isinstance(value, dict):
        raise refuse(place, "must be an object")
    return value


def item_of(place: str, number: int) -> str:
    """item_of("messages", 0) -> "messages[0]"."""
    return f"{place}[{number}]"
