"""A small run whose samples vLLM draws learns as one of the native engine does.

The task: end on an even digit, which the starting model does about every second time. Judged by the mean reward of
the first and of the last third of the steps. Runs of the native engine with other seeds say how far two honest runs
lie apart; vLLM's must lie within four of their standard deviations of their mean, or 0.08 where those are small.
A run that never gets its new weights, as if rollouts were of a stale policy, must fall outside.
"""

from __future__ import annotations

import json
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest
from tiny_world import rl_recipe, sft_recipe, tiny_shape

from foresail.recipe.tables.cluster import Cluster
from foresail.recipe.tables.parts import Checkpoints, Model, Optimizer, Rollout, Run
from foresail.recipe.tables.reward import Reward
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.train.stages.rl import run_rl
from foresail.train.stages.sft import run_sft

STEPS = 15
WIDEST, NARROWEST = 4.0, 0.08
EVEN = "def even(response, answer): return float(any(response.rstrip('}').endswith(digit) for digit in '02468'))\n"


@pytest.fixture(scope="module")
def start(tiny_tokenizer: Path, tiny_conversations: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As the tiny checkpoint of other tests, with heads as wide as vLLM asks for on a CPU."""
    vocab_size = Tokenizer.load(tiny_tokenizer).vocab_size
    wide = {"hidden_size": 32, "num_heads": 1, "num_kv_heads": 1, "head_dim": 32}
    model = Model(
        shape=tiny_shape(vocab_size).model_copy(update=wide), tokenizer=str(tiny_tokenizer), dtype="float32"
    )
    root = tmp_path_factory.mktemp("start")
    with redirect_stdout(StringIO()):
        run = run_sft(sft_recipe(tiny_tokenizer, tiny_conversations, root, model=model)).run
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


def thirds(rows: list[dict[str, float]]) -> tuple[float, float]:
    """Mean reward of the first and of the last steps."""
    rewards = [row["rollout/reward"] for row in rows]
    return fmean(rewards[: STEPS // 3]), fmean(rewards[-STEPS // 3 :])


def test_a_run_on_vllm_learns_like_one_on_the_native_engine(start: Path, tmp_path: Path) -> None:
    curves = [thirds(learn(start, tmp_path, seed=seed)) for seed in range(1, 6)]
    bands = []
    for values in zip(*curves, strict=True):
        reach = max(WIDEST * stdev(values), NARROWEST)
        bands.append((fmean(values) - reach, fmean(values) + reach))

    def inside(rows: list[dict[str, float]]) -> list[bool]:
        return [low <= value <= high for (low, high), value in zip(bands, thirds(rows), strict=True)]

    stale = learn(start, tmp_path, seed=0, lr=1e-9)
    assert inside(stale) == [True, False] or inside(stale) == [False, False], (bands, thirds(stale))
    ours = learn(start, tmp_path, seed=0, backend="vllm")
    print(bands, curves, thirds(ours), thirds(stale))
    assert inside(ours) == [True, True], (bands, thirds(ours))
    assert max(row["rollout/logprob_abs_diff_max"] for row in ours) < 1e-4
    assert all(row["timing_s/weight_sync"] > 0 for row in ours)
