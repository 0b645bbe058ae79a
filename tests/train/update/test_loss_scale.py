"""float16 gradients: what would be nothing is not lost, what would be infinite is done again with less."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from foresail.recipe.tables.parts import Optimizer
from foresail.train.learner import Learner
from foresail.train.optim.gradients import LARGER_AFTER, LossScale
from foresail.train.optim.master_adamw import MasterAdamW
from foresail.train.update.step import BatchLoss, train_step

WIDTH = 8


def linear(dtype: torch.dtype) -> nn.Linear:
    model = nn.Linear(WIDTH, WIDTH, bias=False)
    nn.init.constant_(model.weight, 0.5)
    return model.to(dtype)


class Batch:
    ids_T = targets_M = torch.zeros(1)


def update(size: float) -> tuple[nn.Linear, MasterAdamW, float]:
    """One update by the gradient of `size` for every weight; its norm."""
    model = linear(torch.float16)
    optimizer = MasterAdamW(model, Optimizer(lr=1e-2, weight_decay=0.0, eps=1e-20, clip_norm=1e9))

    def batch_loss(model: nn.Linear, batch: Batch) -> BatchLoss:
        return BatchLoss(model(torch.ones(1, WIDTH, dtype=torch.float16)).float().sum() * size, {})

    learner = Learner(name="linear", model=model, optimizer=optimizer)
    found = train_step(learner, [Batch()], batch_loss, learning_rate=1e-2)  # type: ignore[list-item, arg-type]
    return model, optimizer, found["grad_norm"]


def test_gradients_too_small_for_float16_are_kept():
    _, _, norm = update(1e-9)
    assert norm == pytest.approx(WIDTH * 1e-9, rel=1e-3)  # 64 of 1e-9; float16's least number is 6e-8


def test_gradients_too_large_are_computed_again_with_less():
    model, optimizer, norm = update(100.0)
    assert norm == pytest.approx(WIDTH * 100, rel=1e-3)
    assert optimizer.gradients.scale is not None and optimizer.gradients.scale.factor == 2.0**8
    assert model.weight.float().mean().item() == pytest.approx(0.5 - 1e-2, rel=1e-3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_other_numbers_need_no_scale(dtype):
    optimizer = MasterAdamW(linear(dtype), Optimizer())
    assert optimizer.gradients.scale is None and "loss scale" not in optimizer.state()


def test_it_grows_while_all_goes_well_and_knows_when_it_is_not_to_blame():
    scale = LossScale(2.0)
    for _ in range(LARGER_AFTER):
        scale.count()
    assert scale.factor == 4.0
    assert scale.lower() and scale.factor == 1.0
    assert not scale.lower()


def test_a_resumed_run_goes_on_with_it():
    _, optimizer, _ = update(100.0)
    other = MasterAdamW(linear(torch.float16), Optimizer())
    other.load_state(optimizer.state())
    assert other.gradients.scale is not None
    assert (other.gradients.scale.factor, other.gradients.scale.updates) == (2.0**8, 1)
