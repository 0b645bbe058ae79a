"""From a TOML file and `a.b=c` overrides to a recipe, or to one error that lists every mistake.

    load_recipe("recipes/rl-arithmetic.toml", ["run.name=demo", "optimizer.lr=1e-5", "eval=none"])

Relative paths inside a recipe stay as written: they count from the folder the command runs in.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from foresail.recipe.elsewhere import sentence_for_value
from foresail.recipe.keys import hint, key_type, known_keys, leaves, one_or_more, table_type
from foresail.recipe.parts import Part
from foresail.recipe.stage import Stage
from foresail.recipe.stages import STAGES, recipe_type
from foresail.recipe.validation_errors import explain_errors, show

# LaTeX commands that begin with n, without it
LATEX = "abla|cong|e|earrow|eg|eq|ewline|exists|geq|i|leq|mid|onumber|ot|otin|parallel|rightarrow|u|warrow"
NEWLINE = re.compile(rf"\\\\n|\\n(?!(?:{LATEX})(?![A-Za-z]))")
Table = TypeVar("Table", bound=Part)
BEYOND = 2**63  # as TOML has it: whole numbers have 64 bits


class RecipeError(ValueError):
    """A recipe cannot be used; the message lists what to mend, one mistake a line."""


def load_recipe(path: str | Path, overrides: Sequence[str] = ()) -> Stage:
    """The recipe in a file, with the overrides laid over it."""
    given = read_toml(Path(path))
    settings, mistakes = split_overrides(overrides)
    stage_name = settings.get("stage", given.get("stage"))
    if str(stage_name) not in STAGES:
        raise complaint(path, [*mistakes, stage_mistake(stage_name)])
    return check_table(path, given, settings, mistakes, recipe_type(str(stage_name)))


def build_recipe(given: dict[str, Any], name: str = "recipe") -> Stage:
    """The recipe that nested dicts describe, as TOML would; `name` is what to call it in messages."""
    return check_table(name, given, {}, [], check_stage(given.get("stage"), name))


def check_stage(stage: Any, name: str) -> type[Stage]:
    """The type of recipes of that stage."""
    if str(stage) not in STAGES:
        raise complaint(name, [stage_mistake(stage)])
    return recipe_type(str(stage))


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
        try:
            put(given, key, parse_value(text, known.get(re.sub(r"#\d+", "", key))), kind)
        except ValueError as error:
            mistakes.append(str(error))
    if huge := [*huge_numbers(given)]:
        raise complaint(path, [*mistakes, *huge])
    unknown = [key for key, _ in leaves(given) if key not in known]
    mistakes += [key_mistake(key, value, known) for key, value in leaves(given) if key not in known]
    try:
        table = kind.model_validate(without(given, unknown))
    except ValidationError as error:
        raise complaint(path, [*mistakes, *explain_errors(error, kind, given, told=unknown)]) from None
    if mistakes:
        raise complaint(path, mistakes)
    return table


def huge_numbers(given: Any, key: str = "") -> Iterator[str]:
    """Mistakes of whole numbers that no count comes near, and that neither torch nor a float could hold."""
    if isinstance(given, dict):
        for name, value in given.items():
            yield from huge_numbers(value, f"{key}.{name}" if key else name)
    elif isinstance(given, list | tuple):
        for number, value in enumerate(given, start=1):
            yield from huge_numbers(value, f"{key}#{number}")
    elif isinstance(given, int) and not -BEYOND <= given < BEYOND:
        yield f"{key} must fit 64 bits, which {show(given)} does not; set it lower"


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
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, lists in lists in …
        raise RecipeError(f"{path} cannot be read: {error}") from None


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
    except (ValueError, RecursionError):  # no TOML, or nothing that it could hold
        return with_newlines(text)
    value = parsed["value"] if len(parsed) == 1 else text
    takes_text = wanted is str or (str in get_args(wanted) and get_origin(wanted) is not tuple)
    return with_newlines(text) if takes_text and not isinstance(value, str | dict) else value


def with_newlines(text: str) -> str:
    r"""A shell passes on \n as two characters: r"\nThink." -> a new line and "Think.".

    LaTeX commands that begin so (\neq, \nu, …) stay, and \\n is a backslash and an n.
    """
    return NEWLINE.sub(lambda found: "\n" if found[0] == r"\n" else r"\n", text)


def put(given: dict[str, Any], key: str, value: Any, kind: type[Part]) -> None:
    """put({}, "run.seed", 1, Rl) makes {"run": {"seed": 1}}; "data#2.weight" means the second [[data]]."""
    *tables, last = key.split(".")
    inner: type[BaseModel] | None = kind
    for table in tables:
        name, number, place = table.partition("#")
        field = inner.model_fields.get(name) if inner is not None else None
        given = open_table(given, name, int(place) if number and place.isdigit() else None, field)
        inner = table_type(key_type(field)) if field is not None else None
    given[last] = value


def open_table(
    given: dict[str, Any], name: str, number: int | None, field: FieldInfo | None
) -> dict[str, Any]:
    """The table to put into, made where there is none; of several under one name, that number."""
    there = given.get(name)
    if isinstance(there, list) and there and all(isinstance(entry, dict) for entry in there):
        if number is None and len(there) > 1:
            raise ValueError(
                f"there are {len(there)} tables [[{name}]]; say which: {name}#1 to {name}#{len(there)}"
            )
        if not 1 <= (number or 1) <= len(there):
            raise ValueError(f"{name}#{number}: there are {len(there)} tables [[{name}]]")
        found: dict[str, Any] = there[(number or 1) - 1]
        return found
    several = one_or_more(field) if field is not None else None
    if isinstance(there, str) and several is not None and several.short is not None:
        given[name] = {several.short: there}
    elif not isinstance(there, dict):
        given[name] = {}
    table: dict[str, Any] = given[name]
    return table


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


def key_mistake(key: str, value: Any, known: dict[str, Any]) -> str:
    names = key.split(".")
    for depth in range(1, len(names)):
        above = ".".join(names[:depth])
        if above in known and table_type(known[above]) is None:
            return f"{key}: {above} takes a single value in this stage, not a table; write {above} = …"
    return f"{key}: unknown key; {hint(key, list(known), value)}"


def stage_mistake(stage: Any) -> str:
    *first, last = (f'"{name}"' for name in STAGES)
    stages = f"{', '.join(first)} or {last}"
    if stage is None:
        return (
            f"stage is missing; put stage = {stages} at the top of the file (`foresail simulate` needs none)"
        )
    near = get_close_matches(str(stage), STAGES, n=1)
    meant = sentence_for_value("stage", stage) or (f'did you mean "{near[0]}"?' if near else "choose one")
    return f"stage: there is no stage {show(stage)}; the stages are {stages}; {meant}"


def complaint(path: str | Path, mistakes: list[str]) -> RecipeError:
    if len(mistakes) == 1:
        return RecipeError(f"{path}: {mistakes[0]}")
    return RecipeError("\n".join([f"{path}: {len(mistakes)} mistakes", *(f"  {line}" for line in mistakes)]))
