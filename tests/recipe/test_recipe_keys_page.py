"""The page of all keys against the types it tells of: a key that is added, changed or gone shows here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from foresail.recipe.stages import STAGES

PAGE = (Path(__file__).parents[2] / "docs/recipe-keys.md").read_text(encoding="utf-8")


TABLES = ("eval", "curriculum", "critic", "lora")  # that may be left out, and have sections of their own


def plain_keys(table: type[BaseModel]) -> Iterator[tuple[str, object, str]]:
    """Keys that are no tables themselves: name, default, description."""
    for name, field in table.model_fields.items():
        if field.description is not None and not isinstance(field.default, BaseModel):
            yield name, field.default, field.description


@pytest.mark.parametrize("stage", STAGES)
def test_plain_keys_of_a_stage_are_on_the_page(stage):
    keys = [key for key in plain_keys(STAGES[stage]) if key[0] not in ("stage", *TABLES)]
    assert len(keys) > 5
    missing = [name for name, _, text in keys if f"| `{name}` |" not in PAGE or text not in PAGE]
    assert missing == []


@pytest.mark.parametrize("stage", STAGES)
def test_keys_of_its_tables_are_on_the_page(stage):
    wrong = []
    for table, field in STAGES[stage].model_fields.items():
        if not isinstance(field.default, BaseModel):
            continue
        for name, default, text in plain_keys(type(field.default)):
            row = next((line for line in PAGE.splitlines() if line.startswith(f"| `{table}.{name}` |")), None)
            if (table, name) == ("run", "name"):
                continue  # the stage's own name
            if row is None or text not in row:
                wrong.append(f"{table}.{name}")
            elif stage == "rl" and isinstance(default, bool | int | str) and default is not PydanticUndefined:
                of_stage = getattr(field.default, name)
                wrong += (
                    [] if f"`{json.dumps(of_stage)}`" in row or f"`{json.dumps(default)}`" in row else [row]
                )
    assert wrong == []
