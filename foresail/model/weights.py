"""All weights of a model at once: fresh values from a seed, and a checksum to tell whether two models are equal."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from foresail.model.decoder import Decoder
from foresail.model.shards import full_weight, local, put_rows

BLOCK = 2**18  # words of a checksum at once: they stay in a CPU's cache
FACTOR = 2_654_435_761
SIXTY_FOUR_BITS = (1 << 64) - 1


@torch.no_grad()
def init_weights(model: Decoder, seed: int, *, only: str = "") -> None:
    """Fresh weights from one seed, the same on every device: what enters a layer leaves it at the same scale.

    The embedding too: a smaller one would drown in what the first layer adds to it. `only`: those with names that
    begin so.
    """
    generator = torch.Generator().manual_seed(seed)
    depth_scale = (2 * model.shape.num_layers) ** -0.5
    for name, parameter in model.named_parameters():
        if not name.startswith(only) or name.endswith((".A", ".B")):
            continue  # low-rank pairs have a seed of their own
        if parameter.ndim == 1 or name.endswith("correction"):
            local(parameter).fill_(0.0 if name.endswith(("bias", "correction")) else 1.0)
            continue
        std = parameter.shape[1] ** -0.5
        if name.endswith(("attention.out.weight", "down.weight", "experts.down")):
            std *= depth_scale
        put_rows(parameter, 0, torch.randn(parameter.shape, generator=generator) * std)


@torch.no_grad()
def checksum(model: Decoder) -> int:
    """A sum over all bits of all parameters, each with its place: equal weights give equal sums.

    With sharded weights all ranks call it, and all get the result.
    """
    sums = enumerate((tensor_checksum(full_weight(weight)) for weight in model.parameters()), start=1)
    return sum(number * count for number, count in sums) & SIXTY_FOUR_BITS


def tensor_checksum(tensor: Tensor) -> int:
    """The same of one tensor, block by block: it takes a few megabytes of memory, whatever the tensor's size."""
    octets = as_bytes(tensor)
    whole = len(octets) - len(octets) % 8
    rest = torch.nn.functional.pad(octets[whole:], (0, whole + 8 - len(octets)))[: 8 * (whole < len(octets))]
    places = torch.arange(1, BLOCK + 1, device=octets.device) * FACTOR
    total = 0
    for start, words in blocks(octets[:whole].view(torch.int64), rest.view(torch.int64)):
        total += int((words ^ (places[: len(words)] + start * FACTOR)).sum())
    return total & SIXTY_FOUR_BITS


def as_bytes(tensor: Tensor) -> Tensor:
    """A view, where the tensor lies in one piece."""
    flat = tensor.detach().contiguous().view(-1)
    if flat.stride(0) != 1:  # of one number or none, which may have any stride
        flat = flat.clone(memory_format=torch.contiguous_format).as_strided((len(flat),), (1,))
    return flat.view(torch.uint8)


def blocks(words: Tensor, rest: Tensor) -> Iterator[tuple[int, Tensor]]:
    """With the place of each; what does not fill a word comes last."""
    yield from ((start, words[start : start + BLOCK]) for start in range(0, len(words), BLOCK))
    yield len(words), rest
