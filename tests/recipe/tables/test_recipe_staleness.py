"""`rollout.staleness = 1`: what it asks of the rest of a recipe is told before anything is loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tiny_world import rl_recipe, tiny_shape

from foresail.recipe.estimates.placement import lines_for
from foresail.recipe.stages.rl import Rl
from foresail.recipe.tables.cluster import Cluster
from foresail.recipe.tables.dynamic_sampling import DynamicSampling
from foresail.recipe.tables.parts import Rollout
from foresail.recipe.tables.policy_loss import Loss

CAPPED = Loss(old_logprobs="trainer", importance_cap=2.0)
SEPARATE = Cluster(kind="ray", placement="separate")


def make(*, loss: Loss = CAPPED, workers: int = 1, staleness: int = 1, **changes: Any) -> Rl:
    given = {"rollout": Rollout(workers=workers, staleness=staleness), "loss": loss, **changes}
    return rl_recipe(Path("model"), Path("runs"), **given)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"workers": 0}, r"in the trainer's process; set rollout\.workers = 1 or more"),
        ({"cluster": Cluster(kind="ray")}, r'take turns with it; set cluster\.placement = "separate"'),
        ({"loss": Loss()}, r'set loss\.importance_cap = 2 and loss\.old_logprobs = "trainer"'),
        ({"loss": Loss(importance_cap=2.0)}, r'set loss\.old_logprobs = "trainer"'),
        (
            {"dynamic_sampling": DynamicSampling(carry=True)},
            r"two versions old; set dynamic_sampling\.carry = false",
        ),
    ],
)
def test_what_does_not_go_with_it_is_refused_by_name(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        make(**changes)


def test_engines_with_weights_of_their_own_are_accepted() -> None:
    make()
    make(cluster=SEPARATE)
    make(rollout=Rollout(backend="vllm", staleness=1))


def test_the_copy_that_engines_read_is_counted() -> None:
    in_turns, ahead = (make(staleness=n).estimate_memory(tiny_shape(40), "cpu") for n in (0, 1))
    assert (in_turns.engine_weights, ahead.engine_weights) == (0, ahead.weights)
    assert make(staleness=0).engines_beside == 0 and make(workers=3).engines_beside == 3
    assert make(cluster=SEPARATE.model_copy(update={"address": "10.0.0.1:6379"})).engines_beside == 0


def test_the_placement_says_that_nobody_waits_in_turns() -> None:
    ahead, in_turns = (
        "\n".join(lines_for(SEPARATE, Rollout(workers=1, staleness=staleness), "cpu")) for staleness in (1, 0)
    )
    assert "generate the next step while the trainer updates" in ahead
    assert "workers wait while the trainer updates" in in_turns and "next step" not in in_turns
