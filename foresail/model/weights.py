"""All weights of a model at once: fresh values from a seed, and a checksum to tell whether two models are equal."""

from __future__ import annotations

import torch

from foresail.model.decoder import Decoder
from foresail.model.shards import everywhere_whole, local, put_rows


@torch.no_grad()
def init_weights(model: Decoder, seed: int) -> None:
    """Fresh weights from one seed, the same on every device: what enters a layer leaves it at the same scale.

    The embedding too: a smaller one would drown in what the first layer adds to it.
    """
    generator = torch.Generator().manual_seed(seed)
    depth_scale = (2 * model.shape.num_layers) ** -0.5
    for name, parameter in model.named_parameters():
        if parameter.ndim == 1:
            local(parameter).fill_(0.0 if name.endswith("bias") else 1.0)
            continue
        std = parameter.shape[1] ** -0.5
        if name.endswith(("attention.out.weight", "mlp.down.weight")):
            std *= depth_scale
        put_rows(parameter, 0, torch.randn(parameter.shape, generator=generator) * std)


@torch.no_grad()
def checksum(model: Decoder) -> int:
    """A sum over all bits of all parameters, each with its place: equal weights give equal sums.

    Of sharded ones all ranks ask for it, and each gets it.
    """
    total = 0
    for number, parameter in enumerate(model.parameters(), start=1):
        words = everywhere_whole(parameter).contiguous().view(torch.uint8).flatten()
        words = torch.nn.functional.pad(words, (0, -len(words) % 8)).view(torch.int64)
        places = torch.arange(1, len(words) + 1, device=words.device) * 2_654_435_761
        total = (total + number * int((words ^ places).sum())) & (1 << 64) - 1
    return total
