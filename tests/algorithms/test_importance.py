"""Importance weights and masks: hand numbers, the cap, and what they are for."""

import pytest
import torch

from foresail.algorithms.mismatch import importance_ratios, on_policy_enough, sequence_ratios, within


def truncated_weights(old, rollout, cap):
    return importance_ratios(old, rollout).clamp(max=cap)


def test_weights_by_hand():
    # .6 / .2 = 3 -> 2;  .3 / .2 = 1.5;  .1 / .4 = .25
    old, rollout = torch.tensor([0.6, 0.3, 0.1]).log(), torch.tensor([0.2, 0.2, 0.4]).log()
    assert truncated_weights(old, rollout, 2.0).tolist() == pytest.approx([2.0, 1.5, 0.25])


def test_weights_carry_no_gradient():
    old = torch.tensor([-1.0], requires_grad=True)
    assert not truncated_weights(old, torch.tensor([-1.1]), 2.0).requires_grad


def test_below_the_cap_the_mean_over_the_engine_is_the_mean_over_the_trainer():
    trainer = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
    engine = torch.tensor([0.4, 0.4, 0.2], dtype=torch.float64)
    score = torch.tensor([1.0, -2.0, 5.0], dtype=torch.float64)
    mean = (engine * truncated_weights(trainer.log(), engine.log(), 2.0) * score).sum()
    assert mean.item() == pytest.approx(0.5 * 1 - 0.3 * 2 + 0.2 * 5)  # .9
    assert (engine * score).sum().item() == pytest.approx(0.6)


def test_absurd_gaps_stay_finite():
    gaps = torch.tensor([-1000.0, 1000.0])
    assert truncated_weights(gaps, torch.zeros(2), 2.0).tolist() == pytest.approx([0.0, 2.0], abs=1e-8)


def test_ratios_of_sequences_by_hand():
    # Sequence 0: 3 * 1.5 = 4.5, root 2.1213; sequence 1: .25 alone.
    old, rollout = torch.tensor([0.6, 0.3, 0.1]).log(), torch.tensor([0.2, 0.2, 0.4]).log()
    found = {
        mean: sequence_ratios(old, rollout, torch.tensor([0, 0, 1]), num_sequences=2, mean=mean)
        for mean in (False, True)
    }
    assert found[False].tolist() == pytest.approx([4.5, 4.5, 0.25])
    assert found[True].tolist() == pytest.approx([4.5**0.5, 4.5**0.5, 0.25])
    assert within(found[True], (0.25, 2.0)).tolist() == [False, False, True]


def test_only_far_sequences_with_negative_advantages_are_left_out():
    # mean log(pi_engine / pi): (.4 + 0) / 2 = .2, and -.3 for the one the policy has come to like
    engine, policy = torch.tensor([-1.0, -1.0, -2.0]), torch.tensor([-1.4, -1.0, -1.7])
    sequences = {"num_sequences": 2, "threshold": 0.1}
    for advantages, expected in (
        ([-1, -1, -1], [False, False, True]),
        ([1, -1, -1], [True, False, True]),  # where turns have advantages of their own
        ([0, 1, 1], [True, True, True]),
    ):
        kept = on_policy_enough(
            policy, engine, torch.tensor(advantages), torch.tensor([0, 0, 1]), **sequences
        )
        assert kept.tolist() == expected
