"""Pydantic's errors as messages for authors of recipes: the key, what it takes, what it got."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from pydantic import BaseModel, ValidationError

from foresail.recipe.keys import all_keys, find_field, item_type, key_type, one_or_more, stage_of, table_type
from foresail.recipe.other_trainers.values import value_note

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo
    from pydantic_core import ErrorDetails

MAX_SHOWN = 80  # characters of a mistaken value
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


def explain_errors(
    error: ValidationError,
    stage: type[BaseModel],
    written: Mapping[str, Any],
    *,
    reported: Sequence[str] = (),
    hint: Callable[[str], str] = lambda key: "remove it",
) -> Iterator[str]:
    """One line per mistake in what was `written`; checks across keys bring their own words, one line each.

    Mistakes that only follow from the keys already `reported` are left out. `hint` says what to do about a key that
    there is not.
    """
    known = {*all_keys(stage)}
    for raw_detail in error.errors(include_url=False):
        detail = with_lone_tables(raw_detail, stage, written)
        if any(key.startswith(f"{key_of(detail)}.") for key in reported):
            continue
        if detail["type"] == "value_error":
            prefix = f"{key_of(detail)}: " if detail["loc"] else ""
            yield from (prefix + line for line in str(detail["ctx"]["error"]).splitlines())
        elif detail["type"] == "extra_forbidden":
            yield f"{key_of(detail)}: unknown key; {hint(key_of(detail))}"
        else:
            key = ".".join(name for name in detail["loc"] if isinstance(name, str))
            note = value_note(key, detail["input"], stage_of(stage), known)
            yield sentence(detail, find_field(detail["loc"], stage), note)


def with_lone_tables(
    detail: ErrorDetails, stage: type[BaseModel], written: Mapping[str, Any]
) -> ErrorDetails:
    """("data", 0, "source") as ("data", "source"), where there is one table under a name that may have several."""
    location: list[int | str] = []
    there: Any = written
    for name in detail["loc"]:
        field = find_field(location, stage)
        if isinstance(name, int):
            alone = field is not None and one_or_more(field) is not None
            if isinstance(there, list) and not (alone and len(there) == 1):
                location.append(name)
            there = there[name] if isinstance(there, list) and name < len(there) else there
        else:
            location.append(name)
            there = there.get(name) if isinstance(there, Mapping) else None
    return {**detail, "loc": tuple(location)}


def sentence(detail: ErrorDetails, field: FieldInfo | None, note: str | None) -> str:
    """With the note on what such a value of another trainer is here, where there is one."""
    kind, key, got = detail["type"], key_of(detail), show(detail["input"])
    behind = f"; {note}" if note else ""
    if kind == "missing":
        return missing(key, field)
    if kind in WANTED:
        return f"{key} must be {WANTED[kind]}, not {got}{behind}"
    if kind in BOUNDS:
        name, words = BOUNDS[kind]
        return f"{key} must be {words} {detail['ctx'][name]:g}, not {got}{behind}"
    if kind == "literal_error" and field is not None:
        choices = [*map(str, choices_of(field.annotation))]
        near = get_close_matches(str(detail["input"]), choices, n=1)
        meant = note or (f"did you mean {near[0]}?" if near else "")
        return f"{key} must be one of {', '.join(choices)}, not {got}{meant and f'; {meant}'}"
    if kind == "tuple_type":
        tables = field is not None and item_type(field.annotation) is not None
        if field is not None and (several := one_or_more(field)) is not None:
            text = " or text in quotes" if several.short else ""
            return f"{key} must be a table ([{key}]), several ([[{key}]]){text}, not {got}"
        return f"{key} must be {f'one or more tables ([[{key}]])' if tables else 'a list ([…])'}, not {got}"
    if kind in ("model_type", "model_attributes_type"):
        if note:
            return f"{key} = {got}: {note}"
        table = table_type(key_type(field)) if field is not None else None
        keys = f" with keys like {', '.join(list(table.model_fields)[:3])}" if table is not None else ""
        return f"{key} must be a table ([{key}]){keys}, not {got}"
    return f"{key}: {detail['msg'][0].lower()}{detail['msg'][1:]}, not {got}"


def choices_of(annotation: Any) -> tuple[Any, ...]:
    """Of a Literal, or of the one inside `Literal[…] | None` or `tuple[Literal[…], ...]`."""
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    return next((choices for inner in get_args(annotation) if (choices := choices_of(inner))), ())


def missing(key: str, field: FieldInfo | None) -> str:
    kind = key_type(field) if field is not None else None
    table = table_type(kind)
    if table is not None and str not in get_args(kind):
        return f"{key} is missing; add a table [{key}]: {(table.__doc__ or '').strip()}"
    return f"{key} is missing; set it: {field.description if field is not None else key}"


def key_of(detail: ErrorDetails) -> str:
    """("curriculum", 1, "steps") -> "curriculum#2.steps": the second of its tables."""
    names = "".join(f"#{name + 1}" if isinstance(name, int) else f".{name}" for name in detail["loc"])
    return names.removeprefix(".")


def show(value: Any) -> str:
    """As the user would have written it in TOML: "a", true, none, 3."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return shortened(f'"{value}"')
    return "a table" if isinstance(value, dict) else shortened(str(value))


def shortened(text: str) -> str:
    """On one line, cut to MOST_SHOWN characters."""
    line = " ".join(text.splitlines())
    return line if len(line) <= MAX_SHOWN else line[: MAX_SHOWN - 1] + "…"
