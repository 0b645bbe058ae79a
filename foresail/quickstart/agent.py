"""From nothing to an agent that searches until it knows, in minutes on two CPU cores.

    a world -> tokenizer -> SFT cold start -> GRPO over episodes -> summary

The cold start teaches how to search, and two habits: most examples answer after the first search, which is too
soon, the others follow the chain to its end. Only the answers' verdicts tell the model which is better. Every part
writes its files to the run's folder, so a stopped run resumes.

    foresail quickstart agent
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from foresail.data.made.multi_hop import make_problems
from foresail.data.made.multi_hop_traces import converse
from foresail.quickstart.reasoning import DTYPE, small_shape, write_lines
from foresail.quickstart.stages import train_stage
from foresail.recipe.stages.rl import Rl
from foresail.recipe.stages.sft import Sft
from foresail.recipe.tables import parts
from foresail.recipe.tables.environment import Environment
from foresail.recipe.tables.reward import Reward
from foresail.recipe.tables.sources import Conversations, HeldOut, ProblemSource
from foresail.records import Message, Problem
from foresail.runlog.atomic import write_text
from foresail.runlog.directory import RunDirectory
from foresail.runlog.episode import episode_lines
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.tokenizer.train import train_bpe
from foresail.train.stopwatch import Stopwatch

HOPS, NUM_TRAIN, NUM_TEST = 2, 8000, 100
TOO_SOON_SHARE = 0.75  # of the cold start's examples answer after the first search
MAX_PROMPT_TOKENS, MAX_NEW_TOKENS, MAX_TURNS = 24, 120, 4
MARKS = ("<search>", "</search>", "<answer>", "</answer>")


def run_quickstart_agent(folder: Path, *, seed: int, note: Callable[[str], None]) -> dict[str, Any]:
    """Run all parts; returns the content of summary.json."""
    watch = Stopwatch()
    with watch("world and tokenizer"):
        note(
            f"a world of people and relations: {NUM_TRAIN} questions of {HOPS} searches, {NUM_TEST} held out"
        )
        tokenizer = write_conversations(folder, seed)
    with watch("sft"):
        note(
            f"cold start: {TOO_SOON_SHARE:.0%} of the examples answer too soon, the others search to the end"
        )
        sft = train_stage(sft_recipe(folder, seed, tokenizer.vocab_size))
    with watch("rl"):
        note("reinforcement over episodes: right answers are rewarded, nothing else is said")
        rl = train_stage(rl_recipe(folder, seed, sft.checkpoint))
    run = RunDirectory(rl.run)
    held_out = [
        next(iter(measured.values())) for record in run.read_metrics() if (measured := accuracies(record))
    ]
    summary = {
        "seed": seed,
        "seconds": {name: round(value, 2) for name, value in {**watch.seconds, "total": watch.total}.items()},
        "before": held_out[0],
        "after": held_out[-1],
        "episodes": {"before": pick_episode(run, 1), "after": pick_episode(run, run.rollout_steps()[-1])},
        "checkpoints": {"sft": str(sft.checkpoint), "rl": str(rl.checkpoint)},
    }
    write_text(folder / "summary.json", json.dumps(summary, indent=2, ensure_ascii=False) + "\n")
    return summary


# Data.


def write_conversations(folder: Path, seed: int) -> Tokenizer:
    """The episodes of the cold start, and a tokenizer of a few hundred words for them."""
    path = folder / "tokenizer"
    if (path / "tokenizer.json").exists():
        return Tokenizer.load(path)
    habit = random.Random(f"habit {seed}")
    episodes = [
        too_soon(problem) if habit.random() < TOO_SOON_SHARE else to_the_end(problem)
        for problem in make_problems(NUM_TRAIN, seed=seed, hops=(HOPS, HOPS))
    ]
    rows = [{"messages": [vars(message) for message in episode]} for episode in episodes]
    (folder / "data").mkdir(parents=True, exist_ok=True)
    write_lines(folder / "data" / "sft.jsonl", rows)
    texts = [message.content for episode in episodes[:2000] for message in episode]
    tokenizer = train_bpe(texts, vocab_size=320, whole_tokens=MARKS, alphabet="seen")
    tokenizer.save(path)
    return tokenizer


def to_the_end(problem: Problem) -> tuple[Message, ...]:
    return converse(problem, problem.extra["searches"], problem.answer)


def too_soon(problem: Problem) -> tuple[Message, ...]:
    """An episode that answers with the first search's result."""
    return converse(problem, problem.extra["searches"][:1], problem.extra["values"][0])


# Stages.


def sft_recipe(folder: Path, seed: int, vocab_size: int) -> Sft:
    shape = small_shape(vocab_size, max_context=256)
    return Sft(
        run=parts.Run(name="sft", root=str(folder), seed=seed),
        model=parts.Model(shape=shape, tokenizer=str(folder / "tokenizer"), dtype=DTYPE),
        data=(Conversations(source=str(folder / "data" / "sft.jsonl")),),
        steps=1000,
        batch_size=16,
        max_length=160,
        optimizer=parts.Optimizer(lr=4e-3, beta2=0.98, warmup=40, schedule="linear"),
        checkpoints=parts.Checkpoints(every=200),
    )


def rl_recipe(folder: Path, seed: int, checkpoint: Path) -> Rl:
    source = f"multi-hop:count={{}},seed={seed},hops={HOPS},split={{}}"
    return Rl(
        run=parts.Run(name="rl", root=str(folder), seed=seed),
        model=parts.Model(path=str(checkpoint), dtype=DTYPE),
        data=(ProblemSource(source=source.format(NUM_TRAIN, "train")),),
        eval=(HeldOut(source=source.format(NUM_TEST, "test"), samples=4),),
        eval_every=5,
        steps=20,
        prompts_per_step=16,
        samples_per_prompt=8,
        max_prompt_tokens=MAX_PROMPT_TOKENS,
        sampling=parts.Sampling(max_new_tokens=MAX_NEW_TOKENS),
        environment=Environment(name="multi-hop", max_turns=MAX_TURNS),
        reward=Reward(grader="qa"),
        engine=parts.Engine(page_size=8),
        optimizer=parts.Optimizer(lr=1e-3, warmup=2),
    )


# Before and after.


def accuracies(record: dict[str, Any]) -> dict[str, float]:
    return {name: value for name, value in record.items() if name.startswith("val-core/") and "/acc/" in name}


def pick_episode(run: RunDirectory, step: int) -> list[str]:
    """The first episode of a step, as lines."""
    row = run.read_rollouts(step)[0]
    return [*episode_lines(row, f"{row['problem']}.{row['sample']}, step {step}")]
