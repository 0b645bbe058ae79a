"""Rows of documents to micro-batches, straight from the mapped shards.

A document, or a stretch of one, is a segment of the batch: its tokens see no other. With `attention` "row" the
whole row is one. Every token but a segment's first carries a loss.

Legend: T tokens of a batch, S its segments, M its tokens with a loss.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from foresail.data.corpus.corpus import Documents
from foresail.data.corpus.windows import PackedRow
from foresail.data.packing import cut_slice
from foresail.records import PackedBatch
from foresail.world import ContextGroup, World, context_size

Attention = Literal["document", "row"]


def count_targets(rows: Sequence[PackedRow], attention: Attention) -> int:
    """Tokens with a loss."""
    segments = len(rows) if attention == "row" else sum(len(row.stretches) for row in rows)
    return sum(row.num_tokens for row in rows) - segments


def row_batches(
    rows: Sequence[PackedRow],
    corpora: Mapping[str, Documents],
    world: World,
    *,
    weight: float,
    attention: Attention,
    rows_at_once: int,
    device: torch.device,
) -> Iterator[PackedBatch]:
    """This rank's share of the rows, so many in a micro-batch; every rank has equally many micro-batches.

    `weight` is that of each token with a loss. Row n goes to rank n modulo the ranks: rows are about equally long.
    """
    data = world.data
    mine = rows[data.rank :: data.size]
    each = -(-len(rows) // data.size)  # of the rank that has most
    for first in range(0, each, rows_at_once):
        some = mine[first : first + rows_at_once]
        yield pack_rows(
            some, corpora, weight=weight, attention=attention, device=device, context=world.context
        )


def pack_rows(
    rows: Sequence[PackedRow],
    corpora: Mapping[str, Documents],
    *,
    weight: float,
    attention: Attention,
    device: torch.device,
    context: ContextGroup | None = None,
) -> PackedBatch:
    """One batch; without rows an idle one, of one token and no loss."""
    ids = [
        corpora[row.source].read(*stretch).astype(np.int64) for row in rows for stretch in row.stretches
    ] or [np.zeros(1, np.int64)]
    lengths = [len(stretch) for stretch in ids]
    if attention == "row" and rows:
        lengths = [row.num_tokens for row in rows]
    ids_T, starts_S1 = np.concatenate(ids), np.cumsum([0, *lengths])
    positions_T = np.arange(len(ids_T)) - np.repeat(starts_S1[:-1], lengths)
    targets_M = np.flatnonzero(positions_T)
    sequence_M = np.repeat(np.arange(len(lengths)), lengths)[targets_M]
    if context is not None and (padding := -len(ids_T) % context.size):
        ids_T, positions_T = np.pad(ids_T, (0, padding)), np.pad(positions_T, (0, padding))
        starts_S1[-1] += padding  # causal: nothing in the last segment sees what stands behind it

    def place(array: np.ndarray) -> Tensor:
        return torch.from_numpy(array).to(device)

    return PackedBatch(
        ids_T=place(ids_T),
        positions_T=place(positions_T),
        starts_S1=torch.from_numpy(starts_S1),  # on the host, where lengths are read
        targets_M=place(targets_M),
        sources_M=place(targets_M - 1),
        sequence_M=place(sequence_M),
        weights_M=torch.full((len(targets_M),), weight, dtype=torch.float32, device=device),
        names=tuple(f"{row.source} document {row.stretches[0].document}" for row in rows),
        slice=None if context is None else cut_slice(len(ids_T), targets_M - 1, context, device),
    )


def fitting_rows(micro_batch_tokens: int, length: int, world: World) -> int:
    """Rows of a micro-batch, which every member of a context group computes micro_batch_tokens of."""
    return max(1, micro_batch_tokens * context_size(world) // length)
