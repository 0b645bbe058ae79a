"""The recipe and the step in docs/curate.md are ones that load."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from foresail.curate.document import Document, Drop
from foresail.curate.recipe import build_curation

PAGE = (Path(__file__).parents[2] / "docs" / "curate.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return found[1]


def test_the_recipe_of_the_page_loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba", reason="the extra curate is not installed")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cleaning.py").write_text(block("python"))
    recipe = build_curation(tomllib.loads(block("toml")), "web.toml", ["step#3.least=5"])
    own = recipe.steps[2].settings.open()
    assert isinstance(own(Document(id="a", text="12345")), Document)
    assert own(Document(id="a", text="1")) == Drop("too_short", "1 characters")
