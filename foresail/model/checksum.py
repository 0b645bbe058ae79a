"""One number for all weights of a model: who has the same one has the same weights."""

from __future__ import annotations

import torch

from foresail.model.decoder import Decoder


@torch.no_grad()
def checksum(model: Decoder) -> int:
    """A sum over all bits of all parameters, each with its place: equal weights give equal sums."""
    total = 0
    for number, parameter in enumerate(model.parameters(), start=1):
        words = parameter.detach().contiguous().view(torch.uint8).flatten()
        words = torch.nn.functional.pad(words, (0, -len(words) % 8)).view(torch.int64)
        places = torch.arange(1, len(words) + 1, device=words.device) * 2_654_435_761
        total = (total + number * int((words ^ places).sum())) & (1 << 64) - 1
    return total
