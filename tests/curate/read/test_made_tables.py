"""Rows that a generator makes from a table: pieces give the same rows, and another table is another curation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from shop_tables import write_table

from foresail.curate.curation import curate
from foresail.curate.read.source import list_pieces
from foresail.curate.recipe import CurationRecipe, build_curation
from foresail.curate.run.plan import plan_of
from foresail.data.problems.problems import load_problems
from foresail.recipe.tables.parts import Problems
from foresail.rewards.structured.grade import grade


def recipe(tmp_path: Path, source: str) -> CurationRecipe:
    return build_curation(
        {
            "out": str(tmp_path / "out"),
            "source": [{"path": source, "holds": "problems"}],
            "sink": [{"compression": "none"}],
        }
    )


def test_a_curation_of_made_rows_and_another_table(tmp_path: Path) -> None:
    table = write_table(tmp_path / "shop.csv", seed=1)
    source = f"shop-tasks:table={table},count=1100,seed=1,tasks=matching+reviews,languages=en"
    first = recipe(tmp_path, source)
    pieces = list_pieces(first.curation.source[0])
    assert [(piece.start, piece.stop) for piece in pieces] == [(0, 1000), (1000, 1100)]
    before = json.dumps(plan_of(first, pieces))
    curate(first)
    (written,) = (tmp_path / "out" / "documents").iterdir()
    problems = load_problems(Problems(source=str(written)))
    made = load_problems(Problems(source=source))
    assert [(one.id, one.prompt, one.answer) for one in problems] == [
        (one.id, one.prompt, one.answer) for one in made
    ]
    assert all(grade(one, one.answer).status == "correct" for one in problems[:50])
    write_table(table, seed=2)
    assert json.dumps(plan_of(first, pieces)) != before
    with pytest.raises(ValueError, match="was begun with other content of"):
        curate(recipe(tmp_path, source))
