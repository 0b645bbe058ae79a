"""What a checkpoint holds that is not used here is there again when it is saved."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_models import CONFIGS, LLAMA3_ROPE, random_model
from transformers import AutoConfig

from foresail.model.decoder import Decoder
from foresail.model.hf import build_model, load_model, save_model
from foresail.model.merge import merge
from foresail.recipe.shape.hf_config import config_from_shape, shape_from_config
from foresail.recipe.shape.hf_files import ModelConfig
from foresail.recipe.shape.hf_unused import Unused
from foresail.recipe.shape.model_shape import ModelShape
from foresail.train.checkpoints.extend_mtp import extend

MIMO = ModelShape(
    family="qwen2",
    vocab_size=11,
    hidden_size=8,
    intermediate_size=8,
    num_layers=1,
    num_heads=2,
    num_kv_heads=1,
    head_dim=4,
    max_context=16,
    qkv_bias=True,
    mtp=1,
)
AUTO_MAP = {
    "AutoConfig": "configuration_mimo.MiMoConfig",
    "AutoModelForCausalLM": "modeling_mimo.MiMoForCausalLM",
}
CODE = {
    "configuration_mimo.py": "class MiMoConfig: ...\n",
    "modeling_mimo.py": "from .configuration_mimo import *\n",
}

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=4,
)


def load(folder: Path, **options: Any) -> Decoder:
    return load_model(folder, dtype=torch.float32, device="cpu", **options)


def edit(folder: Path, **changes: Any) -> dict[str, Any]:
    config = json.loads((folder / "config.json").read_text()) | changes
    (folder / "config.json").write_text(json.dumps(config))
    return config


@pytest.fixture
def mimo(tmp_path: Path) -> Path:
    """As it comes from a hub: with code of its own, and keys that only this code reads."""
    save_model(build_model(MIMO, seed=0), tmp_path / "mimo")
    edit(tmp_path / "mimo", auto_map=AUTO_MAP, attention_dropout=0.0)
    for name, text in CODE.items():
        (tmp_path / "mimo" / name).write_text(text)
    return tmp_path / "mimo"


def test_mimo_keeps_its_code(mimo: Path, tmp_path: Path) -> None:
    source = mimo
    for name in ("once", "twice"):
        save_model(load(source), tmp_path / name)
        source = tmp_path / name
        config = json.loads((source / "config.json").read_text())
        assert (config["auto_map"], config["attention_dropout"]) == (AUTO_MAP, 0.0)
        assert {file.name: file.read_text() for file in source.glob("*.py")} == CODE
        assert (source / "config.json").stat().st_mode == (source / "modeling_mimo.py").stat().st_mode


def test_a_mean_and_more_mtp_layers_keep_it_too(mimo: Path, tiny_tokenizer: Path, tmp_path: Path) -> None:
    merge([mimo, mimo], tmp_path / "mean")
    for file in tiny_tokenizer.glob("tokenizer*"):
        shutil.copy(file, mimo)
    extend(mimo, tmp_path / "more", layers=2)
    for name in ("mean", "more"):
        assert json.loads((tmp_path / name / "config.json").read_text())["auto_map"] == AUTO_MAP
        assert {file.name: file.read_text() for file in (tmp_path / name).glob("*.py")} == CODE


def test_code_does_not_go_with_another_model(mimo: Path, tmp_path: Path) -> None:
    """Without MTP layers MiMo is a Qwen2, as a reward model of another class: neither is what the code builds."""
    others = {"qwen2": load(mimo, mtp_layers=0), "reward model": load(mimo, scores=True)}
    for name, model in others.items():
        save_model(model, tmp_path / name)
        config = json.loads((tmp_path / name / "config.json").read_text())
        assert "auto_map" not in config and config["attention_dropout"] == 0.0
        assert not [*(tmp_path / name).glob("*.py")]


def test_code_without_its_files_and_files_without_code(mimo: Path, tmp_path: Path) -> None:
    """Nothing is fetched, and a script that happens to lie there is not the model's."""
    (mimo / "modeling_mimo.py").unlink()
    save_model(load(mimo), tmp_path / "fewer")
    assert [file.name for file in (tmp_path / "fewer").glob("*.py")] == ["configuration_mimo.py"]
    config = json.loads((mimo / "config.json").read_text())
    del config["auto_map"]
    (mimo / "config.json").write_text(json.dumps(config))
    save_model(load(mimo), tmp_path / "none")
    assert not [*(tmp_path / "none").glob("*.py")]


@pytest.mark.parametrize("name", ["llama tied", "llama3 rope", "qwen2", "qwen3_moe", "ernie4_5_moe"])
def test_keys_that_transformers_writes_and_we_do_not_read(name: str, tmp_path: Path) -> None:
    random_model(name).save_pretrained(tmp_path / "theirs")
    before = edit(tmp_path / "theirs", initializer_range=0.123, my_own={"a": [1, None]})
    save_model(load(tmp_path / "theirs"), tmp_path / "ours")
    after = json.loads((tmp_path / "ours" / "config.json").read_text())
    unread = before.keys() - ModelConfig.model_fields.keys() - {"dtype"}
    assert len(unread) > 3
    assert {key: after[key] for key in unread} == {key: before[key] for key in unread}
    assert "dtype" not in after and after["torch_dtype"] == "float32"
    again = AutoConfig.from_pretrained(tmp_path / "ours")
    assert (again.initializer_range, again.my_own) == (0.123, {"a": [1, None]})


@settings(max_examples=40)
@given(st.dictionaries(st.text(max_size=8), values, max_size=4), st.dictionaries(st.text(max_size=8), values))
def test_any_unknown_key_survives_and_changes_nothing(
    keys: dict[str, Any], rope_keys: dict[str, Any]
) -> None:
    plain = CONFIGS["llama"]().to_dict() | {"rope_parameters": LLAMA3_ROPE}
    shape = shape_from_config(plain)
    source = keys | plain | {"rope_parameters": rope_keys | LLAMA3_ROPE}
    saved = config_from_shape(shape, dtype="bfloat16", unused=Unused(config=source))
    ours = config_from_shape(shape, dtype="bfloat16")
    assert shape_from_config(saved) == shape
    assert {key: saved[key] for key in keys if key not in ours and key not in ModelConfig.model_fields} == {
        key: source[key] for key in keys if key not in ours and key not in ModelConfig.model_fields
    }
    assert saved["rope_parameters"] == source["rope_parameters"]
    assert {key: saved[key] for key in ours if not key.startswith("rope_")} == {
        key: ours[key] for key in ours if not key.startswith("rope_")
    }
