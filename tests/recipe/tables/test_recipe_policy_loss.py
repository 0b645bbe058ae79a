"""The [loss] table of RL: keys that say nothing alone, and what they need besides."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from foresail.recipe.stages.rl import Rl
from foresail.recipe.tables.environment import Environment
from foresail.recipe.tables.parts import Advantage, Model
from foresail.recipe.tables.policy_loss import NEEDS, Loss, loss_mistakes
from foresail.recipe.tables.reward import Reward, Term
from foresail.recipe.tables.sources import ProblemSource

TRAINER = {"old_logprobs": "trainer"}


def rl(**changes: Any) -> Rl:
    return Rl(model=Model(path="model"), data=(ProblemSource(source="problems.jsonl"),), steps=3, **changes)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"dual_clip": 3.0, "kind": "sapo"},
            'loss.dual_clip has an effect with loss.kind = "clip" only; remove it',
        ),
        (
            {"sapo_temperature_pos": 2.0},
            'loss.sapo_temperature_pos has an effect with loss.kind = "sapo" only',
        ),
        (
            {"importance_level": "sequence"},
            "loss.importance_level has an effect with loss.importance_cap = 2 only",
        ),
        ({"importance_range": (0.1, 3.0)}, 'has an effect with loss.importance_mask = "sequence" only'),
        ({"entropy_step": 0.1}, "loss.entropy_step has an effect with loss.entropy_target = 0.2 only"),
        ({"importance_mask": "token"}, "loss.importance_mask compares the trainer's log-probabilities"),
        ({"importance_mask": "token", **TRAINER, "importance_range": (2.0, 1.0)}, "are not two ratios"),
        ({"top_entropy_quantile": 0.2}, 'old log-probabilities; set loss.old_logprobs = "trainer"'),
        ({"top_entropy_quantile": 0.0, **TRAINER}, "greater than 0"),
        ({"entropy_target": 0.2, "entropy_weight": 2.0}, "begins above loss.entropy_weight_max 1"),
        ({"echo_weight": 0.1}, "and there is no environment; add .environment., or remove it"),
    ],
)
def test_what_cannot_be_is_told_with_its_mend(given: dict[str, Any], message: str) -> None:
    with pytest.raises((ValidationError, ValueError), match=message):
        rl(loss=Loss(**given))


@pytest.mark.parametrize(
    "given",
    [
        {"kind": "sapo", "sapo_temperature_neg": 1.2},
        {"importance_mask": "sequence_mean", "importance_range": [0.99, 1.01], **TRAINER},
        {"importance_cap": 2.0, "importance_level": "sequence", **TRAINER},
        {"top_entropy_quantile": 0.2, **TRAINER},
        {"off_policy_mask_threshold": 0.1, "kl": "k3_unbiased", "kl_weight": 0.01},
        {"entropy_target": 0.2, "entropy_step": 0.01},
    ],
)
def test_what_goes_together_is_accepted(given: dict[str, Any]) -> None:
    assert rl(loss=Loss(**given)).loss == Loss(**given)


def test_every_key_that_needs_another_is_one_of_the_table() -> None:
    assert set(NEEDS) < set(Loss.model_fields) and list(loss_mistakes(Loss())) == []


def test_an_environment_may_be_learned_from() -> None:
    recipe = rl(loss=Loss(echo_weight=0.1), environment=Environment(tools=("calculator",)))
    assert recipe.loss.echo_weight == 0.1


def test_one_reward_is_not_compared_part_by_part() -> None:
    with pytest.raises(ValueError, match="each of several rewards by itself, and there is one; add"):
        rl(advantage=Advantage(kind="gdpo"))
    with pytest.raises(ValueError, match="there is one; add"):  # a term of no weight is only measured
        rl(advantage=Advantage(kind="gdpo"), reward=Reward(terms=(Term(grader="my.py:brevity", weight=0),)))
    several = (Reward(terms=(Term(grader="my.py:brevity"),)), Reward(overlong_buffer=10, workers=0))
    assert all(rl(advantage=Advantage(kind="gdpo"), reward=reward) for reward in several)
