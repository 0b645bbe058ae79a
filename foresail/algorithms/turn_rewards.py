"""Rewards of single turns beside the outcome's, after MT-GRPO: on a turn's tokens, A_outcome + weight * A_turn.

A turn is compared with the same turn of its siblings: the first searches with one another, then the second ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from foresail.algorithms.advantages import grpo
from foresail.records import Sample

TurnRewards = Sequence[float | None]  # of a sample, turn by turn; None: this turn was not judged


def turn_reward_credit(
    samples: Sequence[Sample],
    advantages: Sequence[float],
    turn_rewards: Sequence[TurnRewards],
    *,
    weight: float,
) -> list[list[float]]:
    """Two samples of two tokens in two turns, A = [1, -1], first turns judged 1 and 0, weight .5:
    [1.35, 1] and [-1.35, -1].
    """
    check_turns(samples, turn_rewards)
    return [
        [
            advantage + weight * values[turn] if loss and turn < len(values) else advantage
            for turn, loss in zip(sample.turns, sample.loss_mask, strict=True)
        ]
        for sample, advantage, values in zip(samples, advantages, turn_advantages(turn_rewards), strict=True)
    ]


def check_turns(samples: Sequence[Sample], turn_rewards: Sequence[TurnRewards]) -> None:
    for number, (sample, rewards) in enumerate(zip(samples, turn_rewards, strict=True)):
        there = max(sample.turns, default=-1) + 1
        if len(rewards) > there:
            raise ValueError(
                f"sample {number} has {there} turns and {len(rewards)} turn rewards; give at most one a turn, "
                "None where a turn was not judged"
            )
        for turn, reward in enumerate(rewards):
            if reward is not None and not math.isfinite(reward):
                raise ValueError(
                    f"turn {turn} of sample {number} has the reward {reward}; give a finite number, or None where "
                    "it was not judged"
                )


def turn_advantages(turn_rewards: Sequence[TurnRewards]) -> list[list[float]]:
    """As `grpo`, at each turn's number among the samples that have a reward there; 0 without one, or alone.

    [1, 0], [0], [None, 1] -> [.71, -.71], [-.71], [0, .71]
    """
    advantages = [[0.0] * len(rewards) for rewards in turn_rewards]
    for turn in range(max(map(len, turn_rewards), default=0)):
        judged = {
            number: rewards[turn]
            for number, rewards in enumerate(turn_rewards)
            if turn < len(rewards) and rewards[turn] is not None
        }
        if len(judged) > 1:
            row = grpo(torch.tensor([list(judged.values())], dtype=torch.float64))[0]
            for number, advantage in zip(judged, row.tolist(), strict=True):
                advantages[number][turn] = advantage
    return advantages
