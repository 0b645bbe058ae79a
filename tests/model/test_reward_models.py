"""Reward models in and out of Hugging Face directories, with transformers as the judge."""

from __future__ import annotations

import json

import pytest
import torch
from small_models import CONFIGS, SIZES, random_ids, random_model, scramble
from transformers import AutoModelForSequenceClassification

from foresail.model.attention import PackedAttention
from foresail.model.decoder import Decoder
from foresail.model.hf import build_model, load_model, save_model
from foresail.model.readouts import scores_at
from foresail.recipe.shape.hf_config import SpecialIds, read_shape

FAMILIES = ("llama", "llama tied", "mistral", "qwen2", "qwen3", "qwen3_moe", "mixtral")
LENGTHS = (31, 5, 17)
PAD = 3


def random_classifier(name: str, labels: int = 1):
    config = CONFIGS[name]()
    config.num_labels, config.pad_token_id = labels, PAD
    model = AutoModelForSequenceClassification.from_config(config, dtype=torch.float32).eval()
    scramble(model)
    return model


def sequences() -> list[torch.Tensor]:
    return [random_ids(length, seed).clamp(min=PAD + 1) for seed, length in enumerate(LENGTHS)]


@torch.no_grad()
def theirs_scores(model) -> torch.Tensor:
    """Of a batch that is padded on the right, as transformers does it."""
    rows = torch.nn.utils.rnn.pad_sequence(sequences(), batch_first=True, padding_value=PAD)
    return model(rows, attention_mask=(rows != PAD).long()).logits.squeeze(-1)


@torch.no_grad()
def packed_scores(model: Decoder) -> torch.Tensor:
    starts_S1 = torch.tensor([0, *LENGTHS]).cumsum(0)
    positions_T = torch.cat([torch.arange(length) for length in LENGTHS])
    readout = scores_at(starts_S1[1:] - 1)
    return model(torch.cat(sequences()), positions_T, PackedAttention(starts_S1), readout).value


@pytest.mark.parametrize("name", FAMILIES)
def test_scores_equal_those_of_transformers_both_ways(name, tmp_path):
    theirs = random_classifier(name)
    theirs.save_pretrained(tmp_path / "theirs")
    ours = load_model(tmp_path / "theirs", dtype=torch.float32, device="cpu", scores=True)
    expected = theirs_scores(theirs)
    assert expected.std() > 0.1  # else the tolerance would mean nothing
    torch.testing.assert_close(packed_scores(ours), expected, atol=1e-4, rtol=0)

    save_model(ours, tmp_path / "ours", special=SpecialIds(eos=(2,), pad=PAD))
    again = AutoModelForSequenceClassification.from_pretrained(tmp_path / "ours").eval()
    assert again.config.num_labels == 1
    torch.testing.assert_close(theirs_scores(again), expected, atol=1e-4, rtol=0)


def test_a_language_model_becomes_a_reward_model_with_the_same_fresh_head_every_time(tmp_path):
    random_model("llama").save_pretrained(tmp_path)
    first, second = (load_model(tmp_path, dtype=torch.float32, device="cpu", scores=True) for _ in range(2))
    words = load_model(tmp_path, dtype=torch.float32, device="cpu")
    assert first.shape == read_shape(tmp_path).with_score()
    assert sum(weight.numel() for weight in first.parameters()) == first.shape.num_parameters
    assert torch.equal(first.head.weight, second.head.weight) and first.head.weight.std() > 0.1
    assert torch.equal(first.blocks[1].mlp.down.weight, words.blocks[1].mlp.down.weight)


def test_a_reward_model_is_not_loaded_where_words_are_wanted(tmp_path):
    random_classifier("llama").save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="is a reward model: it gives scores and no words"):
        load_model(tmp_path, dtype=torch.float32, device="cpu")


def test_a_classifier_with_two_labels_is_refused(tmp_path):
    random_classifier("llama", labels=2).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="a classifier with 2 labels is not a reward model"):
        read_shape(tmp_path)


def test_ernie_has_no_reward_model(tmp_path):
    random_model("ernie4_5_moe").save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="no reward model of family ernie4_5_moe; use one of llama, mistral"):
        load_model(tmp_path, dtype=torch.float32, device="cpu", scores=True)


def test_the_config_says_one_label(tmp_path):
    theirs = random_classifier("qwen2")
    theirs.save_pretrained(tmp_path / "a")
    shape = read_shape(tmp_path / "a")
    save_model(build_model(shape, seed=0), tmp_path / "b")
    config = json.loads((tmp_path / "b/config.json").read_text())
    assert config["architectures"] == ["Qwen2ForSequenceClassification"] and len(config["id2label"]) == 1
    assert read_shape(tmp_path / "b") == shape and shape.vocab_size == SIZES["vocab_size"]
