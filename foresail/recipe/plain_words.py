"""Pydantic's errors in the words of someone who writes recipes: which key, what it takes, what it got."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, get_args

from pydantic import BaseModel, ValidationError

from foresail.recipe.keys import hint, item_type, table_type

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo
    from pydantic_core import ErrorDetails

WANTED = {
    "string_type": "text in quotes",
    "int_type": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
}
BOUNDS = {
    "greater_than": ("gt", "greater than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
}


def in_plain_words(error: ValidationError, stage: type[BaseModel], told: Sequence[str]) -> Iterator[str]:
    """One line per mistake; checks across keys bring their own words, one line each.

    Mistakes that only follow from the keys already `told` of are left out.
    """
    for detail in error.errors(include_url=False):
        if any(key.startswith(f"{key_of(detail)}.") for key in told):
            continue
        if detail["type"] == "value_error":
            prefix = f"{key_of(detail)}: " if detail["loc"] else ""
            yield from (prefix + line for line in str(detail["ctx"]["error"]).splitlines())
        elif detail["type"] == "extra_forbidden":
            yield unknown_key(detail, find_field(detail["loc"][:-1], stage))
        else:
            yield sentence(detail, find_field(detail["loc"], stage))


def sentence(detail: ErrorDetails, field: FieldInfo | None) -> str:
    kind, key, got = detail["type"], key_of(detail), show(detail["input"])
    if kind == "missing":
        return missing(key, field)
    if kind in WANTED:
        return f"{key} must be {WANTED[kind]}, not {got}"
    if kind in BOUNDS:
        name, words = BOUNDS[kind]
        return f"{key} must be {words} {detail['ctx'][name]:g}, not {got}"
    if kind == "literal_error" and field is not None:
        choices = [str(choice) for choice in get_args(field.annotation)]
        near = get_close_matches(str(detail["input"]), choices, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        return f"{key} must be one of {', '.join(choices)}, not {got}{hint}"
    if kind == "tuple_type":
        tables = field is not None and item_type(field.annotation) is not None
        return f"{key} must be {f'one or more tables ([[{key}]])' if tables else 'a list ([…])'}, not {got}"
    if kind in ("model_type", "model_attributes_type"):
        table = table_type(field.annotation) if field is not None else None
        keys = f" with keys like {', '.join(list(table.model_fields)[:3])}" if table is not None else ""
        return f"{key} must be a table ([{key}]){keys}, not {got}"
    return f"{key}: {detail['msg'][0].lower()}{detail['msg'][1:]}, not {got}"


def unknown_key(detail: ErrorDetails, field: FieldInfo | None) -> str:
    """In one of several tables under a name; of other unknown keys `load` tells."""
    table = item_type(field.annotation) if field is not None else None
    meant = f"; {hint(str(detail['loc'][-1]), list(table.model_fields))}" if table else ""
    return f"{key_of(detail)}: unknown key{meant}"


def missing(key: str, field: FieldInfo | None) -> str:
    table = table_type(field.annotation) if field is not None else None
    if table is not None:
        return f"{key} is missing; add a table [{key}]: {(table.__doc__ or '').strip()}"
    return f"{key} is missing; set it: {field.description if field is not None else key}"


def key_of(detail: ErrorDetails) -> str:
    """("curriculum", 1, "steps") -> "curriculum#2.steps": the second of its tables."""
    names = "".join(f"#{name + 1}" if isinstance(name, int) else f".{name}" for name in detail["loc"])
    return names.removeprefix(".")


def find_field(location: tuple[int | str, ...], stage: type[BaseModel]) -> FieldInfo | None:
    table: type[BaseModel] | None = stage
    field = None
    for name in location:
        if isinstance(name, int):  # an entry of the list before
            continue
        if table is None or name not in table.model_fields:
            return None
        field = table.model_fields[name]
        table = table_type(field.annotation) or item_type(field.annotation)
    return field


def show(value: Any) -> str:
    """As the user would have written it in TOML: "a", true, none, 3."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    return "a table" if isinstance(value, dict) else str(value)
