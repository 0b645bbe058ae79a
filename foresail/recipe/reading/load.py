"""From a TOML file and `a.b=c` overrides to a recipe, or to one error that lists every mistake.

    load_recipe("recipes/rl-arithmetic.toml", ["run.name=demo", "optimizer.lr=1e-5", "eval=none"])

Relative paths inside a recipe stay as written: they count from the folder the command runs in.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from foresail.recipe.keys import all_keys, find_field, known_keys, leaves, stage_of, table_type
from foresail.recipe.other_trainers.values import other_stage
from foresail.recipe.reading.hints import hint
from foresail.recipe.reading.overrides import parse_value, put, split_overrides, with_nones
from foresail.recipe.reading.recipe_error import RecipeError as RecipeError
from foresail.recipe.stages.stage import Stage
from foresail.recipe.stages.table import STAGES, recipe_type
from foresail.recipe.tables.part import Part
from foresail.recipe.validation_errors import explain_errors, show

Table = TypeVar("Table", bound=Part)
BEYOND = 2**63  # as TOML has it: whole numbers have 64 bits


def load_recipe(path: str | Path, overrides: Sequence[str] = ()) -> Stage:
    """The recipe in a file, with the overrides laid over it."""
    table = read_toml(Path(path))
    settings, mistakes = split_overrides(overrides)
    stage_name = settings.get("stage", table.get("stage"))
    if str(stage_name) not in STAGES:
        raise complaint(path, [*mistakes, stage_mistake(stage_name)])
    return check_table(path, table, settings, mistakes, recipe_type(str(stage_name)))


def build_recipe(table: dict[str, Any], name: str = "recipe") -> Stage:
    """The recipe that nested dicts describe, as TOML would; `name` is what to call it in messages."""
    return check_table(name, table, {}, [], check_stage(table.get("stage"), name))


def check_stage(stage: Any, name: str) -> type[Stage]:
    """The type of recipes of that stage."""
    if str(stage) not in STAGES:
        raise complaint(name, [stage_mistake(stage)])
    return recipe_type(str(stage))


def load_table(path: str | Path, overrides: Sequence[str], kind: type[Table]) -> Table:
    """A file of another kind than a recipe, with overrides, checked in the same way."""
    table = read_toml(Path(path))
    return check_table(path, table, *split_overrides(overrides), kind)


def check_table(
    path: str | Path,
    written: dict[str, Any],
    settings: dict[str, str],
    mistakes: list[str],
    kind: type[Table],
) -> Table:
    """Lay the settings over what is written; a value of that kind, or one error with all mistakes."""
    known = dict(known_keys(kind))
    for key, text in settings.items():
        try:
            put(written, key, parse_value(text, find_field(re.sub(r"#\d+", "", key).split("."), kind)), kind)
        except ValueError as error:
            mistakes.append(str(error))
    written = with_nones(written, kind)
    if huge := [*huge_numbers(written)]:
        raise complaint(path, [*mistakes, *huge])
    unknown = {key: value for key, value in leaves(written) if key not in known}
    keys, stage = [*all_keys(kind)], stage_of(kind)
    mistakes += [
        misplaced(key, known) or f"{key}: unknown key; {hint(key, keys, stage, value)}"
        for key, value in unknown.items()
    ]
    try:
        table = kind.model_validate(without(written, [*unknown]))
    except ValidationError as error:
        others = explain_errors(
            error, kind, written, reported=[*unknown], hint=lambda key: hint(key, keys, stage)
        )
        raise complaint(path, [*mistakes, *others]) from None
    if mistakes:
        raise complaint(path, mistakes)
    return table


def huge_numbers(value: Any, key: str = "") -> Iterator[str]:
    """Mistakes of whole numbers beyond 64 bits, which neither TOML nor torch can hold."""
    if isinstance(value, dict):
        for name, entry in value.items():
            yield from huge_numbers(entry, f"{key}.{name}" if key else name)
    elif isinstance(value, list | tuple):
        for number, entry in enumerate(value, start=1):
            yield from huge_numbers(entry, f"{key}#{number}")
    elif isinstance(value, int) and not -BEYOND <= value < BEYOND:
        yield f"{key} must fit 64 bits, which {show(value)} does not; set it lower"


def read_toml(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8-sig")  # -sig: Windows editors put a mark before the first key
    except FileNotFoundError:
        near = get_close_matches(
            path.name, [file.name for file in path.parent.glob("*.toml") if file.exists()], n=1
        )
        hint = f"; did you mean {path.parent / near[0]}?" if near else "; give the path of a TOML file"
        raise RecipeError(f"{path} does not exist{hint}") from None
    except UnicodeDecodeError:
        raise RecipeError(f"{path} is not text; a recipe is a TOML file in UTF-8") from None
    except OSError as error:
        raise RecipeError(f"{path} cannot be read: {error.strerror}; give the path of a TOML file") from None
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RecipeError(f"{path} is not valid TOML: {error}") from None
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, lists in lists in …
        raise RecipeError(f"{path} cannot be read: {error}") from None


def without(table: dict[str, Any], unknown: Sequence[str], prefix: str = "") -> dict[str, Any]:
    """The table without unknown keys, and without tables that are empty then."""
    left = {}
    for name, value in table.items():
        if isinstance(value, dict) and value:
            value = without(value, unknown, f"{prefix}{name}.")
            if value or not any(key.startswith(f"{prefix}{name}.") for key in unknown):
                left[name] = value
        elif prefix + name not in unknown:
            left[name] = value
    return left


def misplaced(key: str, known: Mapping[str, Any]) -> str | None:
    """A message for a key below one that takes a value, such as steps.max."""
    names = key.split(".")
    above = (".".join(names[:depth]) for depth in range(1, len(names)))
    single = next((name for name in above if name in known and table_type(known[name]) is None), None)
    if single is None:
        return None
    return f"{key}: {single} takes a single value in this stage, not a table; write {single} = …"


def stage_mistake(stage: Any) -> str:
    *first, last = (f'"{name}"' for name in STAGES)
    stages = f"{', '.join(first)} or {last}"
    if stage is None:
        return (
            f"stage is missing; put stage = {stages} at the top of the file (`foresail simulate` needs none)"
        )
    near = get_close_matches(str(stage), STAGES, n=1)
    meant = other_stage(stage) or (f'did you mean "{near[0]}"?' if near else "choose one")
    return f"stage: there is no stage {show(stage)}; the stages are {stages}; {meant}"


def complaint(path: str | Path, mistakes: list[str]) -> RecipeError:
    if len(mistakes) == 1:
        return RecipeError(f"{path}: {mistakes[0]}")
    return RecipeError("\n".join([f"{path}: {len(mistakes)} mistakes", *(f"  {line}" for line in mistakes)]))
