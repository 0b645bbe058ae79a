"""Gradients of an update's backward passes, summed in float32.

For a float16 model the loss is made larger before its backward pass, so that float16 can hold the gradients: it has
no number between 0 and 6e-8, and the gradient of one token among many is smaller than that. A gradient that grows
beyond 65,504 becomes infinite: then the update is computed again with a smaller factor.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor
from torch.nn.utils import get_total_norm

from foresail.model.shards import local
from foresail.world import ONE_PROCESS, World

MAX_SCALE = 2.0**24
SMALLER, LARGER = 16.0, 2.0
LARGER_AFTER = 200  # updates in a row without an infinity


class GradientSums:
    """A 16-bit weight's gradient is added here as soon as the backward pass has computed it, and freed.

    A float32 weight keeps its sum itself, as usual. Where a weight is float16, sums are those of a larger loss
    until `clip` makes them plain. Of sharded weights these are the sums for this rank's rows.
    """

    def __init__(self, weights: Sequence[Tensor], world: World = ONE_PROCESS) -> None:
        self.weights, self.world = weights, world
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
        gradient = local(weight.grad)
        self.wide[number] = gradient.float() if wide is None else wide.add_(gradient)
        weight.grad = None

    def __getitem__(self, number: int) -> Tensor | None:
        """The sum for that weight; None where no backward pass has reached it."""
        weight = self.weights[number]
        if weight.dtype != torch.float32:
            return self.wide[number]
        return None if weight.grad is None else local(weight.grad)

    @torch.no_grad()
    def clip(self, limit: float) -> float:
        """Scale all to the largest allowed norm; their norm before, over the shards of all ranks.

        If one rank's norm is not finite, all ranks get a norm that is not, and so take the same decision.
        """
        all_sums = [self[number] for number in range(len(self.weights))]
        sums = [total for total in all_sums if total is not None]
        factor = 1.0 if self.scale is None else self.scale.factor
        norm = get_total_norm(sums) / factor
        if self.world.size > 1:
            norm = self.world.sum(norm.double() ** 2).sqrt().float()
        torch._foreach_mul_(sums, (limit / (norm + 1e-6)).clamp(max=1.0) / factor)
        return float(norm)

    def zero_grad(self) -> None:
        """Drop them without using them."""
        self.wide = [None] * len(self.weights)
        for weight in self.weights:
            weight.grad = None


class LossScale:
    """`factor` for the next backward passes; lower() after an infinity, count() after an update."""

    def __init__(self, factor: float = 2.0**16) -> None:
        self.factor, self.updates = factor, 0

    def lower(self) -> bool:
        """Lower the factor; False if it is 1 already, for then the gradient itself is infinite."""
        lowered, self.updates = self.factor > 1, 0
        self.factor = max(1.0, self.factor / SMALLER)
        return lowered

    def count(self) -> None:
        self.updates += 1
        if self.updates == LARGER_AFTER and self.factor < MAX_SCALE:
            self.factor, self.updates = self.factor * LARGER, 0

    def state(self) -> Tensor:
        return torch.tensor([self.factor, self.updates], dtype=torch.float64)

    def load_state(self, state: Tensor) -> None:
        self.factor, self.updates = float(state[0]), int(state[1])
