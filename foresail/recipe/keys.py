"""The keys a stage knows, and the one a mistaken key was meant to be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from types import UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin

from pydantic import BaseModel

from foresail.recipe.elsewhere import name_for_key, sentence_for_key, sentence_for_value

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

LEAST_LIKENESS = 0.7  # of the name of a key that may have been meant, in the same table
LEAST_ELSEWHERE = 0.85  # in another one


@dataclass(frozen=True)
class OneOrMore:
    """A key that takes one table or several. With `short`, text stands for a table that has only this key."""

    short: str | None = None

    def __call__(self, given: Any) -> Any:
        if given is None:
            return ()
        if isinstance(given, str) and self.short is not None:
            given = {self.short: given}
        if isinstance(given, dict | BaseModel):
            given = [given]
        if not isinstance(given, list | tuple):
            return given
        return [
            entry.model_dump(exclude_unset=True) if isinstance(entry, BaseModel) else entry for entry in given
        ]


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
    """What may be written for a key: where one table or several may, that table; or text in its place."""
    if (several := one_or_more(field)) is None:
        return field.annotation
    table = item_type(field.annotation)
    return table if several.short is None else Union[str, table]  # noqa: UP007, for it is made at run time


def known_keys(table: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted paths and types of all keys below a table, tables themselves included."""
    for name, field in table.model_fields.items():
        kind = key_type(field)
        yield prefix + name, kind
        if (inner := table_type(kind)) is not None:
            yield from known_keys(inner, f"{prefix}{name}.")


def leaves(given: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """leaves({"run": {"seed": 1}, "steps": 2}) -> ("run.seed", 1), ("steps", 2)."""
    for name, value in given.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def hint(path: str, known: list[str], value: Any = None) -> str:
    """What to say of an unknown key: which one was meant, and what its value is there, where that can be told."""
    of_recipe = "stage" in known  # a simulation's file has other keys, of which none comes from elsewhere
    if of_recipe and (told := sentence_for_value("engine", value) or sentence_for_key(path)):
        return told
    meant = nearest(path, known)
    if meant is None:
        return "docs/recipe-keys.md lists all"
    further = sentence_for_value(meant, value)
    return f"the nearest is {meant}" + (f"; {further}" if further else "")


def nearest(path: str, known: list[str]) -> str | None:
    """nearest("optimiser.lr", …) -> "optimizer.lr"; nearest("num_generations", …) -> "samples_per_prompt"."""
    if (ours := name_for_key(path)) in known:
        return ours

    table, _, last = path.rpartition(".")

    def likeness(candidate: str) -> float:
        """By the last name: `lr` at the top was meant to be `optimizer.lr`. 0 where it may as well mean another."""
        its_table, _, name = candidate.rpartition(".")
        same = SequenceMatcher(None, last, name).ratio()
        within = "_" in last and set(last.split("_")) <= set(name.split("_"))  # max_tokens: max_new_tokens
        least = LEAST_LIKENESS if table == its_table else LEAST_ELSEWHERE
        whole = SequenceMatcher(None, path, candidate).ratio()
        return same + 0.1 * whole if same >= least or within else 0.0

    best = max(known, key=likeness)
    return best if likeness(best) else None
