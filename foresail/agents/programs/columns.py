"""Shows a program its problem's prompt, tools and the columns that the recipe names.

    show_problem(problem, ("repo", "extra_info.index")).extra -> {"repo": "x", "extra_info": {"index": 3}}

All other columns are hidden, since the column of answers or tests has another name in every dataset.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from foresail.records import Problem

ALWAYS = ("tools",)


class HiddenColumn(KeyError):
    """A program asked for a hidden column."""

    def __str__(self) -> str:
        (path,) = self.args
        return (
            f"the column {path} is hidden from programs, since answers stand in columns; if it holds none, name it "
            f'in the recipe: environment.columns = ["{path}"]'
        )


class ShownColumns(dict[str, Any]):
    """A row's shown columns. Asking for another, by `[…]` or `get`, raises an error that says how to show it."""

    def __init__(self, shown: Mapping[str, Any], *, hidden: Mapping[str, str]) -> None:
        super().__init__(shown)
        self.hidden = dict(hidden)  # name -> path from the row

    def __missing__(self, name: str) -> Any:
        if name in self.hidden:
            raise HiddenColumn(self.hidden[name])
        raise KeyError(name)

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self or name in self.hidden else default


def show_problem(problem: Problem, columns: Sequence[str]) -> Problem:
    return replace(problem, answer="", extra=show(problem.extra, (*ALWAYS, *columns)))


def show(row: Mapping[str, Any], columns: Sequence[str], path: str = "") -> ShownColumns:
    """`path` leads to the row and ends with a dot: "extra_info."."""
    shown: dict[str, Any] = {}
    hidden: dict[str, str] = {}
    for name, value in row.items():
        place = f"{path}{name}"
        if place in columns:
            shown[name] = value
        elif any(column.startswith(f"{place}.") for column in columns):
            shown[name] = show_parts(value, columns, f"{place}.")
        else:
            hidden[name] = place
    return ShownColumns(shown, hidden=hidden)


def show_parts(value: Any, columns: Sequence[str], path: str) -> Any:
    """The shown parts of a dict, or of each entry of a list; other values are hidden."""
    if isinstance(value, Mapping):
        return show(value, columns, path)
    if isinstance(value, list | tuple):
        return [show_parts(entry, columns, path) for entry in value]
    return None


def holds(value: Any, text: str) -> bool:
    """Whether a value contains a text anywhere: holds({"a": ["4"]}, "4") -> True, as for the number 4."""
    if isinstance(value, Mapping):
        return any(holds(entry, text) for entry in value.values())
    if isinstance(value, list | tuple):
        return any(holds(entry, text) for entry in value)
    return value is not None and str(value).strip() == text.strip()
