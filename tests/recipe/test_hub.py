"""Names of models on a hub, in the place of folders."""

from __future__ import annotations

from pathlib import Path

import huggingface_hub
import pytest

from foresail.evaluation.target import find_target
from foresail.recipe.hub import fetch, is_hub_name, with_local_models
from foresail.recipe.reading.load import build_recipe

RL = {"stage": "rl", "model": {"path": "Qwen/Qwen2.5-0.5B"}, "data": {"source": "a.jsonl"}, "steps": 3}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_folders_come_first(here: Path) -> None:
    assert is_hub_name("Qwen/Qwen2.5-0.5B") and not is_hub_name("Qwen2.5") and not is_hub_name("a/b/c")
    assert not is_hub_name("./Qwen/Qwen2.5-0.5B") and not is_hub_name("/Qwen/Qwen2.5-0.5B")
    (here / "checkpoints").mkdir()
    assert not is_hub_name("checkpoints/first") and fetch("checkpoints/first") == "checkpoints/first"


def test_a_name_becomes_the_folder_of_the_downloaded_files(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def download(name: str, *, allow_patterns: list[str]) -> str:
        asked.append((name, "*.safetensors" in allow_patterns, "*.bin" in allow_patterns))
        return f"/cache/{name}"

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    recipe = build_recipe(RL)
    assert with_local_models(recipe).model.path == "/cache/Qwen/Qwen2.5-0.5B"
    assert asked == [("Qwen/Qwen2.5-0.5B", True, False)]
    assert find_target(Path("Qwen/Qwen3-0.6B")).checkpoint == Path("/cache/Qwen/Qwen3-0.6B")
    local = recipe.model_copy(update={"model": recipe.model.model_copy(update={"path": "checkpoint"})})
    assert with_local_models(local) is local


def test_without_a_hub_one_line_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str, *, allow_patterns: list[str]) -> str:
        raise OSError("no route to host\nand a page of more")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fail)
    with pytest.raises(
        ValueError, match=r"the hub did not give it \(no route to host\); check the name"
    ) as error:
        fetch("Qwen/Qwen2.5-0.5B")
    assert "\n" not in str(error.value)
