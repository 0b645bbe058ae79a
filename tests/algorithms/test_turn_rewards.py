"""Rewards of single turns: by hand, and against the advantages of outcomes."""

import math

import pytest
import torch
from small_episodes import episode

from foresail.algorithms.advantages import grpo, uniform_credit
from foresail.algorithms.turn_rewards import turn_advantages, turn_reward_credit

HALF = math.sqrt(
    0.5
)  # what two siblings with different rewards are apart from their mean, in standard deviations


def test_turn_rewards_by_hand():
    samples = [episode((1, 2), (1, 1)), episode((1, 1), (1, 1))]
    found = turn_reward_credit(samples, [1.0, -1.0], [[1.0, None], [0.0, None]], weight=0.5)
    assert found[0] == pytest.approx([1.0, 1 + HALF / 2, 1 + HALF / 2, 1.0, 1.0], abs=1e-5)
    assert found[1] == pytest.approx([-1.0, -1 - HALF / 2, -1.0, -1.0], abs=1e-5)


def test_a_turn_is_compared_with_the_same_turn_of_its_siblings():
    found = turn_advantages([[1.0, 0.0], [0.0], [None, 1.0]])
    assert found[0] == pytest.approx([HALF, -HALF], abs=1e-5)
    assert found[1] == pytest.approx([-HALF], abs=1e-5)
    assert found[2] == pytest.approx([0.0, HALF], abs=1e-5)


def test_turn_advantages_are_grpo_s_of_each_column():
    rewards = torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(
        torch.tensor(turn_advantages(rewards.tolist()), dtype=torch.float64), grpo(rewards.T).T
    )


@pytest.mark.parametrize("rewards", [[[], []], [[0.7], [0.7]], [[None, 3.0], [None]], [[None], [None]]])
def test_turns_without_siblings_to_differ_from_leave_credit_as_it_is(rewards):
    samples = [episode((1, 2), (1, 1)), episode((1, 1), (1, 1))]
    found = turn_reward_credit(samples, [1.0, -1.0], rewards, weight=1.0)
    assert found == [uniform_credit(samples[0], 1.0), uniform_credit(samples[1], -1.0)]


def test_what_is_no_reward_of_a_turn_is_refused():
    samples = [episode((1, 1), (1, 1)), episode((1, 1))]
    with pytest.raises(ValueError, match="sample 1 has 1 turns and 2 turn rewards; give at most one a turn"):
        turn_reward_credit(samples, [0.0, 0.0], [[1.0, 0.0], [1.0, 0.0]], weight=1.0)
    with pytest.raises(
        ValueError, match="turn 1 of sample 0 has the reward nan; give a finite number, or None"
    ):
        turn_reward_credit(samples, [0.0, 0.0], [[1.0, math.nan], [1.0]], weight=1.0)
