"""Runs whose verdicts come in an order that their seed decides, and what must be equal in them all the same."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

from tiny_world import tiny_shape

from foresail.recipe.shape.model_shape import ModelShape
from foresail.runlog.directory import RunDirectory

# What the clock decides: times, speeds, how much was under way when a step closed, how often drafts were worth it.
BY_THE_CLOCK = (
    "timing_s/",
    "perf/throughput",
    "perf/mfu/",
    "perf/max_memory_allocated_gb",
    "rollout/tokens_per_second",
    "rollout/groups_surplus",
    "rollout/groups_cancelled",
    "rollout/drafted_steps",
    "rollout/tokens_per_drafted_step",
    "agent/waiting/",
    "agent/tool_seconds/",
)
SLOW_GRADER = """
    import random, time

    def score(completions, **kwargs):
        time.sleep(random.Random(f"SEED {completions}").random() / 100)
        return [float(text.count("1") > text.count("2")) for text in completions]
"""


def write_slow_grader(folder: Path, seed: str) -> str:
    """What untrained weights get right now and then, judged after waits that runs of other seeds do not share."""
    (folder / "slow_rewards.py").write_text(textwrap.dedent(SLOW_GRADER).replace("SEED", seed))
    return f"{folder}/slow_rewards.py:score"


def wide_shape(vocab_size: int) -> ModelShape:
    """Wide enough for a product's sums to depend on how many rows it has."""
    return tiny_shape(vocab_size).model_copy(
        update={
            "hidden_size": 128,
            "intermediate_size": 320,
            "num_heads": 4,
            "num_kv_heads": 2,
            "head_dim": 32,
        }
    )


def steady_metrics(run: Path) -> list[dict[str, Any]]:
    """The run's records without what the clock decides."""
    return [
        {name: value for name, value in record.items() if not name.startswith(BY_THE_CLOCK)}
        for record in RunDirectory(run).read_metrics()
    ]


def drawn(run: Path) -> list[tuple[list[int], list[float]]]:
    """Ids and log-probabilities of every sample of every step."""
    directory = RunDirectory(run)
    rows = [row for step in directory.rollout_steps() for row in directory.read_rollouts(step)]
    return [(row["ids"], row["logprobs"]) for row in rows]
