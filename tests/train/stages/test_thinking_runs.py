"""Hybrid thinking from SFT to RL and evaluation, on a tiny world: each mode by its source, a budget, counts."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tiny_world import rl_recipe, sft_recipe, tiny_shape, write_lines
from typer.testing import CliRunner

from foresail.check.inspection import inspect_sources
from foresail.cli import app
from foresail.data.made.arithmetic import direct, make_problems, worked
from foresail.data.problems.problems import load_problems
from foresail.data.problems.prompts import encode_problems
from foresail.evaluation.recorded_samples import digest
from foresail.recipe.stages.sft import Sft
from foresail.recipe.tables.parts import Model, Problems, Run, Sampling
from foresail.recipe.tables.sources import Conversations, HeldOut, ProblemSource
from foresail.rollout import checkpoint as checkpoints
from foresail.runlog.directory import RunDirectory
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.tokenizer.train import CHAT_TEMPLATE, train_bpe
from foresail.train.stages.rl import run_rl
from foresail.train.stages.sft import run_sft

PROBLEMS = "arithmetic:count=200,steps=2"
HELD_OUT = "arithmetic:count=10,steps=2,split=test"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A checkpoint after SFT on both modes; chains are of problems with a pass rate in the window."""
    folder = tmp_path_factory.mktemp("hybrid")
    problems = make_problems(200, seed=0, steps=(2, 2))
    texts = [text for p in problems for text in (p.prompt[-1].content, worked(p), direct(p), "\n\n")]
    whole = ("<think>", "</think>", r"\boxed{")
    train_bpe(texts, vocab_size=48, whole_tokens=whole, alphabet="seen").save(folder / "tokenizer")
    rates = write_lines(
        folder / "rates.jsonl",
        [{"id": p.id, "pass_rate": number % 5 / 4} for number, p in enumerate(problems)],
    )
    chains = {"pass_rates": str(rates), "pass_window": (0.25, 0.75)}
    recipe = sft_recipe(
        folder / "tokenizer",
        (
            Conversations(source=PROBLEMS, name="fast", thinking=False, weight=1.0),
            Conversations(source=PROBLEMS, name="chains", thinking=True, weight=1.0, **chains),
        ),
        folder,
        model=Model(
            shape=tiny_shape(Tokenizer.load(folder / "tokenizer").vocab_size).model_copy(
                update={"max_context": 64}
            ),
            tokenizer=str(folder / "tokenizer"),
            chat_template="hybrid-short",
            dtype="float32",
        ),
        max_length=48,
        steps=20,
    )
    return folder, run_sft(recipe).checkpoint, recipe


def test_sft_learns_both_modes_and_tells_what_its_window_left_out(world):
    folder, checkpoint, recipe = world
    told = "kept 120 of 200 with a pass rate in [0.25, 0.75]; below 40, above 40"
    assert any(told in note for note in inspect_sources(recipe).notes)
    assert Tokenizer.load(checkpoint).chat.has_switch, "the checkpoint has the recipe's template"
    metrics = RunDirectory(folder / "sft").read_metrics()
    assert metrics[-1]["train/tokens/fast"] > 0 and metrics[-1]["train/tokens/chains"] > 0


def test_rl_trains_both_modes_within_a_budget_and_counts_thinking(world):
    folder, checkpoint, _ = world
    recipe = rl_recipe(
        checkpoint,
        folder,
        data=(
            ProblemSource(source=PROBLEMS, name="deep", thinking=True, weight=1.0),
            ProblemSource(source=PROBLEMS, name="fast", thinking=False, weight=1.0),
        ),
        eval=(
            HeldOut(source=HELD_OUT, name="deep", thinking=True),
            HeldOut(source=HELD_OUT, name="fast", thinking=False),
        ),
        eval_every=1,
        steps=1,
        prompts_per_step=8,
        max_prompt_tokens=20,
        sampling=Sampling(max_new_tokens=24, thinking_budget=6),
    )
    run = RunDirectory(run_rl(recipe).run)
    metrics = run.read_metrics()[-1]
    assert 0 < metrics["thinking/forced"] <= 1
    assert {"val-core/deep/acc/mean@1", "val-core/fast/acc/mean@1"} <= metrics.keys()
    rows = run.read_rollouts(1)
    assert {row["thinking"] for row in rows} == {True, False}
    for row in rows:
        first = row["loss_mask"].index(1)
        for place in row.get("forced", ()):
            assert row["loss_mask"][place] == 0 and row["logprobs"][place] == 0.0 and place >= first + 6
        # with thinking off there is none, but where a model that hardly learnt opens it by itself
        assert bool(row["thinking_tokens"]) == ("<think>" in row["response"])
        if row["thinking"]:  # the budget, and at most what closes it: four tokens
            assert row["response"].startswith("<think>") and row["thinking_tokens"] <= 6 + 4


def test_check_tells_a_budget_that_leaves_no_answer_and_a_template_that_never_thinks(world, tmp_path):
    folder, checkpoint, _ = world
    plain = Tokenizer.load(checkpoint)
    Tokenizer(replace(plain.files, chat_template=CHAT_TEMPLATE)).save(tmp_path)
    given = {"sampling": Sampling(max_new_tokens=10, thinking_budget=8), "max_prompt_tokens": 20}
    tight = inspect_sources(rl_recipe(checkpoint, folder, **given))
    assert any("leave no room for an answer" in line for line in tight.refusals)
    silent = inspect_sources(
        rl_recipe(tmp_path, folder, **given | {"sampling": Sampling(max_new_tokens=64, thinking_budget=8)})
    )
    assert not silent.refusals and any("knows no <think>" in line for line in silent.warnings)


def test_evaluate_judges_both_modes_of_one_model_each_in_its_folder(world, monkeypatch):
    folder, checkpoint, _ = world
    words = ["eval", str(checkpoint), "--data", HELD_OUT, "--thinking", "both", "--thinking-budget", "4"]
    words += ["--samples", "1", "--max-new-tokens", "24", "--device", "cpu", "--output", str(folder / "eval")]
    loads = []
    load = checkpoints.load_model
    monkeypatch.setattr(
        checkpoints, "load_model", lambda path, **rest: loads.append(path) or load(path, **rest)
    )
    said = CliRunner().invoke(app, words)
    assert said.exit_code == 0, said.output
    assert len(loads) == 1
    on, off = (
        json.loads((folder / "eval" / f"thinking-{mode}" / "summary.json").read_text())["samples"]
        for mode in ("on", "off")
    )
    assert on["mean_thinking"] > 0 and on["forced"] > 0
    assert off["mean_thinking"] < on["mean_thinking"] and off["forced"] < on["forced"]
    assert "10 problems, thinking on" in said.output and "10 problems, thinking off" in said.output


def test_solutions_are_sampled_in_the_mode_that_is_asked_for(world):
    folder, checkpoint, _ = world
    for mode in ("on", "off"):
        words = ["data", "sample-solutions", str(checkpoint), "--data", HELD_OUT, "--thinking", mode]
        words += ["--limit", "3", "--samples", "1", "--max-new-tokens", "4", "--device", "cpu"]
        said = CliRunner().invoke(app, [*words, "--output", str(folder / f"solutions-{mode}")])
        assert said.exit_code == 0, said.output
        problems = load_problems(Problems(source=HELD_OUT, limit=3, thinking=mode == "on"))
        prompted = encode_problems(problems, Tokenizer.load(checkpoint), 64)
        lines = (folder / f"solutions-{mode}" / "sampled.jsonl").read_text().splitlines()
        sampled = {(row["id"], row["prompt"]) for row in map(json.loads, lines)}
        assert sampled == {(entry.problem.id, digest(entry)) for entry in prompted}


def test_what_cannot_be_is_refused_before_a_run():
    given = {"model": Model(path="x"), "data": (ProblemSource(source=PROBLEMS, thinking=True),), "steps": 1}
    for changes, words in (
        ({"sampling": Sampling(max_new_tokens=64, thinking_budget=64)}, "thinking_budget 64 is not below"),
        ({"environment": {"tools": ("calculator",)}}, r"enable_thinking=true"),
        (
            {"sampling": Sampling(thinking_budget=8), "rollout": {"backend": "vllm"}},
            'set rollout.backend = "native"',
        ),
    ):
        with pytest.raises(ValueError, match=words):
            rl_recipe("x", "y", **{**given, **changes})
    with pytest.raises(ValueError, match="write </think> into it"):
        Sampling(thinking_end="stop")
    with pytest.raises(ValueError, match="leave <think> out"):
        Sampling(thinking_end="</think><think>")
    source = Conversations(source="a.jsonl", pass_rates="b.jsonl")
    with pytest.raises(ValueError, match=r"pass_rates needs data\.pass_window"):
        Sft(run=Run(name="a"), model=Model(path="x"), data=(source,), steps=1)
