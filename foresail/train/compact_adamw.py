"""AdamW in six bytes a weight: its float32 master included, and of both moments one byte each.

    weight   bfloat16, what the model computes with          2 bytes
    low      the sixteen bits that make it a float32 master  2 bytes, see `masters.py`
    moments  mean and square of the gradient                 2 bytes, see `moments.py`

Nothing is lost of the weights: an update smaller than a bfloat16 can show adds up in the low bits.

Legend: N numbers of one weight.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from foresail.model.kernels import available
from foresail.recipe.parts import Optimizer
from foresail.train.gradients import GradientSums
from foresail.train.masters import draw_low, join, split
from foresail.train.moments import MEAN, SQUARE, Moments, Rates, lengthen, shorten, zero_moments


class CompactAdamW:
    """Backward passes, then clip() and update(): gradients are summed in float32 meanwhile."""

    def __init__(self, model: nn.Module, settings: Optimizer, seed: int = 0) -> None:
        self.settings, self.steps = settings, 0
        trained = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
        self.names, self.weights = list(trained), list(trained.values())
        if any(weight.dtype == torch.float16 for weight in self.weights):
            raise ValueError('8-bit states do not go with float16; set model.dtype = "bfloat16"')
        self.gradients = GradientSums(self.weights)
        self.lows = [
            None if weight.dtype == torch.float32 else draw_low(weight.detach(), seed, name)
            for name, weight in trained.items()
        ]
        self.moments = [zero_moments(weight) for weight in self.weights]

    def clip(self) -> float:
        """Scale the gradient to the largest allowed norm; its norm before."""
        return self.gradients.clip(self.settings.clip_norm)

    @torch.no_grad()
    def update(self, learning_rate: float) -> None:
        self.steps += 1
        for number, weight in enumerate(self.weights):
            if (gradient := self.gradients[number]) is not None:
                rates = self._rates(learning_rate, decays=weight.ndim > 1)
                apply(weight, self.lows[number], gradient, self.moments[number], rates)
        self.forget()

    def _rates(self, learning_rate: float, *, decays: bool) -> Rates:
        settings, step = self.settings, self.steps
        return Rates(
            step=step,
            rate=learning_rate / (1 - settings.beta1**step),
            decay=1 - learning_rate * settings.weight_decay if decays else 1.0,
            beta1=settings.beta1,
            beta2=settings.beta2,
            eps=settings.eps,
            square_correction=1 / (1 - settings.beta2**step),
        )

    def forget(self) -> None:
        """Drop gradients without using them."""
        self.gradients.forget()

    def state(self) -> dict[str, Tensor]:
        """Everything needed to go on exactly."""
        tensors = {"steps": torch.tensor(self.steps)}
        for name, low, moments in zip(self.names, self.lows, self.moments, strict=True):
            tensors |= {f"{key}:{name}": value for key, value in vars(moments).items()}
            if low is not None:
                tensors[f"low:{name}"] = low
        return tensors

    def load_state(self, tensors: dict[str, Tensor]) -> None:
        own = self.state()
        if tensors.keys() != own.keys():
            raise ValueError(
                "it is the state of another model, of other optimizer.states, or in another dtype"
            )
        self.steps = int(tensors["steps"])
        for name, tensor in own.items():
            tensor.copy_(tensors[name])


def apply(weight: Tensor, low: Tensor | None, gradient: Tensor, moments: Moments, rates: Rates) -> None:
    """One update of one weight, in place."""
    if available.can_fuse(gradient):
        from foresail.train.kernels import compact_adamw

        compact_adamw.apply(weight, low, gradient, moments, rates)
        return
    gradient_N = gradient.flatten()
    mean_N = torch.lerp(lengthen(moments.mean_N, moments.mean_scale_B, MEAN), gradient_N, 1 - rates.beta1)
    square_N = lengthen(moments.square_N, moments.square_scale_B, SQUARE) * rates.beta2
    square_N += (1 - rates.beta2) * gradient_N**2
    moments.mean_N, moments.mean_scale_B = shorten(mean_N, MEAN, rates.step)
    moments.square_N, moments.square_scale_B = shorten(square_N, SQUARE, rates.step)
    root_N = (square_N * rates.square_correction).sqrt() + rates.eps
    master_N = (weight.float() if low is None else join(weight, low)).flatten()
    master_N = master_N * rates.decay - rates.rate * mean_N / root_N
    if low is None:
        weight.copy_(master_N.view_as(weight))
    else:
        high_N, low_N = split(master_N)
        weight.copy_(high_N.view_as(weight))
        low.copy_(low_N.view_as(low))
