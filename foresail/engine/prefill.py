"""Chunks of contexts to compute into the cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, kw_only=True)
class PrefillChunk:
    """The tokens from `start` on of a context whose pages are these."""

    tokens: Sequence[int]
    start: int
    pages: Sequence[int]
    following: Sequence[int] = ()  # known tokens after the last one, for MTP layers


@dataclass(frozen=True, kw_only=True)
class PackedPrefill:
    """Chunks laid end to end. Legend: T tokens, C chunks, P pages of the longest context."""

    ids_T: np.ndarray
    positions_T: np.ndarray
    places_T: np.ndarray
    lengths_C: np.ndarray
    contexts_C: np.ndarray  # tokens of each context up to the chunk's end
    tables_CP: np.ndarray


def tokens_ahead(chunks: Sequence[PrefillChunk], layers: int) -> np.ndarray:
    """For each packed token those 1, 2, … places on, a line each: 3 5 | 8 -> 5 8, and for two layers 8 8 below.

    After the last known token that one is repeated; MTP layers use it for these few keys.
    """
    lines: list[list[list[int]]] = [[] for _ in range(layers)]
    for chunk in chunks:
        known = [*chunk.tokens, *chunk.following[:layers]]
        known += known[-1:] * layers
        for step, line in enumerate(lines, start=1):
            line.append(known[step : step + len(chunk.tokens)])
    return np.array([[token for part in line for token in part] for line in lines], dtype=np.int64)


def pack_prefill(chunks: Sequence[PrefillChunk], page_size: int) -> PackedPrefill:
    lengths_C = np.array([len(chunk.tokens) for chunk in chunks])
    contexts_C = lengths_C + [chunk.start for chunk in chunks]
    tables_CP = np.zeros((len(chunks), -(-contexts_C.max() // page_size)), dtype=np.int32)
    for table_P, chunk, context in zip(tables_CP, chunks, contexts_C.tolist(), strict=True):
        count = -(-context // page_size)
        table_P[:count] = chunk.pages[:count]
    chunks_T = np.repeat(np.arange(len(chunks)), lengths_C)
    ends_T = np.repeat(lengths_C.cumsum(), lengths_C)
    positions_T = np.arange(len(chunks_T)) - ends_T + contexts_C[chunks_T]
    pages_T = tables_CP[chunks_T, positions_T // page_size].astype(np.int64)
    return PackedPrefill(
        ids_T=np.concatenate([np.asarray(chunk.tokens, dtype=np.int64) for chunk in chunks]),
        positions_T=positions_T,
        places_T=pages_T * page_size + positions_T % page_size,
        lengths_C=lengths_C,
        contexts_C=contexts_C,
        tables_CP=tables_CP,
    )
