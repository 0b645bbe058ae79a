"""AdamW in six bytes a weight: its float32 master included, and of both moments one byte each.

    weight   bfloat16, what the model computes with          2 bytes
    low      the sixteen bits that make it a float32 master  2 bytes, see `masters.py`
    moments  mean and square of the gradient                 2 bytes, see `moments.py`

Nothing is lost of the weights: an update smaller than a bfloat16 can show adds up in the low bits.

Legend: N numbers of one weight.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from foresail.model.kernels import available
from foresail.model.shards import local
from foresail.recipe.tables.parts import Optimizer
from foresail.train.optim.gradients import GradientSums
from foresail.train.optim.masters import WHOLE, Shard, check_keys, join, random_low_bits, split
from foresail.train.optim.moments import MEAN, SQUARE, Moments, Rates, dequantize, quantize, zero_moments
from foresail.train.state_files import share_of
from foresail.world import ONE_PROCESS, World


class CompactAdamW:
    """Backward passes, then clip() and update(): gradients are summed in float32 meanwhile.

    `shards` says by a weight's name which part of it this process holds.
    """

    def __init__(
        self,
        model: nn.Module,
        settings: Optimizer,
        seed: int = 0,
        world: World = ONE_PROCESS,
        shards: Mapping[str, Shard] = WHOLE,
    ) -> None:
        self.settings, self.steps = settings, 0
        trained = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
        self.names, self.weights = list(trained), [local(weight) for weight in trained.values()]
        if any(weight.dtype == torch.float16 for weight in self.weights):
            raise ValueError('8-bit states do not go with float16; set model.dtype = "bfloat16"')
        self.gradients = GradientSums(list(trained.values()), world)
        self.lows = [
            None
            if weight.dtype == torch.float32
            else random_low_bits(weight.detach(), seed, name, shards.get(name), world)
            for name, weight in zip(self.names, self.weights, strict=True)
        ]
        self.offsets = [shards[name].offset if name in shards else 0 for name in self.names]
        self.moments = [zero_moments(weight) for weight in self.weights]

    def clip(self) -> float:
        """Scale the gradient to the largest allowed norm; its norm before."""
        return self.gradients.clip(self.settings.clip_norm)

    @torch.no_grad()
    def update(self, learning_rate: float) -> None:
        self.steps += 1
        for number, weight in enumerate(self.weights):
            if (gradient := self.gradients[number]) is not None and weight.numel():
                rates = self._rates(learning_rate, decays=weight.ndim > 1)
                state = self.lows[number], gradient, self.moments[number]
                apply(weight, *state, rates, self.offsets[number])
        self.zero_grad()

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

    def zero_grad(self) -> None:
        """Drop gradients without using them."""
        self.gradients.zero_grad()

    def state(self) -> dict[str, Tensor]:
        """Everything that an exact resume needs."""
        tensors = {"steps": torch.tensor(self.steps)}
        for name, low, moments in zip(self.names, self.lows, self.moments, strict=True):
            tensors |= {f"{key}:{name}": value for key, value in vars(moments).items()}
            if low is not None:
                tensors[f"low:{name}"] = low
        return tensors

    def share_of_state(self, pieces: Mapping[str, Sequence[Tensor]]) -> dict[str, Tensor]:
        """This rank's `state()` from a run with another number of ranks. Moments are rounded again, in other
        blocks.
        """
        steps, share = int(pieces["steps"][0]), {"steps": pieces["steps"][0]}
        for name, weight, low, offset in zip(self.names, self.weights, self.lows, self.offsets, strict=True):
            if low is not None:
                share[f"low:{name}"] = share_of(pieces[f"low:{name}"], offset, low)
            for moment, kind in ((MEAN, "mean"), (SQUARE, "square")):
                codes, scales = pieces[f"{kind}_N:{name}"], pieces[f"{kind}_scale_B:{name}"]
                parts = [dequantize(*part, moment) for part in zip(codes, scales, strict=True)]
                values_N = share_of(parts, offset, weight.flatten())
                coded = (
                    quantize(values_N, moment, steps, offset)
                    if weight.numel()
                    else (codes[0][:0], scales[0][:0])
                )
                share[f"{kind}_N:{name}"], share[f"{kind}_scale_B:{name}"] = coded
        return share

    def load_state(self, tensors: dict[str, Tensor]) -> None:
        current = self.state()
        check_keys(tensors, current.keys())
        for name, tensor in current.items():
            if tensors[name].shape != tensor.shape:
                raise ValueError(f"{name} has shape {list(tensors[name].shape)}, not {list(tensor.shape)}")
        self.steps = int(tensors["steps"])
        for name, tensor in current.items():
            tensor.copy_(tensors[name])


def apply(
    weight: Tensor, low: Tensor | None, gradient: Tensor, moments: Moments, rates: Rates, offset: int = 0
) -> None:
    """One update of one weight, in place; a shard of one begins at `offset`."""
    if available.can_fuse(gradient):
        from foresail.train.optim.kernels import compact_adamw

        compact_adamw.apply(weight, low, gradient, moments, rates, offset)
        return
    gradient_N = gradient.flatten()
    mean_N = torch.lerp(dequantize(moments.mean_N, moments.mean_scale_B, MEAN), gradient_N, 1 - rates.beta1)
    square_N = dequantize(moments.square_N, moments.square_scale_B, SQUARE) * rates.beta2
    square_N += (1 - rates.beta2) * gradient_N**2
    moments.mean_N, moments.mean_scale_B = quantize(mean_N, MEAN, rates.step, offset)
    moments.square_N, moments.square_scale_B = quantize(square_N, SQUARE, rates.step, offset)
    root_N = (square_N * rates.square_correction).sqrt() + rates.eps
    master_N = (weight.float() if low is None else join(weight, low)).flatten()
    master_N = master_N * rates.decay - rates.rate * mean_N / root_N
    if low is None:
        weight.copy_(master_N.view_as(weight))
    else:
        high_N, low_N = split(master_N)
        weight.copy_(high_N.view_as(weight))
        low.copy_(low_N.view_as(low))
