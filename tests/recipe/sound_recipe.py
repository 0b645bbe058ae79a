"""A recipe the preflight finds nothing wrong with, in a folder of its own, and what it refuses after a change."""

import json
from pathlib import Path

import pytest

from foresail.recipe.reading.load import load_recipe
from foresail.recipe.reading.preflight import Preflight, preflight
from foresail.recipe.stages.stage import Stage

CONFIG = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 100, "hidden_size": 16,
    "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "max_position_embeddings": 64, "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "tie_word_embeddings": True,
}  # fmt: skip


@pytest.fixture(autouse=True)
def in_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_model(tmp_path / "model")
    Path("problems.jsonl").write_text('{"prompt": "1+1", "answer": "2"}\n' * 40)


def write_model(folder: Path) -> None:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG))
    write_safetensors(folder / "model.safetensors")
    vocab = {str(number): number for number in range(98)}
    added = [{"id": 98, "content": "<s>"}, {"id": 99, "content": "</s>"}]
    (folder / "tokenizer.json").write_text(json.dumps({"model": {"vocab": vocab}, "added_tokens": added}))


def write_safetensors(file: Path) -> None:
    header = json.dumps({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
    file.write_bytes(len(header).to_bytes(8, "little") + header + bytes(8))


def make(*overrides: str, stage: str = "rl") -> Stage:
    common = f'stage = "{stage}"\nsteps = 10\nmicro_batch_tokens = 128\n'
    rl = "prompts_per_step = 8\nsamples_per_prompt = 4\nmax_prompt_tokens = 20\n"
    rl += '[data]\nsource = "problems.jsonl"\n'
    rl += "[sampling]\nmax_new_tokens = 40\n[engine]\nmax_running = 8\n"
    sft = 'data = "problems.jsonl"\nmax_length = 60\nbatch_size = 10\n'
    Path("recipe.toml").write_text(
        common + (rl if stage == "rl" else sft) + '[run]\ndevice = "cpu"\n[model]\npath = "model"\n'
    )
    return load_recipe("recipe.toml", overrides)


def check(*overrides: str, stage: str = "rl") -> Preflight:
    return preflight(make(*overrides, stage=stage))


def only_refusal(*overrides: str, stage: str = "rl") -> str:
    refusals = check(*overrides, stage=stage).refusals
    assert len(refusals) == 1, refusals
    return refusals[0]
