r"""From nothing to a model that thinks before it answers, in minutes on two CPU cores.

    problems -> tokenizer -> SFT cold start -> evaluate -> GRPO -> evaluate -> summary

The cold start teaches two habits: answering at once, which most examples show and which is mostly wrong, and
working in steps, which is mostly right. Only the verifier tells the model which is better. Every part writes its
files to the run's folder, so a stopped run resumes.

    foresail quickstart
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from foresail.data.made.arithmetic import direct, make_problems, worked
from foresail.data.problems.problems import load_problems
from foresail.evaluation.evaluator import evaluate_checkpoint
from foresail.evaluation.results import ProblemResult, summarise
from foresail.quickstart.stages import train_stage
from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.stages.rl import Rl
from foresail.recipe.stages.sft import Sft
from foresail.recipe.tables import parts
from foresail.recipe.tables.dynamic_sampling import DynamicSampling
from foresail.recipe.tables.sources import Conversations, HeldOut, ProblemSource
from foresail.records import Problem
from foresail.runlog.atomic import write_text
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.tokenizer.train import train_bpe
from foresail.train.session import Outcome
from foresail.train.stopwatch import Stopwatch

NUM_TRAIN, NUM_TEST, STEPS = 6000, 200, (3, 5)
DIRECT_SHARE = 0.7  # of the cold start's examples answer at once
NUM_SAMPLES = 8  # per held-out problem, at temperature 1
MAX_PROMPT_TOKENS, MAX_NEW_TOKENS = 16, 40
PAGE_SIZE = 8  # tokens; prompts are that short
DTYPE: Literal["float32"] = "float32"  # also on CUDA: so small a model gains nothing from less


def run_quickstart(folder: Path, *, seed: int, note: Callable[[str], None]) -> dict[str, Any]:
    """Run all parts; returns the content of summary.json."""
    watch = Stopwatch()
    with watch("problems and tokenizer"):
        note(
            f"problems: {NUM_TRAIN} to learn from, {NUM_TEST} held out, {STEPS[0]} to {STEPS[1]} operations each"
        )
        write_problems(folder / "data", seed)
        tokenizer = write_tokenizer(folder)
    with watch("sft"):
        note(f"cold start: {DIRECT_SHARE:.0%} of the examples answer at once, the others work in steps")
        sft = train_stage(sft_recipe(folder, seed, tokenizer.vocab_size))
    with watch("evaluate before"):
        before = evaluate_stage(sft, folder, seed)
    with watch("rl"):
        note("reinforcement: right answers are rewarded, nothing else is said")
        rl = train_stage(rl_recipe(folder, seed, sft.checkpoint))
    with watch("evaluate after"):
        after = evaluate_stage(rl, folder, seed)
    summary = {
        "seed": seed,
        "seconds": {name: round(value, 2) for name, value in {**watch.seconds, "total": watch.total}.items()},
        "before": headline(before),
        "after": headline(after),
        "samples": pick_samples(load_problems(test_set(folder)), before, after),
        "checkpoints": {"sft": str(sft.checkpoint), "rl": str(rl.checkpoint)},
    }
    write_text(folder / "summary.json", json.dumps(summary, indent=2, ensure_ascii=False) + "\n")
    return summary


def choose_folder(root: Path) -> Path:
    """`root` itself when it is new or unfinished, else the first of root-2, root-3, … that is."""
    folder, number = root, 1
    while (folder / "summary.json").exists():
        number += 1
        folder = root.with_name(f"{root.name}-{number}")
    return folder


# Data.


def write_problems(folder: Path, seed: int) -> None:
    """Problems to train and test on, and the conversations of the cold start."""
    if (folder / "sft.jsonl").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    train = make_problems(NUM_TRAIN, seed=seed, steps=STEPS)
    test = make_problems(NUM_TEST, seed=seed, steps=STEPS, split="test")
    habit = random.Random(f"habit {seed}")
    write_lines(folder / "train.jsonl", [problem_row(problem) for problem in train])
    write_lines(folder / "test.jsonl", [problem_row(problem) for problem in test])
    conversations = [
        {
            "prompt": problem.prompt[-1].content,
            "completion": direct(problem) if habit.random() < DIRECT_SHARE else worked(problem),
        }
        for problem in train
    ]
    write_lines(folder / "sft.jsonl", conversations)


def problem_row(problem: Problem) -> dict[str, str]:
    return {
        "id": problem.id,
        "prompt": problem.prompt[-1].content,
        "answer": problem.answer,
        "data_source": problem.source,
    }


def write_tokenizer(folder: Path) -> Tokenizer:
    """A BPE of a few dozen tokens, trained on the cold start's text."""
    if (folder / "tokenizer" / "tokenizer.json").exists():
        return Tokenizer.load(folder / "tokenizer")
    rows = [json.loads(line) for line in (folder / "data" / "sft.jsonl").read_text().splitlines()]
    texts = [text for row in rows for text in (row["prompt"], row["completion"])]
    whole_tokens = ["<think>", "</think>", r"\boxed{"]
    tokenizer = train_bpe(texts, vocab_size=64, whole_tokens=whole_tokens, alphabet="seen")
    tokenizer.save(folder / "tokenizer")
    return tokenizer


# Stages.


def small_shape(vocab_size: int, max_context: int) -> ModelShape:
    return ModelShape(
        family="qwen3",
        qk_norm=True,  # allows the high rate that makes a minute enough
        vocab_size=vocab_size,
        hidden_size=64,
        intermediate_size=128,
        num_layers=2,
        num_heads=4,
        num_kv_heads=2,
        head_dim=16,
        max_context=max_context,
    )


def sft_recipe(folder: Path, seed: int, vocab_size: int) -> Sft:
    shape = small_shape(vocab_size, max_context=128)
    return Sft(
        run=parts.Run(name="sft", root=str(folder), seed=seed),
        model=parts.Model(shape=shape, tokenizer=str(folder / "tokenizer"), dtype=DTYPE),
        data=(Conversations(source=str(folder / "data" / "sft.jsonl")),),
        steps=1600,
        batch_size=32,
        max_length=64,
        optimizer=parts.Optimizer(lr=4e-3, beta2=0.98, warmup=40, schedule="linear"),
        checkpoints=parts.Checkpoints(every=200),
    )


def rl_recipe(folder: Path, seed: int, checkpoint: Path) -> Rl:
    return Rl(
        run=parts.Run(name="rl", root=str(folder), seed=seed),
        model=parts.Model(path=str(checkpoint), dtype=DTYPE),
        data=(ProblemSource(source=str(folder / "data" / "train.jsonl")),),
        eval=(test_set(folder),),
        eval_every=5,
        steps=30,
        prompts_per_step=32,
        samples_per_prompt=16,
        updates_per_step=2,
        max_prompt_tokens=MAX_PROMPT_TOKENS,
        sampling=parts.Sampling(max_new_tokens=MAX_NEW_TOKENS),
        dynamic_sampling=DynamicSampling(max_rounds=3),
        engine=parts.Engine(page_size=PAGE_SIZE),
        optimizer=parts.Optimizer(lr=3e-4, warmup=2),
    )


# Before and after.


def test_set(folder: Path) -> HeldOut:
    return HeldOut(source=str(folder / "data" / "test.jsonl"))


def evaluate_stage(stage: Outcome, folder: Path, seed: int) -> list[ProblemResult]:
    """Greedy and sampled, on the held-out problems; every attempt is recorded in the stage's folder."""
    return evaluate_checkpoint(
        stage.checkpoint,
        test_set(folder),
        parts.Sampling(max_new_tokens=MAX_NEW_TOKENS),
        num_samples=NUM_SAMPLES,
        output=stage.run / "eval",
        seed=seed,
        dtype=DTYPE,
    )


def headline(results: Sequence[ProblemResult]) -> dict[str, float]:
    figures = summarise(results)
    return {
        "greedy": figures["greedy"]["value"],
        f"mean@{NUM_SAMPLES}": figures[f"mean@{NUM_SAMPLES}"]["value"],
        "response_length": figures["samples"]["mean_length"],
    }


def pick_samples(
    problems: Sequence[Problem], before: Sequence[ProblemResult], after: Sequence[ProblemResult]
) -> list[dict[str, str]]:
    """Two problems whose greedy answer was wrong and became right, else the first two."""
    rows = [
        {
            "problem": problem.prompt[-1].content,
            "answer": problem.answer,
            "before": old.greedy.text,
            "after": new.greedy.text,
            "changed": old.greedy.status != "correct" and new.greedy.status == "correct",
        }
        for problem, old, new in zip(problems, before, after, strict=True)
        if old.greedy is not None and new.greedy is not None
    ]
    chosen = sorted(rows, key=lambda row: not row["changed"])[:2]
    return [{name: str(row[name]) for name in ("problem", "answer", "before", "after")} for row in chosen]


def write_lines(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    write_text(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
