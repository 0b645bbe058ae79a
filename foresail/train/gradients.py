"""Gradients of an update's backward passes, summed in float32."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor
from torch.nn.utils import get_total_norm

from foresail.train.loss_scale import LossScale


class GradientSums:
    """A 16-bit weight's gradient comes here the moment a backward pass has it, and never stands beside all others.

    A float32 weight keeps its sum itself, as usual. Where a weight is float16, sums are those of a larger loss
    until `clip` makes them plain.
    """

    def __init__(self, weights: Sequence[Tensor]) -> None:
        self.weights = weights
        self.scale = LossScale() if any(weight.dtype == torch.float16 for weight in weights) else None
        self.wide: list[Tensor | None] = [None] * len(weights)
        for number, weight in enumerate(weights):
            if weight.dtype != torch.float32:
                weight.register_post_accumulate_grad_hook(partial(self._take, number))

    def add(self, loss: Tensor) -> None:
        """A backward pass."""
        (loss if self.scale is None else loss * self.scale.factor).backward()

    def _take(self, number: int, weight: Tensor) -> None:
        assert weight.grad is not None, "two optimisers of one model: the other took the gradient"
        wide = self.wide[number]
        self.wide[number] = weight.grad.float() if wide is None else wide.add_(weight.grad)
        weight.grad = None

    def __getitem__(self, number: int) -> Tensor | None:
        """The sum for that weight; None where no backward pass came by."""
        weight = self.weights[number]
        return weight.grad if weight.dtype == torch.float32 else self.wide[number]

    @torch.no_grad()
    def clip(self, limit: float) -> float:
        """Scale all to the largest allowed norm; their norm before."""
        found = [self[number] for number in range(len(self.weights))]
        sums = [total for total in found if total is not None]
        factor = 1.0 if self.scale is None else self.scale.factor
        norm = get_total_norm(sums) / factor
        torch._foreach_mul_(sums, (limit / (norm + 1e-6)).clamp(max=1.0) / factor)
        return float(norm)

    def forget(self) -> None:
        """Drop them without using them."""
        self.wide = [None] * len(self.weights)
        for weight in self.weights:
            weight.grad = None
