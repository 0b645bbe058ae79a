r"""A world small enough for tests: two-step arithmetic, a tokenizer for it, and a model of 10 k parameters.

The checkpoint writes `\boxed{digit}` and is right now and then, so reinforcement has something to learn
from in its first step.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from foresail.data.made.arithmetic import direct, make_problems
from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.stages.rl import Rl
from foresail.recipe.stages.sft import Sft
from foresail.recipe.tables.parts import Checkpoints, Model, Optimizer, Problems, Run, Sampling
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.tokenizer.train import train_bpe

PROBLEMS = "arithmetic:count=200,steps=2"
HELD_OUT = "arithmetic:count=20,steps=2,split=test"
MAX_PROMPT, MAX_NEW = 12, 8


def write_lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def write_conversations(path: Path, count: int = 200) -> Path:
    problems = make_problems(count, seed=0, steps=(2, 2))
    return write_lines(path, [{"prompt": p.prompt[-1].content, "completion": direct(p)} for p in problems])


def make_tokenizer() -> Tokenizer:
    problems = make_problems(200, seed=0, steps=(2, 2))
    texts = [text for p in problems for text in (p.prompt[-1].content, direct(p))]
    return train_bpe(texts, vocab_size=40, whole_tokens=[r"\boxed{"], alphabet="seen")


def tiny_shape(vocab_size: int) -> ModelShape:
    return ModelShape(
        vocab_size=vocab_size,
        hidden_size=24,
        intermediate_size=48,
        num_layers=2,
        num_heads=2,
        num_kv_heads=1,
        head_dim=12,
        max_context=32,
    )


def sft_recipe(tokenizer: Path, data: Any, root: Path, **changes: Any) -> Sft:
    given: dict[str, Any] = {
        "run": Run(name="sft", root=str(root), device="cpu"),
        "model": Model(
            shape=tiny_shape(Tokenizer.load(tokenizer).vocab_size), tokenizer=str(tokenizer), dtype="float32"
        ),
        "data": str(data) if isinstance(data, Path) else data,
        "steps": 60,
        "batch_size": 32,
        "max_length": 24,
        "micro_batch_tokens": 1024,
        "optimizer": Optimizer(lr=5e-3, warmup=5),
        "checkpoints": Checkpoints(every=1000),
    }
    return Sft(**given | changes)


def rl_recipe(checkpoint: Path, root: Path, **changes: Any) -> Rl:
    given: dict[str, Any] = {
        "run": Run(name="rl", root=str(root), device="cpu"),
        "model": Model(path=str(checkpoint), dtype="float32"),
        "data": Problems(source=PROBLEMS),
        "steps": 2,
        "prompts_per_step": 6,
        "samples_per_prompt": 8,
        "max_prompt_tokens": MAX_PROMPT,
        "micro_batch_tokens": 256,
        "sampling": Sampling(max_new_tokens=MAX_NEW),
        "optimizer": Optimizer(lr=1e-3),
        "checkpoints": Checkpoints(every=1),
    }
    return Rl(**given | changes)
