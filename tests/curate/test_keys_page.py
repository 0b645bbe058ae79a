"""docs/curate-keys.md against the types it is made from."""

from __future__ import annotations

from pathlib import Path

import pytest

from foresail.curate.keys_page import keys_page
from foresail.curate.recipe import Curation
from foresail.curate.steps import STEPS, step_type

PAGE = Path(__file__).parents[2] / "docs" / "curate-keys.md"


def test_the_page_is_what_the_types_say() -> None:
    written = PAGE.read_text(encoding="utf-8")
    assert written == keys_page(), "run: python -m foresail.curate.keys_page > docs/curate-keys.md"


@pytest.mark.parametrize("name", sorted(STEPS))
def test_every_key_of_a_step_is_described(name: str) -> None:
    assert (step_type(name).__doc__ or "").strip()
    for key, field in step_type(name).model_fields.items():
        assert field.description, f"{name}.{key} has no description"


def test_top_keys_are_on_the_page() -> None:
    rows = keys_page().split("## [[source]]")[0]
    assert "| `out` | required |" in rows and "| `seed` | `0` |" in rows
    assert {*Curation.model_fields} == {"source", "sink", "mixture", "cluster"} | {
        line.split("`")[1] for line in rows.splitlines() if line.startswith("| `")
    }
