"""LoRA: a pair of trainable thin matrices beside each of the chosen ones; all other weights are frozen.

    attach(model, Lora(rank=16), seed=0)   # what requires a gradient now is A and B alone
    reference = base_of(model)             # the model without them, on the same memory

The engine reads the pairs where the trainer updates them, also in CUDA graphs. Saved models have them merged
(`hf`); `adapters` saves them separately.

Query, key and value are one matrix here, and so are gate and up. Each of them has a pair of its own, as elsewhere;
all A of a matrix stand in one parameter, all B in another.

Legend: M rows, N outputs, K inputs, P pairs of one matrix, r rank, R = P r.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from foresail.model.decoder import Decoder
from foresail.model.linear import Linear, add_linear, linear
from foresail.model.shards import local, put_rows
from foresail.recipe.shape.projections import STACKS, beside_experts, projection_sizes, projections_of
from foresail.recipe.tables.parts import Lora


class LowRankLinear(Linear):
    """x W^T + bias + scale (x A^T) B^T, where W and bias are those of `base`, not copies.

    `places` says which outputs each pair serves, and where the first is: {0: 96, 128: 32} are two pairs.
    """

    def __init__(self, base: Linear, places: Mapping[int, int], rank: int, scale: float) -> None:
        nn.Module.__init__(self)  # the weight is there already
        self.in_features, self.out_features = base.in_features, base.out_features
        self.weight, self.bias = base.weight, base.bias
        self.places, self.rank, self.scale = dict(places), rank, scale
        self.A = nn.Parameter(base.weight.new_empty(len(places) * rank, base.in_features))
        self.B = nn.Parameter(base.weight.new_zeros(base.out_features, rank))
        self.scale_NP: Tensor
        self.register_buffer("scale_NP", None, persistent=False)

    @torch.no_grad()
    def init(self, generator: torch.Generator) -> None:
        """A as PEFT does it, B zero; only now the pairs need memory."""
        noise_RK = 2 * torch.rand(self.A.shape, generator=generator) - 1
        put_rows(self.A, 0, noise_RK * self.A.shape[1] ** -0.5)
        local(self.B).zero_()
        scale_NP = torch.zeros(self.out_features, len(self.places))
        for pair, (start, count) in enumerate(self.places.items()):
            scale_NP[start : start + count, pair] = self.scale
        self.scale_NP = scale_NP.to(self.B.device)

    def forward(self, x_MK: Tensor) -> Tensor:
        return self._add_pairs(super().forward(x_MK), x_MK)

    def tail(self, x_MK: Tensor, start: int) -> Tensor:
        return self._add_pairs(super().tail(x_MK, start), x_MK, start)

    def add_to(self, stream_MN: Tensor, x_MK: Tensor) -> Tensor:
        return self._add_pairs(super().add_to(stream_MN, x_MK), x_MK)

    def _add_pairs(self, out_MN: Tensor, x_MK: Tensor, start: int = 0) -> Tensor:
        """Last, so that with B = 0 every bit is what W alone makes it."""
        return add_linear(out_MN, linear(x_MK, self.A), self._spread(self.B, start).to(self.B.dtype))

    def _spread(self, b_Nr: Tensor, start: int) -> Tensor:
        """B as (N, R), scaled, in float32: each output reads the r columns of its own pair, and zeros elsewhere."""
        return (b_Nr[start:, None] * self.scale_NP[start:, :, None]).flatten(1)

    def pair(self, start: int) -> tuple[range, range] | None:
        """Rows of A and of B for the outputs that begin at `start`."""
        if start not in self.places:
            return None
        first = list(self.places).index(start) * self.rank
        return range(first, first + self.rank), range(start, start + self.places[start])

    @torch.no_grad()
    def merge(self, weight_NK: Tensor, a_RK: Tensor, b_Nr: Tensor, start: int, count: int) -> Tensor:
        """`count` rows of one matrix that does what W and the pairs, all given whole, do together; rounded once."""
        learned_NK = self._spread(b_Nr, start)[:count] @ a_RK.float()
        return (weight_NK.narrow(0, start, count).float() + learned_NK).to(weight_NK.dtype)


def attach(model: Decoder, settings: Lora, *, seed: int) -> None:
    """Freeze the model and put pairs beside its targets. B is zero, so that no bit of what it computes changes."""
    add_pairs(model, settings)
    init_pairs(model, seed=seed)


def init_pairs(model: Decoder, *, seed: int) -> None:
    """From one seed, the same on every device."""
    generator = torch.Generator().manual_seed(seed)
    for pairs in pairs_of(model):
        pairs.init(generator)


def pairs_of(model: Decoder) -> list[LowRankLinear]:
    return [module for module in model.modules() if isinstance(module, LowRankLinear)]


def add_pairs(model: Decoder, settings: Lora) -> None:
    """Their places in the model, which may have no memory yet."""
    if model.shape.experts is not None and (beside := beside_experts(settings.targets)):
        raise ValueError(
            f"experts have no low-rank pairs, and lora.targets has {', '.join(beside)}; name attention alone"
        )
    model.requires_grad_(False)
    if model.shape.scores and model.head is not None:  # nothing is known of it that could be kept
        model.head.requires_grad_(True)
    sizes, targets = projection_sizes(model.shape), projections_of(settings.targets)
    for block in model.blocks:
        for path, names in STACKS.items():
            ends = torch.tensor([sizes[name][0] for name in names]).cumsum(0).tolist()
            places = {
                end - sizes[name][0]: sizes[name][0]
                for name, end in zip(names, ends, strict=True)
                if name in targets
            }
            if places:
                owner, _, name = path.rpartition(".")
                base = block.get_submodule(path)
                assert isinstance(base, Linear) and not isinstance(base, LowRankLinear)
                low_rank = LowRankLinear(base, places, settings.rank, settings.alpha / settings.rank)
                setattr(block.get_submodule(owner), name, low_rank)


def base_of(model: Decoder) -> Decoder:
    """The model as it was before `attach`, on the same parameters: a reference that takes no memory."""
    with torch.device("meta"):
        base = Decoder(model.shape)
    for name, _ in list(base.named_parameters()):
        owner, _, leaf = name.rpartition(".")
        setattr(base.get_submodule(owner), leaf, model.get_parameter(name))
    base.cos, base.sin = model.cos, model.sin
    return base
