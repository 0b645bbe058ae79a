"""Hugging Face directories in and out, with transformers as the judge."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from small_models import CONFIGS, SIZES, packed_logits, random_ids, random_model, scramble
from transformers import AutoConfig, AutoModelForCausalLM, GenerationConfig, LlamaConfig

from foresail.model.decoder import Decoder
from foresail.model.hf import build_model, load_model, save_model
from foresail.recipe.shape.hf_config import SpecialIds, read_shape, read_special_ids, shape_from_config

IDS = random_ids(50)


def load(directory) -> Decoder:
    return load_model(directory, dtype=torch.float32, device="cpu")


@torch.no_grad()
def assert_same_logits(ours: Decoder, theirs) -> None:
    expected = theirs(IDS[None]).logits[0]
    assert expected.std() > 0.3  # else the tolerance would mean nothing
    torch.testing.assert_close(packed_logits(ours, [IDS]), expected, atol=1e-4, rtol=0)


@pytest.mark.parametrize("shard", ["1GB", "10KB"])
@pytest.mark.parametrize("name", CONFIGS)
def test_what_transformers_saves_gives_the_same_logits_here(name, shard, tmp_path):
    theirs = random_model(name)
    theirs.save_pretrained(tmp_path, max_shard_size=shard)
    assert (tmp_path / "model.safetensors.index.json").exists() == (shard == "10KB")
    assert_same_logits(load(tmp_path), theirs)


def test_mimo_can_be_read_without_its_mtp_layers(tmp_path):
    """Its blocks are Qwen2's; what we save is a Qwen2."""
    theirs = random_model("qwen2")
    theirs.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    names = {"model_type": "mimo", "architectures": ["MiMoForCausalLM"], "num_nextn_predict_layers": 1}
    (tmp_path / "config.json").write_text(json.dumps(config | names))
    weights = load_file(tmp_path / "model.safetensors")
    more = {
        f"model.mtp_layers.0.{name}": torch.ones(4)
        for name in ("input_proj.weight", "token_layernorm.weight")
    }
    save_file(weights | more, tmp_path / "model.safetensors", metadata={"format": "pt"})
    ours = load_model(tmp_path, dtype=torch.float32, device="cpu", mtp_layers=0)
    assert_same_logits(ours, theirs)
    save_model(ours, tmp_path / "ours")
    assert_same_logits(ours, AutoModelForCausalLM.from_pretrained(tmp_path / "ours"))


@pytest.mark.parametrize("max_shard_bytes", [10**9, 10_000])
@pytest.mark.parametrize("name", CONFIGS)
def test_what_we_save_gives_the_same_logits_in_transformers(name, max_shard_bytes, tmp_path):
    random_model(name).save_pretrained(tmp_path / "theirs")
    ours = load(tmp_path / "theirs")
    save_model(ours, tmp_path / "ours", max_shard_bytes=max_shard_bytes)
    theirs, notes = AutoModelForCausalLM.from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not notes["missing_keys"] and not notes["unexpected_keys"] and not notes["mismatched_keys"]
    assert theirs.dtype == torch.float32
    assert_same_logits(ours, theirs)


@pytest.mark.parametrize("name", CONFIGS)
def test_the_shape_survives_the_round_trip_and_counts_its_parameters(name, tmp_path):
    theirs = random_model(name)
    theirs.save_pretrained(tmp_path / "theirs")
    shape = read_shape(tmp_path / "theirs")
    ours = build_model(shape, seed=0)
    save_model(ours, tmp_path / "ours")
    assert read_shape(tmp_path / "ours") == shape
    assert shape.num_parameters == theirs.num_parameters() == sum(p.numel() for p in ours.parameters())


@pytest.mark.parametrize("name", ["llama", "llama3 rope"])
def test_rope_is_read_from_the_keys_of_transformers_4_and_of_5_alone(name, tmp_path):
    random_model(name).save_pretrained(tmp_path / "theirs")
    shape = read_shape(tmp_path / "theirs")
    save_model(build_model(shape, seed=0), tmp_path / "ours")
    config = json.loads((tmp_path / "ours" / "config.json").read_text())
    for_4 = {key: value for key, value in config.items() if key != "rope_parameters"}
    for_5 = {key: value for key, value in config.items() if key not in ("rope_theta", "rope_scaling")}
    assert shape_from_config(for_4) == shape_from_config(for_5) == shape
    assert shape_from_config(for_4 | {"rope_theta": 123.0}).rope_theta == 123.0


@pytest.mark.parametrize("name", ["llama3 rope", "qwen2", "qwen3"])
def test_bfloat16_survives_save_and_load_bit_for_bit(name, tmp_path):
    random_model(name).save_pretrained(tmp_path / "theirs")
    model = load_model(tmp_path / "theirs", dtype=torch.bfloat16, device="cpu")
    save_model(model, tmp_path / "ours", max_shard_bytes=10_000)
    for file in (tmp_path / "ours").glob("*.safetensors"):
        assert {tensor.dtype for tensor in load_file(file).values()} == {torch.bfloat16}
    again = load_model(tmp_path / "ours", dtype=torch.bfloat16, device="cpu")
    for parameter, same in zip(model.parameters(), again.parameters(), strict=True):
        assert parameter.dtype == torch.bfloat16 and torch.equal(parameter, same)
    assert torch.equal(model.cos, again.cos) and model.cos.dtype == torch.float32
    assert AutoConfig.from_pretrained(tmp_path / "ours").dtype == torch.bfloat16


@pytest.mark.parametrize("tied", [True, False])
def test_the_padding_tokens_row_learns_as_any_other(tied, tmp_path):
    """By finite differences, where `<|im_end|>` pads and ends turns. transformers gives no gradient to that row."""
    config = LlamaConfig(**SIZES | {"pad_token_id": 2}, tie_word_embeddings=tied)
    theirs = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    scramble(theirs)
    theirs.save_pretrained(tmp_path)
    ours, ids = load(tmp_path), IDS.clone()
    ids[[9, 19, 29, 49]] = 2
    rows = ours.embed.weight

    def loss_of(logits):
        return torch.nn.functional.cross_entropy(logits[:-1], ids[1:])

    loss_of(packed_logits(ours, [ids])).backward()
    loss_of(theirs(ids[None]).logits[0]).backward()
    others = torch.arange(len(rows)) != 2
    expected = theirs.get_input_embeddings().weight.grad
    torch.testing.assert_close(rows.grad[others], expected[others], atol=1e-6, rtol=0)
    assert (rows.grad[2] - expected[2]).norm() > 0.5 * rows.grad[2].norm()
    for direction in torch.randn(3, rows.shape[1], generator=torch.Generator().manual_seed(0)):
        found = []
        with torch.no_grad():
            for step in (1e-3, -1e-3):
                rows[2] += step * direction
                found.append(loss_of(packed_logits(ours, [ids])))
                rows[2] -= step * direction
        slope = (found[0] - found[1]) / 2e-3
        torch.testing.assert_close(rows.grad[2] @ direction, slope, atol=2e-3, rtol=2e-3)


def test_a_saved_mistral_has_no_window(tmp_path):
    """transformers would give it one of 4096 if the file were silent."""
    save_model(build_model(read_shape_of("mistral", tmp_path), seed=0), tmp_path / "ours")
    assert AutoConfig.from_pretrained(tmp_path / "ours").sliding_window is None


def test_files_are_as_others_expect_them(tmp_path):
    model = build_model(read_shape_of("llama", tmp_path), seed=0)
    save_model(model, tmp_path / "whole")
    with safe_open(tmp_path / "whole" / "model.safetensors", framework="pt") as weights:
        assert weights.metadata() == {"format": "pt"}
    modes = {file.stat().st_mode for file in (tmp_path / "whole").iterdir()}
    assert len(modes) == 1

    save_model(model, tmp_path / "sharded", max_shard_bytes=10_000)
    index = json.loads((tmp_path / "sharded" / "model.safetensors.index.json").read_text())
    shards = sorted(file.name for file in (tmp_path / "sharded").glob("*.safetensors"))
    assert shards == sorted(set(index["weight_map"].values())) and len(shards) > 2
    assert shards[0] == f"model-00001-of-{len(shards):05}.safetensors"
    assert index["metadata"]["total_size"] == 4 * model.shape.num_parameters


@pytest.mark.parametrize("eos", [(2,), (2, 5), ()])
def test_special_ids_reach_transformers_and_come_back(eos, tmp_path):
    special = SpecialIds(bos=1, eos=eos, pad=0)
    save_model(build_model(read_shape_of("qwen2", tmp_path), seed=0), tmp_path / "ours", special=special)
    generation = GenerationConfig.from_pretrained(tmp_path / "ours")
    assert generation.eos_token_id == (None if not eos else eos[0] if len(eos) == 1 else list(eos))
    assert (generation.bos_token_id, generation.pad_token_id) == (1, 0)
    assert read_special_ids(tmp_path / "ours") == special


def test_generation_config_wins_over_config(tmp_path):
    (tmp_path / "config.json").write_text('{"eos_token_id": 2, "bos_token_id": 1}')
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": [3, 4], "bos_token_id": null}')
    assert read_special_ids(tmp_path) == SpecialIds(bos=1, eos=(3, 4))


def test_fresh_weights_depend_on_the_seed_alone(tmp_path):
    shape = read_shape_of("qwen3", tmp_path)
    one, same, other = (build_model(shape, seed=seed) for seed in (1, 1, 2))
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), same.parameters(), strict=True))
    assert not torch.equal(one.embed.weight, other.embed.weight)
    half = build_model(shape, seed=1, dtype=torch.bfloat16)
    assert torch.equal(half.embed.weight, one.embed.weight.bfloat16())
    assert packed_logits(one, [IDS]).isfinite().all()


def read_shape_of(name, tmp_path):
    random_model(name).save_pretrained(tmp_path / "shape")
    return read_shape(tmp_path / "shape")
