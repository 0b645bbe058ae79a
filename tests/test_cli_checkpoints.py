"""Checkpoints of others, by commands: rotary positions that are stretched, and keys and code that are not ours."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from command_line import CommandLine

QUESTION = "7 +5 *3 -4"


def with_keys(checkpoint: Path, folder: Path, **changes: Any) -> dict[str, Any]:
    """A copy whose config.json says something else."""
    shutil.copytree(checkpoint, folder, ignore=shutil.ignore_patterns("trainer"))
    config = json.loads((folder / "config.json").read_text())
    for key in ("rope_parameters", "rope_scaling"):
        config.pop(key, None)
    (folder / "config.json").write_text(json.dumps(config | changes))
    return config | changes


@pytest.mark.parametrize("kind", ["yarn", "dynamic"])
def test_answers_are_longer_than_the_original_context(
    kind: str, foresail: CommandLine, tiny_checkpoint: Path, tmp_path: Path
) -> None:
    config = with_keys(tiny_checkpoint, tmp_path / "copy", rope_scaling={"type": kind, "factor": 4.0})
    longer = config["max_position_embeddings"] + 20
    told = ("generate", "copy", QUESTION, "--max-new-tokens")
    finished = foresail.run(*told, longer)
    assert finished.code == 0, finished.err
    if kind == "yarn":
        refused = foresail.run(*told, 4 * longer)
        assert refused.code and "exceed the model's context" in refused.err


def test_an_export_has_the_keys_and_the_code_that_came_with_the_checkpoint(
    foresail: CommandLine, tiny_checkpoint: Path, tmp_path: Path
) -> None:
    yarn = {"type": "yarn", "factor": 2.0, "original_max_position_embeddings": 64, "attn_factor": 0.9}
    more = {"auto_map": {"AutoConfig": "own.Config"}, "attention_dropout": 0.25, "rope_scaling": yarn}
    before = with_keys(tiny_checkpoint, tmp_path / "copy", **more)
    (tmp_path / "copy" / "own.py").write_text("class Config: ...\n")
    assert foresail.run("export", "copy", "out").code == 0
    after = json.loads((tmp_path / "out" / "config.json").read_text())
    assert {key: after[key] for key in ("auto_map", "attention_dropout")} == {
        key: before[key] for key in ("auto_map", "attention_dropout")
    }
    assert after["rope_scaling"] == yarn | {"rope_type": "yarn"}
    assert after["max_position_embeddings"] == before["max_position_embeddings"]
    assert (tmp_path / "out" / "own.py").read_text() == "class Config: ...\n"
