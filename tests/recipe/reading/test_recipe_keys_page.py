"""The page of all keys against the types it tells of: a key that is added, changed or gone shows here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from foresail.recipe.keys import item_type, one_or_more
from foresail.recipe.shape.model_shape import Experts, Family, ModelShape
from foresail.recipe.shape.rope import RopeScaling
from foresail.recipe.stages.table import STAGES, recipe_type
from foresail.recipe.tables.environment import Environment
from foresail.recipe.tables.long_context import LongContext
from foresail.recipe.tables.reward import Term
from foresail.recipe.tables.tools import McpServer, PythonTool, SearchTool

PAGE = (Path(__file__).parents[3] / "docs/recipe-keys.md").read_text(encoding="utf-8")


TABLES = (
    "data",
    "eval",
    "curriculum",
    "critic",
    "environment",
    "lora",
    "router",
    "mtp",
    "teacher",
)  # that may be left out, and have sections of their own


def plain_keys(table: type[BaseModel]) -> Iterator[tuple[str, object, str]]:
    """Keys that are no tables themselves: name, default, description."""
    for name, field in table.model_fields.items():
        if field.description is not None and not isinstance(field.default, BaseModel):
            yield name, field.default, field.description


@pytest.mark.parametrize("stage", STAGES)
def test_plain_keys_of_a_stage_are_on_the_page(stage):
    keys = [key for key in plain_keys(recipe_type(stage)) if key[0] not in ("stage", *TABLES)]
    assert len(keys) >= 5
    missing = [name for name, _, text in keys if f"| `{name}` |" not in PAGE or text not in PAGE]
    assert missing == []


@pytest.mark.parametrize(
    ("table", "prefix"), [(ModelShape, ""), (Experts, "experts."), (RopeScaling, "rope_scaling.")]
)
def test_keys_of_a_shape_are_on_the_page(table: type[BaseModel], prefix: str) -> None:
    for name, default, text in plain_keys(table):
        if name in ("experts", "rope_scaling"):
            continue  # tables of their own
        said = "required" if default is PydanticUndefined else f"`{json.dumps(default)}`"
        said = "none" if default is None else said
        assert f"| `model.shape.{prefix}{name}` | {said} | {text}" in PAGE
    assert all(f"`{family}`" in PAGE for family in get_args(Family))


@pytest.mark.parametrize("stage", STAGES)
def test_keys_of_sources_are_on_the_page(stage):
    keys = [
        (f"{name}.{key}", text)
        for name, field in recipe_type(stage).model_fields.items()
        if one_or_more(field)
        for key, _, text in plain_keys(item_type(field.annotation))
    ]
    assert len(keys) >= 6
    rows = [line.replace("`data.", "`eval.") for line in PAGE.splitlines()] + PAGE.splitlines()
    assert [key for key, text in keys if not any(f"| `{key}` |" in row and text in row for row in rows)] == []


@pytest.mark.parametrize("stage", STAGES)
def test_keys_of_its_tables_are_on_the_page(stage):
    wrong = []
    for table, field in recipe_type(stage).model_fields.items():
        if not isinstance(field.default, BaseModel):
            continue
        for name, default, text in plain_keys(type(field.default)):
            rows = [line for line in PAGE.splitlines() if line.startswith(f"| `{table}.{name}` |")]
            row = next((line for line in rows if text in line), None)  # a table's keys may differ by stage
            if (table, name) == ("run", "name"):
                continue  # the stage's own name
            if row is None:
                wrong.append(f"{table}.{name}")
            elif stage == "rl" and isinstance(default, bool | int | str) and default is not PydanticUndefined:
                of_stage = getattr(field.default, name)
                wrong += (
                    [] if f"`{json.dumps(of_stage)}`" in row or f"`{json.dumps(default)}`" in row else [row]
                )
    assert wrong == []


def test_keys_of_an_environment_are_on_the_page():
    missing = [
        name
        for name, _, text in plain_keys(Environment)
        if f"| `environment.{name}` |" not in PAGE or text not in PAGE
    ]
    assert missing == []


def test_keys_of_long_contexts_are_on_the_page():
    missing = [
        name
        for name, _, text in plain_keys(LongContext)
        if not any(
            line.startswith(f"| `long_context.{name}` |") and text in line for line in PAGE.splitlines()
        )
    ]
    assert missing == []


def test_options_of_tools_are_on_the_page():
    for prefix, table in (
        ("environment.search", SearchTool),
        ("environment.python", PythonTool),
        ("environment.mcp", McpServer),
    ):
        rows = [line for line in PAGE.splitlines() if line.startswith(f"| `{prefix}.")]
        for name, _, text in plain_keys(table):
            assert any(row.startswith(f"| `{prefix}.{name}` |") and text in row for row in rows), (
                prefix,
                name,
            )


def test_keys_of_a_reward_term_are_on_the_page():
    rows = [
        line.split("|") for line in PAGE.partition("## [[reward.terms]]")[2].partition("## ")[0].splitlines()
    ]
    told = {row[1].strip(): row[3].strip() for row in rows if len(row) > 3}
    for name, _, text in plain_keys(Term):
        assert told[f"`{name}`"] == text
