"""The mean of checkpoints."""

from __future__ import annotations

import json
import random

import pytest
import torch
from safetensors.torch import load_file, save_file

from foresail.model.hf import build_model, load_model, save_model
from foresail.model.merge import TensorEntry, merge, write_tensors
from foresail.recipe.shape.model_shape import ModelShape

SHAPE = ModelShape(
    vocab_size=20,
    hidden_size=8,
    intermediate_size=12,
    num_layers=2,
    num_heads=2,
    num_kv_heads=1,
    head_dim=4,
    max_context=16,
)


def save(folder, seed=0, shape=SHAPE, dtype=torch.float32, max_shard_bytes=10**9, tokenizer="{}"):
    save_model(build_model(shape, seed=seed, dtype=dtype), folder, max_shard_bytes=max_shard_bytes)
    (folder / "tokenizer.json").write_text(tokenizer)
    return folder


@pytest.mark.parametrize("scores", [False, True])
def test_the_weighted_mean_is_that_of_every_tensor_and_shards_are_kept(scores, tmp_path):
    shape = SHAPE.with_score() if scores else SHAPE
    parts = [save(tmp_path / str(seed), seed, shape, max_shard_bytes=4000) for seed in range(3)]
    merge(parts, tmp_path / "mean", weights=[1, 2, 1])
    files = sorted(path.name for path in parts[0].iterdir())
    assert sorted(path.name for path in (tmp_path / "mean").iterdir()) == files and len(files) > 4
    models = [load_model(path, dtype=torch.float32, device="cpu", scores=scores) for path in parts]
    mean = load_model(tmp_path / "mean", dtype=torch.float32, device="cpu", scores=scores)
    for name, weight in mean.named_parameters():
        a, b, c = (model.get_parameter(name) for model in models)
        torch.testing.assert_close(weight, (a + 2 * b + c) / 4)


def test_a_mean_in_16_bits_is_rounded_once(tmp_path):
    parts = [save(tmp_path / str(seed), seed, dtype=torch.bfloat16) for seed in range(4)]
    merge(parts, tmp_path / "mean")
    tensors = [load_file(path / "model.safetensors") for path in parts]
    for name, found in load_file(tmp_path / "mean/model.safetensors").items():
        exact = sum(tensor[name].double() for tensor in tensors) / 4
        assert found.dtype == torch.bfloat16 and torch.equal(found, exact.float().bfloat16())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"shape": SHAPE.model_copy(update={"num_layers": 1})}, "num_layers is 2 and 1"),
        ({"shape": SHAPE.model_copy(update={"vocab_size": 21})}, "vocab_size is 20 and 21"),
        ({"shape": SHAPE.with_score()}, "tied is True and False"),
        ({"dtype": torch.bfloat16}, "is F32 in .* and BF16 in .*foresail export"),
        ({"tokenizer": '{"model": 1}'}, "have different tokenizers"),
    ],
)
def test_the_first_difference_is_named_and_nothing_is_written(change, message, tmp_path):
    parts = [save(tmp_path / "a"), save(tmp_path / "b", **change)]
    with pytest.raises(ValueError, match=message):
        merge(parts, tmp_path / "mean")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_adapters_bad_weights_and_folders_in_use_are_refused(tmp_path):
    parts = [save(tmp_path / "a"), save(tmp_path / "b", 1)]
    for weights, message in (
        ([1], "1 weights"),
        ([0, 0], "one above 0"),
        ([1, float("nan")], "take numbers"),
    ):
        with pytest.raises(ValueError, match=message):
            merge(parts, tmp_path / "mean", weights=weights)
    with pytest.raises(ValueError, match="two checkpoints or more"):
        merge(parts[:1], tmp_path / "mean")
    with pytest.raises(FileExistsError):
        merge(parts, tmp_path / "b")
    (parts[1] / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA"}))
    with pytest.raises(ValueError, match="holds low-rank pairs"):
        merge(parts, tmp_path / "mean")


def test_files_written_tensor_by_tensor_are_those_safetensors_reads_for_any_sizes(tmp_path):
    chance, names = random.Random(0), {torch.float32: "F32", torch.bfloat16: "BF16", torch.int64: "I64"}
    for case in range(30):
        tensors = {
            "ab/ü"[: chance.randint(1, 4)] + str(number): torch.randn(
                [chance.randint(0, 5) for _ in range(chance.randint(0, 3))]
            ).to(chance.choice([*names]))
            for number in range(chance.randint(1, 6))
        }
        entries = {
            name: TensorEntry(dtype=names[t.dtype], sizes=tuple(t.shape)) for name, t in tensors.items()
        }
        write_tensors(tmp_path / f"{case}", entries, tensors.__getitem__)
        found = load_file(tmp_path / f"{case}")
        assert found.keys() == tensors.keys()
        assert all(torch.equal(found[n], t) and found[n].dtype == t.dtype for n, t in tensors.items())
        save_file(found, tmp_path / "again")  # whole enough to be written by them
