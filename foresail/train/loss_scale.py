"""A loss made larger before its backward pass, so that float16 can hold its gradients.

float16 has no number between 0 and 6e-8, and a gradient of one token among many is smaller than that. What grows
beyond 65,504 in turn shows as infinity: then the pass is done again with less.
"""

from __future__ import annotations

import torch
from torch import Tensor

MOST = 2.0**24
SMALLER, LARGER = 16.0, 2.0
LARGER_AFTER = 200  # updates in a row without an infinity


class LossScale:
    """`factor` for the next backward passes; lower() after an infinity, count() after an update."""

    def __init__(self, factor: float = 2.0**16) -> None:
        self.factor, self.updates = factor, 0

    def lower(self) -> bool:
        """Whether there was something to lower: a gradient that is infinite at 1 is so by itself."""
        lowered, self.updates = self.factor > 1, 0
        self.factor = max(1.0, self.factor / SMALLER)
        return lowered

    def count(self) -> None:
        self.updates += 1
        if self.updates == LARGER_AFTER and self.factor < MOST:
            self.factor, self.updates = self.factor * LARGER, 0

    def state(self) -> Tensor:
        return torch.tensor([self.factor, self.updates], dtype=torch.float64)

    def load_state(self, state: Tensor) -> None:
        self.factor, self.updates = float(state[0]), int(state[1])
