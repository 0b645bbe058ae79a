"""Checks the keywords of a function; errors read like those of a recipe's keys.

(sampling,) = check_keywords("generate", Keywords(kind=Sampling, table="sampling", values={"temprature": 0.5}))
-> RecipeError: generate: temprature: unknown keyword; the nearest is temperature
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from foresail.api.result import Result
from foresail.recipe.reading.hints import Hints
from foresail.recipe.reading.load import RecipeError, complaint
from foresail.recipe.tables.part import Part
from foresail.recipe.validation_errors import explain_errors, show

STAGE = "rl"  # names of other trainers' options are translated to its keys


@dataclass(frozen=True, kw_only=True)
class Keywords:
    """Values for keys of a recipe's table: the keywords themselves, or `together` in one dict named `table`.

    None counts as not set. `also` are keys that the function fills in by itself.
    """

    kind: type[Part]
    table: str
    values: Any
    together: bool = False
    also: Mapping[str, Any] | None = None

    def shown(self, key: str) -> str:
        return f"{self.table}.{key}" if self.together else key

    def message(self, mistake: str) -> str:
        """The mistake with its table in front of the key, or in front of a sentence about the whole table."""
        begins = re.split(r"[^a-z_0-9]", mistake, maxsplit=1)[0] in self.kind.model_fields
        return self.shown(mistake) if begins or not self.together else f"{self.table}: {mistake}"


def check_keywords(function: str, *groups: Keywords, others: Sequence[str] = ()) -> list[dict[str, Any]]:
    """The values of each group, checked; or one error with all that is wrong. `others`: further keywords."""
    keys = {f"{group.table}.{name}" for group in groups for name in group.kind.model_fields}
    hints = Hints({*keys, *others, *(group.table for group in groups if group.together)}, STAGE)
    alone = [group.table for group in groups if not group.together]
    checked, mistakes = [], list[str]()
    for group in groups:
        if not isinstance(group.values, Mapping):
            mistakes.append(f"{group.table} must be a dict of keys and values, not {show(group.values)}")
            continue
        values = {str(key): value for key, value in group.values.items() if value is not None}
        right = {key: value for key, value in values.items() if key in group.kind.model_fields}
        for key in [key for key in values if key not in right]:
            advice = meaning(hints, group.shown(key)) or f"docs/python.md says what {function} takes"
            advice = re.sub(rf"\b({'|'.join(alone)})\.", "", advice)
            mistakes.append(f"{group.shown(key)}: unknown keyword; {advice}")
        complete = {**right, **(group.also or {})}
        try:
            built = group.kind.model_validate(complete)
            checked.append({key: getattr(built, key) for key in right})
        except ValidationError as error:
            mistakes += [group.message(line) for line in explain_errors(error, group.kind, complete)]
    if mistakes:
        raise complaint(function, mistakes)
    return checked


def meaning(hints: Hints, key: str) -> str | None:
    return hints.translated(key) or hints.without_table(key) or hints.slip(key)


def folder_of(model: Any, name: str = "model") -> Path:
    """Of a run's result, or a path itself."""
    if isinstance(model, Result):
        return model.run
    if not isinstance(model, str | Path):
        raise RecipeError(
            f"{name} is a {type(model).__name__}; give a path, the folder of a run, or a result of foresail's"
        )
    return Path(model)
