"""From the table [environment] to tools and environments."""

from __future__ import annotations

from pathlib import Path

import pytest

from foresail.agents.factory import load_environment, load_named
from foresail.agents.multi_hop import MultiHop
from foresail.recipe.tables.environment import Environment


def test_a_corpus_is_a_file_or_a_search_server() -> None:
    server = Environment(tools=("search",), corpus="http://localhost:1")
    assert load_named("search", server).name == "search"
    assert [*server.refusals()] == []
    absent = Environment(tools=("search",), corpus="nowhere.jsonl")
    assert "nowhere.jsonl does not exist" in next(absent.refusals())


def test_environments_by_name(tmp_path: Path) -> None:
    assert load_environment("multi-hop") is MultiHop
    (tmp_path / "own.py").write_text("class Half:\n    def reset(self, problem): ...\n")
    with pytest.raises(ValueError, match="no class Half with the methods reset, step, close"):
        load_environment(f"{tmp_path}/own.py:Half")
