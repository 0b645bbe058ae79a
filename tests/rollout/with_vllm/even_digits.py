"""Runs that learn to end on an even digit, which the model they start from does about every second time."""

from __future__ import annotations

import json
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from tiny_world import rl_recipe, sft_recipe, tiny_shape

from foresail.recipe.tables.cluster import Cluster
from foresail.recipe.tables.parts import Checkpoints, Model, Optimizer, Rollout, Run
from foresail.recipe.tables.reward import Reward
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.train.stages.rl import run_rl
from foresail.train.stages.sft import run_sft

STEPS = 15
EVEN = "def even(response, answer): return float(any(response.rstrip('}').endswith(digit) for digit in '02468'))\n"


def train_start(tokenizer: Path, conversations: Path, root: Path) -> Path:
    """As the tiny checkpoint of other tests, with heads as wide as vLLM asks for on a CPU."""
    vocab_size = Tokenizer.load(tokenizer).vocab_size
    wide = {"hidden_size": 32, "num_heads": 1, "num_kv_heads": 1, "head_dim": 32}
    model = Model(
        shape=tiny_shape(vocab_size).model_copy(update=wide), tokenizer=str(tokenizer), dtype="float32"
    )
    with redirect_stdout(StringIO()):
        run = run_sft(sft_recipe(tokenizer, conversations, root, model=model)).run
    (root / "reward.py").write_text(EVEN)
    return run / "checkpoints" / "step_60"


def learn(
    start: Path,
    root: Path,
    *,
    seed: int,
    lr: float = 2e-3,
    steps: int = STEPS,
    cluster: Cluster | None = None,
    **rollout: Any,
) -> list[dict[str, float]]:
    """The metrics of every step."""
    recipe = rl_recipe(
        start,
        root,
        run=Run(name=f"rl-{len([*root.iterdir()])}", root=str(root), device="cpu", seed=seed),
        steps=steps,
        cluster=cluster or Cluster(),
        prompts_per_step=8,
        reward=Reward(grader=f"{start.parents[2] / 'reward.py'}:even"),
        optimizer=Optimizer(lr=lr),
        checkpoints=Checkpoints(every=1000),
        rollout=Rollout(**rollout),
    )
    with redirect_stdout(StringIO()):
        run = run_rl(recipe).run
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [row for row in rows if row["step"] > 0]
