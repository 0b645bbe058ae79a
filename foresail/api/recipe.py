"""A recipe from a file, a dict, another recipe, keywords, or several of these."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from foresail.recipe.reading.load import RecipeError, build_recipe, check_stage, read_toml
from foresail.recipe.reading.overrides import put
from foresail.recipe.stages.stage import Stage


def load_recipe(source: str | Path | Mapping[str, Any] | Stage | None = None, /, **settings: Any) -> Stage:
    """load_recipe("recipes/rl-arithmetic.toml", steps=50, optimizer={"lr": 1e-5}).

    A keyword is a key of the recipe: a table as a dict, or one key of it with two underscores in the place of the
    dot (`optimizer__lr=1e-5`). Keywords count more than the source, and leave the rest of its tables alone; None
    unsets a key.
    """
    table, name = read_source(source)
    return finish_recipe(table, settings, name)


def finish_recipe(table: dict[str, Any], settings: Mapping[str, Any], name: str) -> Stage:
    """The recipe of a table, overridden by the settings; `name` is for messages."""
    table = table | ({"stage": settings["stage"]} if "stage" in settings else {})
    kind = check_stage(table.get("stage"), name)
    for key, value in settings.items():
        lay_over(table, key.replace("__", "."), plain(value), kind)
    return build_recipe(table, name)


def read_source(source: str | Path | Mapping[str, Any] | Stage | None) -> tuple[dict[str, Any], str]:
    """Its tables as nested dicts, and its name in messages."""
    if isinstance(source, str | Path):
        return read_toml(Path(source)), str(source)
    if isinstance(source, Stage):
        return plain(source.model_dump()), f"{source.stage} recipe"
    if source is not None and not isinstance(source, Mapping):
        raise RecipeError(f"recipe is a {type(source).__name__}; give a TOML file, a dict, or a recipe")
    return plain(dict(source or {})), "recipe"


def lay_over(table: dict[str, Any], key: str, value: Any, kind: type[Stage]) -> None:
    """Set a key; a dict sets only its own keys of a table, except that a new data source replaces the table."""
    if isinstance(value, dict) and value and "source" not in value:
        for name, inner in value.items():
            lay_over(table, f"{key}.{name}", inner, kind)
    else:
        put(table, key, value, kind)


def plain(value: Any) -> Any:
    """Paths as text and tables as dicts, as TOML would have them."""
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "model_dump"):
        return value.model_dump()
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    return value
