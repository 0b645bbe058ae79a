"""The keys that a table has: their paths, their types, and what may be written for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, Strict

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

Kind = Literal["text", "choice", "number", "bool", "list", "table", "nothing", "none"]


@dataclass(frozen=True)
class OneOrMore:
    """A key that takes one table or several. With `short`, text stands for a table that has only this key."""

    short: str | None = None

    def __call__(self, value: Any) -> Any:
        if value is None:
            return ()
        if isinstance(value, str) and self.short is not None:
            value = {self.short: value}
        if isinstance(value, dict | BaseModel):
            value = [value]
        if not isinstance(value, list | tuple):
            return value
        return [
            entry.model_dump(exclude_unset=True) if isinstance(entry, BaseModel) else entry for entry in value
        ]


T = TypeVar("T")
# TOML has lists only, and a recipe is frozen: hence Strict(False)
Tables = Annotated[tuple[T, ...], Strict(False), BeforeValidator(OneOrMore())]
FilesOrTables = Annotated[tuple[T, ...], Strict(False), BeforeValidator(OneOrMore(short="source"))]


@dataclass(frozen=True)
class NamesNone:
    """Marks a key of text that has a value named "none", which does not unset it."""


def table_type(annotation: Any) -> type[BaseModel] | None:
    """The table behind a field's type, if it is one: `Problems | None` -> Problems, `int` -> None."""
    options = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    tables = [option for option in options if isinstance(option, type) and issubclass(option, BaseModel)]
    return tables[0] if tables else None


def item_type(annotation: Any) -> type[BaseModel] | None:
    """The table of which a key takes several: `tuple[CurriculumStage, ...]` -> CurriculumStage."""
    return table_type(get_args(annotation)[0]) if get_origin(annotation) is tuple else None


def one_or_more(field: FieldInfo) -> OneOrMore | None:
    """Whether a key takes one table or several, `[data]` or `[[data]]`."""
    functions = (getattr(entry, "func", None) for entry in field.metadata)
    return next((function for function in functions if isinstance(function, OneOrMore)), None)


def key_type(field: FieldInfo) -> Any:
    """The type of a key's value; for a key of one or more tables, that table, or text in its place."""
    if (several := one_or_more(field)) is None:
        return field.annotation
    table = item_type(field.annotation)
    return table if several.short is None else Union[str, table]  # noqa: UP007, for it is made at run time


def kinds(field: FieldInfo) -> frozenset[Kind]:
    """What a key takes; "nothing" is None, which TOML has not, and "none" a value of that name.

    Of `str | tuple[str, ...] | None`: text, list, nothing; of `Literal["none", "ngram"]`: choice, none.
    """
    if (several := one_or_more(field)) is not None:
        text: list[Kind] = ["text"] if several.short else []
        return frozenset({"table", "list", *text})
    named: list[Kind] = ["none"] if any(isinstance(entry, NamesNone) for entry in field.metadata) else []
    return frozenset({*kinds_of(field.annotation), *named})


def kinds_of(annotation: Any) -> Iterator[Kind]:
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        yield from kinds_of(inner[0])
    elif origin in (Union, UnionType):
        for option in inner:
            yield from kinds_of(option)
    elif origin is Literal:
        yield "choice"
        if "none" in inner:
            yield "none"
    elif origin in (tuple, list):
        yield "list"
    elif annotation is type(None):
        yield "nothing"
    elif isinstance(annotation, type):
        names: dict[type, Kind] = {
            BaseModel: "table",
            bool: "bool",
            str: "text",
            int: "number",
            float: "number",
        }
        yield from [name for kind, name in names.items() if issubclass(annotation, kind)][:1]


def find_field(location: Sequence[int | str], table: type[BaseModel]) -> FieldInfo | None:
    """find_field(("data", 0, "limit"), Rl), or ("data", "limit"): the field of data.limit."""
    inner: type[BaseModel] | None = table
    field = None
    for name in location:
        if isinstance(name, int):  # an entry of the list before
            continue
        if inner is None or name not in inner.model_fields:
            return None
        field = inner.model_fields[name]
        inner = table_type(field.annotation) or item_type(field.annotation)
    return field


def default_at(names: Sequence[str], table: type[BaseModel]) -> Any:
    """The default of a key in this stage: checkpoints.every is 50 in sft, whatever it is in others."""
    *tables, last = names
    default: Any = None
    for number, name in enumerate(tables):
        field = find_field(names[: number + 1], table)
        default = (
            getattr(default, name, None)
            if default is not None
            else field.default
            if field is not None
            else None
        )
        default = default if isinstance(default, BaseModel) else None
    field = find_field(names, table)
    return getattr(default, last) if default is not None else None if field is None else field.default


def known_keys(table: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted paths and types of all keys below a table, tables themselves included."""
    for name, field in table.model_fields.items():
        kind = key_type(field)
        yield prefix + name, kind
        if (inner := table_type(kind)) is not None:
            yield from known_keys(inner, f"{prefix}{name}.")


def all_keys(table: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """The same, without types, and with the keys of each of several tables: "curriculum.steps"."""
    for name, field in table.model_fields.items():
        yield prefix + name
        inner = table_type(key_type(field)) or item_type(field.annotation)
        if inner is not None:
            yield from all_keys(inner, f"{prefix}{name}.")


def stage_of(table: type[BaseModel]) -> str:
    """stage_of(Rl) -> "rl"; nothing of a table that is no recipe."""
    field = table.model_fields.get("stage")
    return str(field.default) if field is not None and isinstance(field.default, str) else ""


def leaves(table: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """leaves({"run": {"seed": 1}, "steps": 2}) -> ("run.seed", 1), ("steps", 2)."""
    for name, value in table.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value
