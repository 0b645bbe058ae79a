"""From a TOML file and `a.b=c` overrides to a recipe, or to one error that lists every mistake.

    load_recipe("recipes/rl-arithmetic.toml", ["run.name=demo", "optimizer.lr=1e-5", "eval=none"])

Relative paths inside a recipe stay as written: they count from the folder the command runs in.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin

from pydantic import ValidationError

from foresail.recipe.keys import hint, known_keys, leaves, table_type
from foresail.recipe.plain_words import in_plain_words
from foresail.recipe.stages import STAGES, Recipe, Stage

Table = TypeVar("Table", bound=Stage)


class RecipeError(ValueError):
    """A recipe cannot be used; the message lists what to mend, one mistake a line."""


def load_recipe(path: str | Path, overrides: Sequence[str] = ()) -> Recipe:
    """The recipe in a file, with the overrides laid over it."""
    given = read_toml(Path(path))
    settings, mistakes = split_overrides(overrides)
    stage_name = settings.get("stage", given.get("stage"))
    stage = STAGES.get(str(stage_name))
    if stage is None:
        raise complaint(path, [*mistakes, stage_mistake(stage_name)])
    return check_table(path, given, settings, mistakes, stage)


def load_table(path: str | Path, overrides: Sequence[str], kind: type[Table]) -> Table:
    """A file of another kind than a recipe, with overrides, checked in the same way."""
    given = read_toml(Path(path))
    return check_table(path, given, *split_overrides(overrides), kind)


def check_table(
    path: str | Path, given: dict[str, Any], settings: dict[str, str], mistakes: list[str], kind: type[Table]
) -> Table:
    """Lay the settings over what is given; a value of that kind, or one error with all mistakes."""
    known = dict(known_keys(kind))
    for key, text in settings.items():
        put(given, key, parse_value(text, known.get(key)))
    unknown = [key for key, _ in leaves(given) if key not in known]
    mistakes += [key_mistake(key, known) for key in unknown]
    try:
        table = kind.model_validate(without(given, unknown))
    except ValidationError as error:
        raise complaint(path, [*mistakes, *in_plain_words(error, kind, told=unknown)]) from None
    if mistakes:
        raise complaint(path, mistakes)
    return table


def read_toml(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8-sig")  # -sig: Windows editors put a mark before the first key
    except FileNotFoundError:
        near = get_close_matches(path.name, [found.name for found in path.parent.glob("*.toml")], n=1)
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


def parse_value(text: str, wanted: Any) -> Any:
    """A TOML value, `none`, or else plain text: "1e-5" -> 1e-5, "none" -> None, "demo" -> "demo".

    Where the key takes text, `run.name=2024` is the name "2024": a shell eats the quotes TOML would need.
    """
    if text == "none":
        return None
    try:
        parsed = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    value = parsed["value"] if len(parsed) == 1 else text
    takes_text = wanted is str or (str in get_args(wanted) and get_origin(wanted) is not tuple)
    return text if takes_text and not isinstance(value, str | dict) else value


def put(given: dict[str, Any], key: str, value: Any) -> None:
    """put({}, "run.seed", 1) makes {"run": {"seed": 1}}."""
    *tables, last = key.split(".")
    for name in tables:
        if not isinstance(given.get(name), dict):
            given[name] = {}
        given = given[name]
    given[last] = value


def without(given: dict[str, Any], unknown: Sequence[str], prefix: str = "") -> dict[str, Any]:
    """What is left, to be checked as well, when unknown keys and tables they leave empty are taken out."""
    left = {}
    for name, value in given.items():
        if isinstance(value, dict) and value:
            value = without(value, unknown, f"{prefix}{name}.")
            if value or not any(key.startswith(f"{prefix}{name}.") for key in unknown):
                left[name] = value
        elif prefix + name not in unknown:
            left[name] = value
    return left


def key_mistake(key: str, known: dict[str, Any]) -> str:
    names = key.split(".")
    for depth in range(1, len(names)):
        above = ".".join(names[:depth])
        if above in known and table_type(known[above]) is None:
            return f"{key}: {above} takes a single value in this stage, not a table; write {above} = …"
    return f"{key}: unknown key; {hint(key, list(known))}"


def stage_mistake(stage: Any) -> str:
    stages = " or ".join(f'"{name}"' for name in STAGES)
    if stage is None:
        return (
            f"stage is missing; put stage = {stages} at the top of the file (`foresail simulate` needs none)"
        )
    near = get_close_matches(str(stage), STAGES, n=1, cutoff=0.0)[0]
    return f'stage: there is no stage "{stage}"; the stages are {stages}; did you mean "{near}"?'


def complaint(path: str | Path, mistakes: list[str]) -> RecipeError:
    if len(mistakes) == 1:
        return RecipeError(f"{path}: {mistakes[0]}")
    return RecipeError("\n".join([f"{path}: {len(mistakes)} mistakes", *(f"  {line}" for line in mistakes)]))
