"""Every way a checkpoint can be wrong, and what we tell its owner."""

from __future__ import annotations

import errno
import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from small_models import CONFIGS, random_model

from foresail.model.hf import build_model, check_vocabulary, load_model, save_model
from foresail.recipe.shape.hf_config import config_from_shape, read_shape, shape_from_config
from foresail.recipe.shape.model_shape import ModelShape


@pytest.fixture
def directory(tmp_path):
    random_model("llama tied").save_pretrained(tmp_path)
    return tmp_path


def load(directory):
    return load_model(directory, dtype=torch.float32, device="cpu")


def edit_config(directory, **changes):
    file = directory / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def edit_weights(directory, change):
    tensors = load_file(directory / "model.safetensors")
    change(tensors)
    save_file(tensors, directory / "model.safetensors")


def test_missing_directory(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no checkpoint directory .*nowhere; check the path"):
        load(tmp_path / "nowhere")


def test_missing_config(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no config\.json"):
        load(tmp_path)


@pytest.mark.parametrize("text", ['{"model_type": "lla', "[]", "", "\x00\x01"])
def test_broken_config(tmp_path, text):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(ValueError, match=r"config\.json .*restore or download"):
        load(tmp_path)


def test_missing_weights(directory):
    (directory / "model.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match=r"no model\.safetensors"):
        load(directory)
    (directory / "pytorch_model.bin").touch()
    with pytest.raises(FileNotFoundError, match="save_pretrained"):
        load(directory)


@pytest.mark.parametrize("keep", [0, 5, 200, -1])
def test_cut_short_weights(directory, keep):
    file = directory / "model.safetensors"
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(ValueError, match=r"model\.safetensors is damaged or cut short"):
        load(directory)


def test_missing_and_broken_shards(tmp_path):
    random_model("qwen2").save_pretrained(tmp_path, max_shard_size="10KB")
    shards = sorted(tmp_path.glob("*.safetensors"))
    content = shards[1].read_bytes()
    shards[1].write_bytes(content[:100])
    with pytest.raises(ValueError, match=f"{shards[1].name} is damaged"):
        load(tmp_path)
    shards[1].unlink()
    with pytest.raises(FileNotFoundError, match=f"lacks {shards[1].name}, named in"):
        load(tmp_path)
    (tmp_path / "model.safetensors.index.json").write_text("{}")
    with pytest.raises(ValueError, match="weight_map is missing"):
        load(tmp_path)


def test_index_that_names_the_wrong_shard(tmp_path):
    random_model("qwen2").save_pretrained(tmp_path, max_shard_size="10KB")
    index = tmp_path / "model.safetensors.index.json"
    content = json.loads(index.read_text())
    content["weight_map"]["model.norm.weight"] = content["weight_map"]["model.embed_tokens.weight"]
    index.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=r"model\.norm\.weight"):
        load(tmp_path)


def test_missing_tensors_are_named(directory):
    edit_weights(directory, lambda tensors: tensors.pop("model.layers.1.mlp.up_proj.weight"))
    with pytest.raises(ValueError, match=r"model\.layers\.1\.mlp\.up_proj\.weight missing"):
        load(directory)


def test_unexpected_tensors_are_named(directory):
    edit_config(directory, num_hidden_layers=1)
    with pytest.raises(ValueError, match=r"model\.layers\.1\.\S+, .* and 6 more unexpected.*config\.json"):
        load(directory)


def test_misshaped_tensors_are_named(directory):
    edit_config(directory, intermediate_size=64)
    with pytest.raises(ValueError, match=r"gate_proj\.weight has shape \[48, 32\], .* \[64, 32\]"):
        load(directory)


def test_swapped_head_counts_are_noticed(directory):
    """q, k and v together have the right number of rows; each alone has not."""
    edit_config(directory, num_attention_heads=2, num_key_value_heads=2, head_dim=8, hidden_size=32)
    with pytest.raises(ValueError, match=r"q_proj\.weight has shape"):
        load(directory)


def test_old_rotary_tables_are_ignored(directory):
    expected = load(directory).state_dict()
    edit_weights(
        directory,
        lambda tensors: tensors.update({"model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(4)}),
    )
    assert all(torch.equal(value, expected[name]) for name, value in load(directory).state_dict().items())


def test_tied_checkpoint_may_carry_its_head_only_if_it_is_the_embedding(directory):
    edit_weights(
        directory,
        lambda tensors: tensors.update({"lm_head.weight": tensors["model.embed_tokens.weight"] + 0}),
    )
    load(directory)
    edit_weights(directory, lambda tensors: tensors["lm_head.weight"].add_(1))
    with pytest.raises(ValueError, match=r"differs from the embedding.*tie_word_embeddings to false"):
        load(directory)
    edit_config(directory, tie_word_embeddings=False)
    model = load(directory)
    assert torch.equal(model.head.weight, model.embed.weight + 1)


def test_untied_checkpoint_without_head(directory):
    edit_config(directory, tie_word_embeddings=False)
    with pytest.raises(ValueError, match=r"no lm_head\.weight.*tie_word_embeddings to true"):
        load(directory)


def test_saving_over_weights_is_refused(directory):
    with pytest.raises(ValueError, match="already holds weights"):
        save_model(load(directory), directory)


def test_unwritable_weights_keep_their_cause_for_whoever_explains_it(directory, monkeypatch):
    from safetensors import SafetensorError

    from foresail.runlog.atomic import explained

    def fail(*_, **__):
        raise SafetensorError("No space left on device (os error 28)")

    monkeypatch.setattr("foresail.model.hf.save_file", fail)
    model = load(directory)
    told = "No space left on device; free some space"
    with pytest.raises(OSError, match=told) as caught, explained(directory):
        save_model(model, directory / "new")
    assert caught.value.errno == errno.ENOSPC


def test_vocabulary_may_be_padded_but_not_short(directory):
    shape = read_shape(directory)
    check_vocabulary(shape, shape.vocab_size)
    check_vocabulary(shape, shape.vocab_size - 3)
    with pytest.raises(ValueError, match="68 ids but the model only 67 embedding rows"):
        check_vocabulary(shape, shape.vocab_size + 1)


LONGROPE = {"rope_type": "longrope", "factor": 4.0}


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("llama", {"model_type": "gpt2"}, "'gpt2' is not supported; use one of llama, mistral, qwen2, qwen3"),
        ("llama", {"model_type": None}, "None is not supported"),
        ("llama", {"vocab_size": None}, "vocab_size is missing"),
        ("llama", {"attention_bias": True}, "attention_bias is not supported for llama"),
        ("qwen3", {"attention_bias": True}, "attention_bias is not supported for qwen3"),
        ("llama", {"mlp_bias": True}, "mlp_bias is not supported"),
        ("llama", {"hidden_act": "gelu"}, "hidden_act 'gelu' is not supported"),
        ("llama", {"quantization_config": {"bits": 4}}, "quantised"),
        ("llama", {"rope_scaling": LONGROPE}, "rope type 'longrope' is not supported"),
        ("llama", {"rope_scaling": {"type": "ntk", "factor": 2.0}}, "rope type 'ntk' is not supported"),
        ("llama", {"rope_parameters": LONGROPE}, "rope type 'longrope' is not supported"),
        ("llama", {"rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, "low_freq_factor is missing"),
        ("llama", {"partial_rotary_factor": 0.5}, "partial_rotary_factor 0.5"),
        ("llama", {"rope_parameters": {"partial_rotary_factor": 0.25}}, "partial_rotary_factor 0.25"),
        ("llama", {"num_key_value_heads": 3}, "not a multiple of num_key_value_heads"),
        ("mistral", {"sliding_window": 64}, "window attention of 64 tokens .* the model's 128 tokens"),
        ("qwen2", {"use_sliding_window": True, "sliding_window": 64, "layer_types": None}, None),
        (
            "qwen2",
            {"use_sliding_window": True, "sliding_window": 64, "layer_types": None, "max_window_layers": 1},
            "window attention of 64 tokens",
        ),
        (
            "qwen3",
            {"use_sliding_window": True, "sliding_window": 64, "layer_types": ["sliding_attention"] * 2},
            "window attention of 64 tokens",
        ),
    ],
)
def test_unsupported_configs(name, changes, message):
    config = CONFIGS[name]().to_dict() | changes
    if message is None:  # two layers, and the window begins at the 28th
        assert shape_from_config(config).max_context == 128
        return
    with pytest.raises(ValueError, match=message):
        shape_from_config(config)


def test_read_shape_names_the_file(directory):
    edit_config(directory, mlp_bias=True)
    with pytest.raises(ValueError, match=r"config\.json: mlp_bias"):
        read_shape(directory)


def test_a_window_is_fine_for_sequences_within_it():
    config = CONFIGS["mistral"]().to_dict() | {"sliding_window": 64}
    assert shape_from_config(config, context=64).max_context == 64
    with pytest.raises(ValueError, match="shorter than the context, 65 tokens"):
        shape_from_config(config, context=65)


def test_a_mistral_config_silent_about_its_window_has_one():
    config = CONFIGS["mistral"]().to_dict() | {"max_position_embeddings": 5000}
    assert shape_from_config(config).max_context == 5000
    del config["sliding_window"]
    with pytest.raises(ValueError, match="attention of 4096 tokens"):
        shape_from_config(config)


def test_head_dim_defaults():
    llama, qwen3 = CONFIGS["llama"]().to_dict(), CONFIGS["qwen3"]().to_dict()
    assert shape_from_config(llama | {"head_dim": None}).head_dim == 8
    assert shape_from_config({key: qwen3[key] for key in qwen3 if key != "head_dim"}).head_dim == 128


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"qkv_bias": True}, "family llama has qkv_bias = false"),
        ({"qk_norm": True}, "family llama has qk_norm = false"),
        ({"family": "qwen2"}, "family qwen2 has qkv_bias = true"),
        ({"family": "qwen3"}, "family qwen3 has qk_norm = true"),
        ({"hidden_size": 33}, "hidden_size 33 is not a multiple of num_heads 4"),
    ],
)
def test_shapes_no_family_has_are_refused_before_training(changes, message):
    sizes = {"vocab_size": 8, "hidden_size": 32, "intermediate_size": 8, "num_layers": 1, "max_context": 16}
    shape = ModelShape(**{**sizes, "num_heads": 4, "num_kv_heads": 2, "head_dim": 8, **changes})
    with pytest.raises(ValueError, match=message):
        build_model(shape, seed=0)
    with pytest.raises(ValueError, match=message):
        config_from_shape(shape, dtype="float32")
