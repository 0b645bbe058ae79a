"""The recipes, and the step, in the pages on curation are ones that load."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from foresail.curate.document import Document, Drop
from foresail.curate.recipe import build_curation
from foresail.curate.rows.holds import ANY, DOCUMENTS
from foresail.curate.steps import STEPS, step_type

DOCS = Path(__file__).parents[2] / "docs"
NAMED_FILES = (
    "blacklists/adult/domains",
    "blacklists/adult/urls",
    "badwords",
    "eval/a.parquet",
    "gsm8k/test.jsonl.gz",
    "mgsm/th.tsv.xz",
)


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


def recipes() -> list[Any]:
    """Tables of a curation; a part of one gets a source and a folder."""
    tables = [
        (page.name, tomllib.loads(text))
        for page in sorted(DOCS.glob("*.md"))
        for text in blocks(page, "toml")
    ]
    return [
        pytest.param({"out": "curated", "source": [source_of(table)], **table}, id=f"{name}-{number}")
        for number, (name, table) in enumerate(tables)
        if {"step", "source", "sink", "mixture"} & table.keys()
    ]


def source_of(table: Mapping[str, Any]) -> dict[str, str]:
    """Of what the first step takes, where it is not every kind."""
    names = [step["name"] for step in table.get("step", ()) if step["name"] in STEPS]
    takes = [getattr(step_type(name), "takes", DOCUMENTS) for name in names]
    holds = next((kinds[0] for kinds in takes if kinds != ANY), "documents")
    return {"path": "a.jsonl", "holds": holds}


@pytest.mark.parametrize("table", recipes())
def test_recipes_of_the_pages_load(
    table: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("numba", reason="the extra curate is not installed")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cleaning.py").write_text(blocks(DOCS / "curate.md", "python")[0])
    for name in NAMED_FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    build_curation(table, "page.toml", [])


def test_the_step_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba", reason="the extra curate is not installed")
    monkeypatch.chdir(tmp_path)
    page = DOCS / "curate.md"
    (tmp_path / "cleaning.py").write_text(blocks(page, "python")[0])
    recipe = build_curation(tomllib.loads(blocks(page, "toml")[0]), "web.toml", ["step#3.least=5"])
    own = recipe.steps[2].settings.open()
    assert isinstance(own(Document(id="a", text="12345")), Document)
    assert own(Document(id="a", text="1")) == Drop("too_short", "1 characters")
