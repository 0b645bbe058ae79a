"""A small RL run whose samples are one step old (`rollout.staleness = 1`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tiny_world import HELD_OUT, rl_recipe

from foresail.recipe.stages.rl import Rl
from foresail.recipe.tables.dynamic_sampling import DynamicSampling
from foresail.recipe.tables.parts import Engine, Problems, Rollout
from foresail.recipe.tables.policy_loss import Loss

STEPS = 4


def stale_recipe(checkpoint: Path, root: Path, *, workers: int = 0, staleness: int = 1, **changes: Any) -> Rl:
    given: dict[str, Any] = {
        "steps": STEPS,
        "prompts_per_step": 3,
        "samples_per_prompt": 6,
        "eval": Problems(source=HELD_OUT),
        "eval_every": 2,
        "loss": Loss(old_logprobs="trainer", importance_cap=2.0),
        "dynamic_sampling": DynamicSampling(easy_pool=0.2),
        "engine": Engine(batch_invariant=True),
    }
    rollout = Rollout(workers=workers, staleness=staleness)
    if workers:
        return rl_recipe(checkpoint, root, rollout=rollout, **given | changes)
    return rl_recipe(checkpoint, root, **given | changes).model_copy(update={"rollout": rollout})
