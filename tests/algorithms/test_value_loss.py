"""The critic's loss against numbers worked out by hand, and against a plain loop over tokens."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from foresail.algorithms.batch_losses import explained_variance, value_loss
from foresail.records import PackedBatch

numbers = st.floats(-2, 2, width=32)


def batch(old: list[float], returns: list[float]) -> PackedBatch:
    """Only what the loss reads is true of it."""
    none = torch.zeros(0)
    return PackedBatch(
        ids_T=none,
        positions_T=none,
        starts_S1=none,
        targets_M=none,
        sources_M=none,
        sequence_M=none,
        weights_M=torch.full((len(old),), 99.0),  # the policy's; the critic has its own
        values_M=torch.tensor(old, dtype=torch.float64),
        returns_M=torch.tensor(returns, dtype=torch.float64),
    )


def of(values: list[float], *, grad: bool = False) -> Tensor:
    return torch.tensor(values, dtype=torch.float64, requires_grad=grad)


def test_by_hand() -> None:
    # 2 from 0, return 3: bounded to .5, (.5 - 3)^2 = 6.25 beats (2 - 3)^2 = 1.
    # 2 from 0, return 1: (2 - 1)^2 = 1 beats (.5 - 1)^2 = .25: too far, so it may come back.
    # .3 from 0, return 1: .49, within the bound. Half of the mean over 4 tokens, one of them elsewhere.
    values = of([2.0, 2.0, 0.3], grad=True)
    loss, sums = value_loss(values, batch([0.0] * 3, [3.0, 1.0, 1.0]), clip=0.5, num_tokens=4)
    assert loss.item() == pytest.approx((6.25 + 1 + 0.49) / 8)
    assert sums["critic/vf_clipfrac"].item() == 1
    loss.backward()
    assert values.grad is not None
    assert values.grad.tolist() == pytest.approx([0.0, 0.25, -0.7 / 4])


@given(st.lists(st.tuples(numbers, numbers, numbers), min_size=1, max_size=8), st.none() | st.floats(0.1, 1))
def test_is_a_plain_loop_over_tokens(tokens: list[tuple[float, float, float]], clip: float | None) -> None:
    total, clipped = 0.0, 0
    for value, old, target in tokens:
        plain, bounded = (value - target) ** 2, 0.0
        if clip is not None:
            bounded = (min(max(value, old - clip), old + clip) - target) ** 2
        total += max(plain, bounded) / 2
        clipped += bounded > plain + 1e-9
    values, old_values, targets = (list(column) for column in zip(*tokens, strict=True))
    loss, sums = value_loss(of(values), batch(old_values, targets), clip=clip, num_tokens=len(tokens))
    assert loss.item() == pytest.approx(total / len(tokens), abs=1e-9)
    assert sums["critic/vf_clipfrac"].item() >= clipped


def test_shares_of_micro_batches_add_up_to_the_updates_mean() -> None:
    values, old, targets = torch.randn(3, 11, generator=torch.Generator().manual_seed(0)).tolist()
    whole, sums = value_loss(of(values), batch(old, targets), clip=0.2, num_tokens=11)
    shares = [
        value_loss(of(values[part]), batch(old[part], targets[part]), clip=0.2, num_tokens=11)
        for part in (slice(0, 2), slice(2, 9), slice(9, 11))
    ]
    assert sum(loss.item() for loss, _ in shares) == pytest.approx(whole.item())
    name = "critic/vf_clipfrac"
    assert sum(found[name].item() for _, found in shares) == sums[name].item() > 0


def test_explained_variance_by_hand() -> None:
    assert explained_variance(of([0, 1]), of([0, 2])) == pytest.approx(0.75)
    assert explained_variance(of([3, 3, 3]), of([0, 1, 5])) == pytest.approx(0)
    assert explained_variance(of([0, 1, 5]), of([0, 1, 5])) == 1
    assert explained_variance(of([1, 0]), of([0, 1])) == pytest.approx(-3)
    assert explained_variance(of([1, 0]), of([1, 1])) == 0
