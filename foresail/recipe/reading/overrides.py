"""Settings laid over a recipe's text: `a.b=c` from the command line, keywords from Python.

    put(given, "run.seed", parse_value("1", find_field(["run", "seed"], Rl)), Rl)

A value is read as TOML, so a line of a recipe means the same on the command line. Text needs no quotes there, and
`none` unsets a key.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from foresail.recipe.keys import Kind, default_at, find_field, kinds, one_or_more

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.fields import FieldInfo

# LaTeX commands that begin with n, without it
LATEX = "abla|cong|e|earrow|eg|eq|ewline|exists|geq|i|leq|mid|onumber|ot|otin|parallel|rightarrow|u|warrow"
NEWLINE = re.compile(rf"\\\\n|\\n(?!(?:{LATEX})(?![A-Za-z]))")
NONE = "none"


def split_overrides(overrides: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """["a.b=c", "d"] -> {"a.b": "c"} and a mistake about "d"."""
    settings, mistakes = {}, []
    for override in overrides:
        key, equals, text = (part.strip() for part in override.partition("="))
        if equals and all(key.split(".")):
            settings[key] = text
        else:
            mistakes.append(f"override {override!r} is not of the form key=value, like optimizer.lr=1e-5")
    return settings, mistakes


def parse_value(text: str, field: FieldInfo | None) -> Any:
    """A TOML value, `none`, or else plain text: "1e-5" -> 1e-5, "none" -> None, "demo" -> "demo".

    Where the key takes text, `run.name=2024` is the name "2024": a shell eats the quotes TOML would need. Where it
    takes a list as well, `environment.program=["python", "x.py"]` is one. `none` is a text where the key has a
    value of that name and cannot be unset otherwise: `mtp.train=none`.
    """
    taken = kinds(field) if field is not None else frozenset[Kind]()
    if text == NONE:
        return NONE if NONE in taken and "nothing" not in taken else None
    try:
        parsed = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):  # no TOML, or nothing that it could hold
        return with_newlines(text)
    value = parsed["value"] if len(parsed) == 1 else text
    if isinstance(value, str):
        return value
    return with_newlines(text) if "text" in taken and kind_of(value) not in taken else value


def kind_of(value: Any) -> Kind | None:
    """The kind of a TOML value; None for one that no key takes, such as a date."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, list):
        return "list"
    return "table" if isinstance(value, dict) else None


def with_newlines(text: str) -> str:
    r"""A shell passes on \n as two characters: r"\nThink." -> a new line and "Think.".

    LaTeX commands that begin so (\neq, \nu, …) stay, and \\n is a backslash and an n.
    """
    return NEWLINE.sub(lambda match: "\n" if match[0] == r"\n" else r"\n", text)


def put(table: dict[str, Any], key: str, value: Any, kind: type[BaseModel]) -> None:
    """put({}, "run.seed", 1, Rl) makes {"run": {"seed": 1}}; "data#2.weight" means the second [[data]].

    None removes a key, so that it has its default; a key that takes None itself is set to None.
    """
    *steps, last = key.split(".")
    names = [step.partition("#")[0] for step in steps]
    field = find_field([*names, last], kind)
    optional, unsets = field is not None and "nothing" in kinds(field), value is None and field is not None
    for place, step in enumerate(steps):
        name, number, digits = step.partition("#")
        field_of_step = find_field(names[: place + 1], kind)
        if table.get(name) is None and unsets and (not optional or default_at([*names, last], kind) is None):
            return  # there is nothing, and no table to make for it
        table = open_table(table, name, int(digits) if number and digits.isdigit() else None, field_of_step)
    if unsets and not optional:
        table.pop(last, None)
    else:
        table[last] = value


def with_nones(table: dict[str, Any], kind: type[BaseModel], above: Sequence[str] = ()) -> dict[str, Any]:
    """The text "none" as None, since TOML has no null: critic.clip = "none".

    Only for keys that may be None; where a key takes text as well, only if its default is not None.
    """
    return {name: with_none(value, [*above, name], kind) for name, value in table.items()}


def with_none(value: Any, names: Sequence[str], kind: type[BaseModel]) -> Any:
    if isinstance(value, dict):
        return with_nones(value, kind, names)
    if isinstance(value, list) and all(isinstance(entry, dict) for entry in value):
        return [with_nones(entry, kind, names) for entry in value]
    field = find_field(names, kind) if value == NONE else None
    if field is None or "nothing" not in kinds(field):
        return value
    is_text = "none" in kinds(field) or ("text" in kinds(field) and default_at(names, kind) is None)
    return value if is_text else None


def open_table(
    outer: dict[str, Any], name: str, number: int | None, field: FieldInfo | None
) -> dict[str, Any]:
    """The table to put into, made where there is none; of several under one name, that number."""
    there = outer.get(name)
    if isinstance(there, list) and there and all(isinstance(entry, dict) for entry in there):
        if number is None and len(there) > 1:
            raise ValueError(
                f"there are {len(there)} tables [[{name}]]; say which: {name}#1 to {name}#{len(there)}"
            )
        if not 1 <= (number or 1) <= len(there):
            raise ValueError(f"{name}#{number}: there are {len(there)} tables [[{name}]]")
        numbered: dict[str, Any] = there[(number or 1) - 1]
        return numbered
    several = one_or_more(field) if field is not None else None
    if isinstance(there, str) and several is not None and several.short is not None:
        outer[name] = {several.short: there}
    elif not isinstance(there, dict):
        outer[name] = {}
    table: dict[str, Any] = outer[name]
    return table
