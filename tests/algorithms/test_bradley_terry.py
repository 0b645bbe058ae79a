"""The loss of preference pairs by hand, and its parts against the whole."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from foresail.algorithms.bradley_terry import bradley_terry_loss
from foresail.records import PackedAnswers


def pairs(count: int, of: int, margins: Tensor | None = None) -> PackedAnswers:
    """`count` of an update's `of` pairs."""
    return PackedAnswers(
        segments_PK=torch.zeros(count, 2, dtype=torch.long),
        weights_P=torch.full((count,), 1 / of),
        margins_P=torch.zeros(count) if margins is None else margins,
    )


def test_by_hand():
    scores_P2 = torch.tensor([[2.0, 1.0], [1.0, 2.0], [0.0, 0.0]])
    loss, sums = bradley_terry_loss(scores_P2, pairs(3, of=3))
    expected = (math.log1p(math.exp(-1)) + math.log1p(math.exp(1)) + math.log(2)) / 3
    assert loss.item() == pytest.approx(expected)
    # sums over six answers: one pair of three is right, and equal scores are not
    assert sums["pairs/accuracy"].item() / 6 == pytest.approx(1 / 3)
    assert sums["pairs/lead"].item() / 6 == pytest.approx(0.0)
    assert sums["pairs/score"].item() / 6 == pytest.approx(1.0)


def test_margins_ask_for_more_and_centering_for_less():
    scores_P2, margins = torch.tensor([[2.0, 1.0]]), torch.tensor([3.0])
    asked, _ = bradley_terry_loss(scores_P2, pairs(1, of=1, margins=margins))
    assert asked.item() == pytest.approx(math.log1p(math.exp(2)))
    aside, _ = bradley_terry_loss(scores_P2, pairs(1, of=1, margins=margins), margin=0.0)
    assert aside.item() == pytest.approx(math.log1p(math.exp(-1)))
    centered, _ = bradley_terry_loss(scores_P2, pairs(1, of=1), center=0.1)
    assert centered.item() == pytest.approx(math.log1p(math.exp(-1)) + 0.9)


def test_parts_of_an_update_add_up_to_its_loss_and_gradient():
    scores_P2 = torch.randn(7, 2, generator=torch.Generator().manual_seed(0)).requires_grad_()
    margins = torch.rand(7, generator=torch.Generator().manual_seed(1))
    whole, _ = bradley_terry_loss(scores_P2, pairs(7, of=7, margins=margins), center=0.01)
    (expected,) = torch.autograd.grad(whole, scores_P2)
    parts = [
        bradley_terry_loss(scores_P2[a:b], pairs(b - a, of=7, margins=margins[a:b]), center=0.01)[0]
        for a, b in ((0, 3), (3, 3), (3, 7))
    ]
    (found,) = torch.autograd.grad(sum(parts), scores_P2)
    torch.testing.assert_close(sum(parts), whole)
    torch.testing.assert_close(found, expected)
