"""Cuts named tensors into buckets of bounded size to send weights to another process, and assembles them there.

    for bucket in fill([("embed", tensor)], limit=4): ...  -> [(BucketPiece("embed", 0), bytes 0 to 3)], …

Neither side holds a second copy of the model: a bucket's pieces are views of the sender's tensors, and the receiver
copies them into its own. Checksums of the receiver's memory prove the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from foresail.model.decoder import Decoder
from foresail.model.shards import gather_whole
from foresail.model.weights import as_bytes, tensor_checksum

Named = Iterable[tuple[str, Tensor]]  # the source: whole tensors by the names of `named_parameters`


@dataclass(frozen=True)
class BucketPiece:
    """The destination of bytes: a tensor and the first byte in it."""

    name: str
    start: int


Content = Sequence[tuple[BucketPiece, Tensor]]  # bytes


@torch.no_grad()
def whole_weights(model: Decoder) -> Iterator[tuple[str, Tensor]]:
    """Every parameter. All ranks must iterate over sharded ones; only rank 0 gets them."""
    for name, weight in model.named_parameters():
        if (whole := gather_whole(weight, to=0)) is not None:
            yield name, whole


class NotArrived(Exception):
    """The transport of buckets is broken: they must be sent again."""


class Bucket(Protocol):
    """A message with pieces, or with where to find them."""

    def open(self) -> Content:
        """The pieces; may raise `NotArrived`."""


def fill(tensors: Named, limit: int) -> Iterator[Content]:
    """Buckets of at most `limit` bytes, in the order of the tensors."""
    content: list[tuple[BucketPiece, Tensor]] = []
    room = limit
    for name, tensor in tensors:
        octets, start = as_bytes(tensor), 0
        while start < len(octets):
            piece = octets[start : start + room]
            content.append((BucketPiece(name, start), piece))
            start += len(piece)
            room -= len(piece)
            if not room:
                yield content
                content, room = [], limit
    if content:
        yield content


def num_bytes(content: Content) -> int:
    return sum(len(octets) for _, octets in content)


class WeightLoader:
    """The receiver: a model whose parameters are overwritten piece by piece."""

    def __init__(self, model: Decoder) -> None:
        self.parameters = dict(model.named_parameters())

    def begin(self) -> None:
        """Nothing to forget: pieces are written directly into the parameters."""

    @torch.no_grad()
    def load(self, content: Content) -> None:
        for piece, octets in content:
            target = as_bytes(self.parameters[piece.name])
            target[piece.start : piece.start + len(octets)].copy_(octets)

    def checksums(self, names: Sequence[str] | None) -> dict[str, int]:
        """Checksums of these parameters; None: of all."""
        chosen = self.parameters if names is None else names
        return {name: tensor_checksum(self.parameters[name]) for name in chosen}
