"""The float32 master of a 16-bit weight: the weight itself, and the bits that are missing.

A bfloat16 near 0.1 can only move by 0.0005, and an update moves it by the learning rate, say 0.00001. A master that
began on the weight itself would take 25 updates to show any of it in the model. So it begins anywhere among the
numbers that round to the weight, by chance: of a thousand weights some twenty show the first update, and on average
the model moves by as much as it should.

Legend: N numbers of one weight.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from hashlib import blake2b
from types import MappingProxyType
from typing import NamedTuple

import torch
from torch import Tensor, nn

from foresail.model.shards import first_row
from foresail.world import ONE_PROCESS, World

HALF = {torch.bfloat16: 2**15, torch.float16: 2**12}  # half the distance to the next number, in float32 steps


class Shard(NamedTuple):
    """The numbers of a weight that this process holds: Shard(512, 2048) begins at number 512 of 2048."""

    offset: int
    whole: int


WHOLE: Mapping[str, Shard] = MappingProxyType({})  # no weight is sharded


def shards_of(model: nn.Module) -> dict[str, Shard]:
    """By the name of each weight, which numbers of it are this rank's."""
    return {
        name: Shard(first_row(weight) * weight[:1].numel(), weight.numel())
        for name, weight in model.named_parameters()
    }


def random_low_bits(
    weight: Tensor, seed: int, name: str, shard: Shard | None = None, world: World = ONE_PROCESS
) -> Tensor:
    """Random float32 bits beyond the weight's own, as likely below it as above. Zeros stay zero.

    The bits depend on the weight's values too: else the same few weights would show the first update of every
    stage. A shard gets its part of the whole weight's bits.
    """
    offset, whole = shard or (0, weight.numel())
    half, content = HALF[weight.dtype], world.sum(int(weight.view(torch.int16).sum()))
    key = blake2b(f"{seed} {name} {content}".encode(), digest_size=8).digest()
    generator = torch.Generator(weight.device).manual_seed(int.from_bytes(key))
    bits = torch.empty(whole, dtype=torch.int16, device=weight.device)
    bits.random_(1 - half, half, generator=generator)
    low = bits[offset : offset + weight.numel()].view(weight.shape)
    return low.masked_fill((weight == 0) | weight.isinf(), 0)


def join(weight: Tensor, low: Tensor) -> Tensor:
    return (weight.float().view(torch.int32) + low).view(torch.float32)


def split(master_N: Tensor) -> tuple[Tensor, Tensor]:
    """The nearest bfloat16 (of two equally near the greater), and the difference in bits."""
    bits_N = master_N.view(torch.int32)
    high_N = (bits_N + HALF[torch.bfloat16]) >> 16
    return high_N.to(torch.int16).view(torch.bfloat16), (bits_N - (high_N << 16)).to(torch.int16)


def check_keys(tensors: Mapping[str, Tensor], *allowed: Set[str]) -> None:
    """A state has one of the allowed sets of names."""
    if tensors.keys() not in allowed:
        raise ValueError(
            "it is the state of another model, of another optimizer.name, of other optimizer.states, or in another "
            "dtype"
        )


def check_sizes(tensors: Mapping[str, Tensor], weights: Mapping[str, Tensor]) -> None:
    """Every state is of its weight's shape, but for the counters."""
    for key, tensor in tensors.items():
        kind, _, name = key.partition(":")
        if name in weights and kind != "step" and tensor.shape != weights[name].shape:
            raise ValueError(f"{key} has shape {list(tensor.shape)}, its weight {list(weights[name].shape)}")


def master_of(weight: Tensor, seed: int, name: str, shard: Shard | None, world: World) -> Tensor:
    if weight.dtype == torch.float32:
        return weight
    return join(weight.detach(), random_low_bits(weight.detach(), seed, name, shard, world))
