"""A recipe as TOML with comments: every value, with its meaning beside it.

`load_recipe` of the text gives an equal recipe. TOML has no null, so unset keys stand as comments; a key that
is none although its default is not is "none" (`overrides.with_nones`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from pydantic import BaseModel

from foresail.recipe.keys import default_at, one_or_more
from foresail.recipe.reward_function import name_of
from foresail.recipe.stages.stage import Stage

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

# Of a stage's tables these come last, behind its own: what is learned, then what it runs on.
LAST = ("rollout", "engine", "optimizer", "checkpoints", "cluster")


def to_toml(recipe: Stage) -> str:
    """Plain keys first, then one table each: `steps = 20  # rollout-and-update rounds`."""
    return "\n".join(table_lines(recipe, type(recipe))) + "\n"


def table_lines(table: BaseModel, kind: type[BaseModel], above: Sequence[str] = ()) -> Iterator[str]:
    """Lines of a table inside others, in a recipe of that kind."""
    fields = type(table).model_fields
    values = {name: getattr(table, name) for name in fields}
    values = {name: in_short(value, fields[name]) for name, value in values.items()}
    for name, value in values.items():
        if not tables_of(value):
            yield key_line(name, value, fields[name], default_at([*above, name], kind))
    for name, value in sorted(values.items(), key=lambda item: item[0] in LAST):
        path = ".".join([*above, name])
        for inner in tables_of(value):
            head = f"[{path}]" if inner is value else f"[[{path}]]"
            yield ""
            yield f"{head}  # {(type(inner).__doc__ or '').strip().splitlines()[0]}"
            yield from table_lines(inner, kind, [*above, name])


def in_short(value: Any, field: FieldInfo) -> Any:
    """Where one table or several may stand: none, one, or a text that says all of it."""
    if (several := one_or_more(field)) is None or len(value) > 1:
        return value
    if not value:
        return None
    (table,) = value
    changed = table.model_dump(exclude_defaults=True)
    return changed[several.short] if several.short is not None and list(changed) == [several.short] else table


def tables_of(value: Any) -> Sequence[BaseModel]:
    """A table, or several under one name, as `[[curriculum]]` has them; none for a plain value."""
    if isinstance(value, BaseModel):
        return [value]
    return [entry for entry in value if isinstance(entry, BaseModel)] if isinstance(value, tuple) else []


def key_line(name: str, value: Any, field: FieldInfo, default: Any) -> str:
    """None is written as a comment, unless the default is another value."""
    said = "none" if value is None and default not in (None, ()) else value
    set_or_not = f"# {name} = none" if said is None else f"{name} = {toml_value(said)}"
    return f"{set_or_not}  # {meaning(field)}"


def meaning(field: FieldInfo) -> str:
    """The description, and the choices where there are some: "estimator (k1, k3)"."""
    choices = get_args(field.annotation) if get_origin(field.annotation) is Literal else ()
    return (field.description or "") + (f" ({', '.join(choices)})" if len(choices) > 1 else "")


def toml_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # TOML's basic strings are JSON's, except that TOML wants DEL escaped too.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if callable(value):  # a reward function that a Python program gave
        return toml_value(name_of(value))
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(toml_value, value))}]"
    return repr(value)
