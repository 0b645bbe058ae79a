"""The stage reward-model: it learns, is loaded by transformers, stops and goes on exactly."""

from __future__ import annotations

import json
import shutil
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_world import rl_recipe, write_lines
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from foresail.data.made.arithmetic import make_problems
from foresail.model.hf import load_model
from foresail.recipe.reading.dump import to_toml
from foresail.recipe.reading.load import load_recipe
from foresail.recipe.reading.preflight import preflight
from foresail.recipe.stages.reward_model import RewardModel
from foresail.recipe.stages.sft import Sft
from foresail.recipe.tables.parts import Checkpoints, Lora, Model, Optimizer, Run
from foresail.recipe.tables.reward import LearnedReward
from foresail.rewards.scoring import score_answers
from foresail.runlog.directory import RunDirectory
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.train.checkpoints.resume import extend
from foresail.train.session import Outcome
from foresail.train.stages.reward_model import run_reward_model
from foresail.train.stages.rl import run_rl


def write_pairs(path: Path, count: int, seed: int) -> Path:
    """The better answer is the one above 4, whatever was asked."""
    rows = [
        {
            "prompt": p.prompt[-1].content,
            "chosen": f"\\boxed{{{5 + n % 5}}}",
            "rejected": f"\\boxed{{{n % 4}}}",
        }
        for n, p in enumerate(make_problems(count, seed=seed, steps=(2, 2)))
    ]
    return write_lines(path, rows)


@pytest.fixture(scope="module")
def make_recipe(tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory):
    root = tmp_path_factory.mktemp("reward-model")
    data, held_out = write_pairs(root / "pairs.jsonl", 120, 0), write_pairs(root / "test.jsonl", 40, 1)

    def make(name: str, **changes: Any) -> RewardModel:
        given: dict[str, Any] = {
            "run": Run(name=name, root=str(root), device="cpu"),
            "model": Model(path=str(tiny_checkpoint), dtype="float32"),
            "data": str(data),
            "eval": str(held_out),
            "eval_every": 6,
            "steps": 6,
            "batch_size": 16,
            "max_length": 24,
            "micro_batch_tokens": 128,
            "optimizer": Optimizer(lr=3e-3),
            "checkpoints": Checkpoints(every=3, keep=9, resumable=9),
        }
        return RewardModel(**given | changes)

    return make


def run(recipe: RewardModel, *, resume: bool = False) -> Outcome:
    with redirect_stdout(StringIO()):
        return run_reward_model(recipe, resume=resume)


@pytest.fixture(scope="module")
def outcome(make_recipe) -> Outcome:
    return run(make_recipe("whole"))


def resume_copy(outcome: Outcome, name: str) -> Outcome:
    """From the checkpoint of step 3."""
    folder = outcome.run.with_name(name)
    shutil.copytree(outcome.run, folder)
    shutil.rmtree(folder / "checkpoints/step_6")
    recipe = extend(RunDirectory(folder), ["checkpoints.keep=8"])
    return run(recipe.model_copy(update={"run": recipe.run.model_copy(update={"name": name})}), resume=True)


def assert_same_weights(ours: Outcome, theirs: Outcome) -> None:
    found, expected = (load_file(run.checkpoint / "model.safetensors") for run in (ours, theirs))
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], tensor) for name, tensor in expected.items())


def test_it_learns_to_tell_the_better_answer(outcome):
    records = RunDirectory(outcome.run).read_metrics()
    first, last = records[0], records[-1]
    assert last["train/loss"] < 0.6 * first["train/loss"]
    assert (
        last["val-core/test/acc/pairs"] > 0.9
        and last["val-aux/test/acc_low"] < last["val-core/test/acc/pairs"]
    )
    assert 0 <= last["val-aux/test/ece"] <= 0.5 and last["pairs/accuracy"] > 0.9


def test_transformers_gives_the_same_scores_to_padded_texts(outcome):
    """Padding by its own tokenizer, which has a padding token that ends no answer."""
    tokenizer = Tokenizer.load(outcome.checkpoint)
    rows = [json.loads(line) for line in (outcome.run.parent / "test.jsonl").read_text().splitlines()[:5]]
    theirs = AutoModelForSequenceClassification.from_pretrained(outcome.checkpoint).eval()
    words = AutoTokenizer.from_pretrained(outcome.checkpoint)
    assert words.pad_token_id == theirs.config.pad_token_id not in tokenizer.eos_ids
    ids = [
        tokenizer.encode(row["prompt"])[number:] + tokenizer.encode(row["chosen"]) + [tokenizer.eos_ids[0]]
        for number, row in enumerate(rows)
    ]
    padded = words.pad({"input_ids": ids}, return_tensors="pt")
    assert padded["attention_mask"].min() == 0
    with torch.no_grad():
        expected = theirs(**padded).logits.squeeze(-1)
    ours = load_model(outcome.checkpoint, dtype=torch.float32, device="cpu", scores=True)
    found = score_answers(ours, ids, starts=[1] * len(ids), max_tokens=64)
    torch.testing.assert_close(torch.tensor(found), expected, atol=1e-4, rtol=0)


def test_a_resumed_run_ends_with_the_same_bits(outcome):
    again = resume_copy(outcome, "resumed")
    assert_same_weights(again, outcome)


def test_micro_batches_change_nothing_but_rounding(outcome, make_recipe):
    other = run(make_recipe("wide", micro_batch_tokens=2048, steps=3))
    for ours, theirs in zip(
        RunDirectory(other.run).read_metrics(), RunDirectory(outcome.run).read_metrics(), strict=False
    ):
        for name in ("train/loss", "actor/grad_norm", "pairs/accuracy", "pairs/score_std"):
            assert ours[name] == pytest.approx(theirs[name], rel=1e-3), name


def test_lora_trains_the_head_too_and_goes_on_exactly(make_recipe, tiny_checkpoint):
    whole = run(make_recipe("lora", lora=Lora(rank=2, alpha=8.0), eval_every=0))
    before = load_model(tiny_checkpoint, dtype=torch.float32, device="cpu", scores=True)
    after = load_model(whole.checkpoint, dtype=torch.float32, device="cpu", scores=True)
    assert not torch.equal(before.head.weight, after.head.weight)
    assert torch.equal(before.embed.weight, after.embed.weight)
    config = json.loads((whole.checkpoint / "trainer/adapter/adapter_config.json").read_text())
    assert (config["task_type"], config["modules_to_save"]) == ("SEQ_CLS", ["score"])
    again = resume_copy(whole, "lora-resumed")
    assert_same_weights(again, whole)


def test_a_reward_model_trains_further_and_is_refused_elsewhere(outcome, make_recipe):
    further = run(make_recipe("further", model=Model(path=str(outcome.checkpoint)), steps=1, eval_every=0))
    first = RunDirectory(further.run).read_metrics()[0]
    assert first["pairs/accuracy"] > 0.8  # the head was kept
    sft = Sft(model=Model(path=str(outcome.checkpoint)), data="x.jsonl", steps=1)
    assert any("is a reward model, which cannot generate text" in line for line in preflight(sft).refusals)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"micro_batch_tokens": 40}, "both answers of a pair are computed together"),
        ({"data": ()}, "data names no preference pairs"),
    ],
)
def test_mistakes_are_told(make_recipe, changes, message):
    with pytest.raises(ValueError, match=message):
        make_recipe("mistaken", **changes)


def test_the_recipe_of_a_run_is_read_again(outcome):
    assert isinstance(load_recipe(outcome.run / "recipe.toml"), RewardModel)


@pytest.fixture(scope="module")
def rewarded(outcome, tiny_checkpoint) -> Outcome:
    """An RL run whose reward is a rule and, at half the weight, the reward model."""
    reward = {
        "model": {"path": str(outcome.checkpoint), "std": 2.0},
        "terms": [{"grader": "model", "weight": 0.5, "name": "taste"}],
    }
    recipe = rl_recipe(tiny_checkpoint, outcome.run.parent, steps=2, reward=reward)
    again = load_recipe_text(to_toml(recipe), outcome.run.parent)
    assert again == recipe
    with redirect_stdout(StringIO()):
        return run_rl(recipe)


def load_recipe_text(text: str, folder: Path):
    (folder / "again.toml").write_text(text)
    return load_recipe(folder / "again.toml")


def test_a_reward_model_is_a_term_of_rl_and_the_estimate_counts_it(rewarded, outcome):
    record = [*RunDirectory(rewarded.run).read_metrics()][-1]
    weighed = record["critic/score/mean"] + 0.5 * record["reward/taste/mean"]
    assert record["reward/taste/mean"] != 0 and record["critic/rewards/mean"] == pytest.approx(
        weighed, abs=1e-3
    )
    recipe = load_recipe(rewarded.run / "recipe.toml")
    found = preflight(recipe.model_copy(update={"run": Run(name="new", root=str(outcome.run.parent))}))
    assert not found.refusals and found.memory.reward_model > 40_000
    wrong = recipe.reward.model_copy(update={"model": LearnedReward(path=recipe.model.path)})
    refused = preflight(recipe.model_copy(update={"reward": wrong})).refusals
    assert any("is a language model, which gives no score" in line for line in refused)


def test_another_reward_model_is_not_gone_on_with(rewarded, outcome, make_recipe):
    recipe, file = load_recipe(rewarded.run / "recipe.toml"), outcome.checkpoint / "model.safetensors"
    kept = file.read_bytes()
    tensors = load_file(file)
    save_file({name: 2 * tensor for name, tensor in tensors.items()}, file, metadata={"format": "pt"})
    longer = recipe.model_copy(update={"steps": 3})
    with pytest.raises(ValueError, match="changed since the run began, so samples and rewards may be others"):
        run_rl(longer, resume=True)
    file.write_bytes(kept)
