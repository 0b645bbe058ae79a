"""Supervised fine-tuning, in this process."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch
from tiny_world import sft_recipe, write_lines

from foresail.data.mixtures.mixture import mix_conversations
from foresail.data.mixtures.reader import Reader
from foresail.model.hf import load_model
from foresail.recipe.tables.parts import Checkpoints, Model, Optimizer
from foresail.runlog.directory import RunDirectory
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.train.stages.sft import run_sft

NAMES = {
    "train/loss",
    "train/lr",
    "train/tokens",
    "sft/nll",
    "actor/entropy",
    "actor/grad_norm",
    "timing_s/update",
    "timing_s/step",
    "perf/throughput",
}


def test_loss_falls_from_chance_to_the_format(tiny_sft_run: Path, tiny_tokenizer: Path) -> None:
    metrics = RunDirectory(tiny_sft_run).read_metrics()
    assert [record["step"] for record in metrics] == list(range(1, 61))
    losses = [record["train/loss"] for record in metrics]
    assert losses[0] == pytest.approx(math.log(Tokenizer.load(tiny_tokenizer).vocab_size), abs=1.5)
    # the answer's four tokens: three are always the same, the digit is a guess among ten
    assert losses[-1] < 1.05 * math.log(10) / 4
    assert metrics[0].keys() >= NAMES


def test_the_loss_is_the_mean_over_the_assistants_tokens(tiny_sft_run: Path) -> None:
    for record in RunDirectory(tiny_sft_run).read_metrics():
        assert record["train/loss"] == pytest.approx(record["sft/nll"], rel=1e-5)


def test_it_can_learn_one_conversation_by_heart(tiny_tokenizer: Path, tmp_path: Path) -> None:
    rows = [
        {"prompt": "7 +5 *3", "completion": r"\boxed{6}"},
        {"prompt": "2 -9 +4", "completion": r"\boxed{7}"},
    ]
    recipe = sft_recipe(
        tiny_tokenizer, write_lines(tmp_path / "two.jsonl", rows), tmp_path, batch_size=2, steps=150
    )
    outcome = run_sft(recipe)
    assert outcome.finished
    assert RunDirectory(outcome.run).read_metrics()[-1]["train/loss"] < 0.05


def test_a_conversation_that_is_too_long_is_an_error(tiny_tokenizer: Path, tmp_path: Path) -> None:
    rows = [{"prompt": "7 +5", "completion": "2"}, {"prompt": "7" + " +5" * 20, "completion": "7"}]
    recipe = sft_recipe(tiny_tokenizer, write_lines(tmp_path / "long.jsonl", rows), tmp_path)
    length = len(Tokenizer.load(tiny_tokenizer).encode(rows[1]["prompt"])) + 4
    with pytest.raises(
        ValueError,
        match=rf"long.jsonl: 1 of 2 .* are longer .*conversation 2\) has {length} tokens; raise",
    ):
        run_sft(recipe)


def test_only_the_assistants_words_carry_a_loss(tiny_tokenizer: Path, tmp_path: Path) -> None:
    tokenizer = Tokenizer.load(tiny_tokenizer)
    rows = [{"prompt": "7 +5 *3", "completion": r"\boxed{6}"}]
    recipe = sft_recipe(tiny_tokenizer, write_lines(tmp_path / "one.jsonl", rows), tmp_path)
    (sequence,) = mix_conversations(recipe.data, Reader(tokenizer), recipe.max_length).entries
    learned = [token for token, in_loss in zip(sequence.ids, sequence.loss_mask, strict=True) if in_loss]
    assert tokenizer.decode(learned) == r"\boxed{6}<|end|>"


def test_micro_batches_change_the_weights_by_rounding_only(
    tiny_tokenizer: Path, tiny_conversations: Path, tmp_path: Path
) -> None:
    weights = []
    for tokens in (24, 100, 1024):
        recipe = sft_recipe(
            tiny_tokenizer,
            tiny_conversations,
            tmp_path / str(tokens),
            steps=3,
            micro_batch_tokens=tokens,
            optimizer=Optimizer(lr=1e-3, eps=1e-4),
        )
        model = load_model(run_sft(recipe).checkpoint, dtype=torch.float32, device="cpu")
        weights.append(torch.cat([parameter.detach().flatten() for parameter in model.parameters()]))
    torch.testing.assert_close(weights[0], weights[2], rtol=0, atol=1e-5)
    torch.testing.assert_close(weights[1], weights[2], rtol=0, atol=1e-5)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_sixteen_bits_train_too(
    tiny_tokenizer: Path, tiny_conversations: Path, tmp_path: Path, dtype: str
) -> None:
    recipe = sft_recipe(tiny_tokenizer, tiny_conversations, tmp_path, steps=20)
    recipe = recipe.model_copy(update={"model": recipe.model.model_copy(update={"dtype": dtype})})
    outcome = run_sft(recipe)
    losses = [record["train/loss"] for record in RunDirectory(outcome.run).read_metrics()]
    assert losses[-1] < 0.6 * losses[0]
    assert json.loads((outcome.checkpoint / "config.json").read_text())["torch_dtype"] == dtype


def test_it_starts_from_a_checkpoint_and_keeps_its_tokenizer(
    tiny_checkpoint: Path, tiny_tokenizer: Path, tiny_conversations: Path, tmp_path: Path
) -> None:
    model = Model(path=str(tiny_checkpoint), dtype="float32")
    recipe = sft_recipe(
        tiny_tokenizer, tiny_conversations, tmp_path, steps=2, model=model, checkpoints=Checkpoints(every=1)
    )
    outcome = run_sft(recipe)
    first = RunDirectory(outcome.run).read_metrics()[0]
    assert first["train/loss"] < 1.05 * math.log(10) / 4
    assert (outcome.checkpoint / "tokenizer.json").read_text() == (
        tiny_tokenizer / "tokenizer.json"
    ).read_text()
