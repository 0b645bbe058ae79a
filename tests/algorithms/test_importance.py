"""Truncated importance weights: hand numbers, the cap, and what they are for."""

import pytest
import torch

from foresail.algorithms.mismatch import truncated_weights


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
