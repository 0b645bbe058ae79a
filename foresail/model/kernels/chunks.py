# mypy: allow-untyped-defs
"""Attention of new tokens over paged contexts: pieces of sequences, each over the context it ends.

A tile is a run of tokens of one sequence with the query heads of one key head, so that a key is loaded once
for all of them.

A token's result is the same to the last bit however its sequence is cut and whatever runs beside it: tiles have
one shape, keys come in blocks counted from the sequence's first, and a block of which a token sees nothing adds
nothing. So prefill, decoding and training agree exactly where all of them attend by this kernel.

Legend: T tokens, H query heads, K key/value heads, d head size, C sequences, P pages per sequence, S rows of
page tables; in a kernel M rows of a tile, N keys of a block, D columns (d padded to a power of two).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import triton
import triton.language as tl
from torch import Tensor

from foresail.model.kernels.paged import find_places, load_rows
from foresail.model.kernels.softmax import LOWEST, fold, pad_columns, score, softmax_scale

TILE_ROWS = 128  # pairs of token and head: two warp groups of 64, what Hopper's matrix unit takes


def cut_tiles(lengths: Sequence[int] | np.ndarray, group: int) -> np.ndarray:
    """The sequence of every tile, and its first token there, when `group` query heads share a key head.

    cut_tiles([5, 40], 7) -> [[0, 1, 1, 1], [0, 36, 18, 0]], 18 tokens to a tile. A sequence's last tile comes
    first: it has the most keys to see, and the short ones fill the gaps at the end.
    """
    tokens = TILE_ROWS // group
    counts = -(-np.asarray(lengths) // tokens)
    sequences = np.repeat(np.arange(len(counts)), counts)
    ends = np.cumsum(counts)
    firsts = (ends[sequences] - 1 - np.arange(len(sequences))) * tokens
    return np.stack((sequences, firsts)).astype(np.int32)


def choose_block(row_bytes: int) -> tuple[int, int]:
    """Keys of a block, and how many blocks are under way: what fits beside the tile's queries."""
    if row_bytes <= 256:
        return 64, 3
    return 32, 2 if row_bytes <= 512 else 1


def attend_chunks(
    q_THd: Tensor,
    keys: Tensor,
    values: Tensor,
    tables_SP: Tensor,
    starts_C1: Tensor,
    contexts_C: Tensor,
    tiles: Tensor,
    *,
    slots_C: Tensor | None = None,
) -> Tensor:
    """Causal attention of new tokens, packed flat, over the cached contexts that end with them.

    Of a context of 100 with 4 new tokens, these stand at 96..99 and see 97, 98, 99 and 100 tokens. `tiles` is
    `cut_tiles(lengths, group)` on the device. Row c of the tables lists the pages of sequence c, or `slots_C`
    names its row.
    """
    tokens, heads, head_dim = q_THd.shape
    key_heads = keys.shape[2]
    padded = pad_columns(head_dim)
    block, stages = choose_block(padded * q_THd.element_size())
    assert q_THd.stride()[1:] == (head_dim, 1) and keys.is_contiguous() and values.is_contiguous()
    out = torch.empty(tokens, heads, head_dim, dtype=q_THd.dtype, device=q_THd.device)
    _attend_tile[(tiles.shape[1], key_heads)](
        q_THd,
        keys,
        values,
        tables_SP,
        slots_C,
        starts_C1,
        contexts_C,
        tiles,
        out,
        softmax_scale(head_dim),
        q_THd.stride(0),
        tables_SP.stride(0),
        KEY_HEADS=key_heads,
        GROUP=heads // key_heads,
        HEAD=head_dim,
        PAGE=keys.shape[1],
        M=TILE_ROWS,
        D=padded,
        KEYS=block,
        num_warps=8,
        num_stages=stages,
    )
    return out


@triton.jit(do_not_specialize=["table_stride"])
def _attend_tile(
    q,
    keys,
    values,
    tables,
    slots,  # None: a sequence's own number
    starts,
    contexts,
    tiles,
    out,
    scale,
    q_stride,
    table_stride,
    KEY_HEADS: tl.constexpr,
    GROUP: tl.constexpr,
    HEAD: tl.constexpr,
    PAGE: tl.constexpr,
    M: tl.constexpr,
    D: tl.constexpr,
    KEYS: tl.constexpr,
):
    """M // GROUP tokens of one sequence, with their query heads of one key head, over all they see."""
    tile, key_head = tl.program_id(0), tl.program_id(1)
    sequence = tl.load(tiles + tile)
    first = tl.load(tiles + tl.num_programs(0) + tile)
    start_token = tl.load(starts + sequence).to(tl.int32)
    num_new = tl.load(starts + sequence + 1).to(tl.int32) - start_token
    # places in the context of the tile's first token and of the end of its last
    here = tl.load(contexts + sequence).to(tl.int32) - num_new + first
    end = here + tl.minimum(M // GROUP, num_new - first)
    slot = sequence if slots is None else tl.load(slots + sequence)
    table = tables + slot.to(tl.int64) * table_stride

    rows_M, columns_D, keys_N = tl.arange(0, M), tl.arange(0, D), tl.arange(0, KEYS)
    # rows that belong to no token of the tile repeat its last, and write the same
    steps_M = tl.minimum(rows_M // GROUP, end - here - 1)
    heads_M = key_head * GROUP + rows_M % GROUP
    tokens_M = (start_token + first + steps_M).to(tl.int64)
    q_MD = load_rows(q, tokens_M * q_stride + heads_M * HEAD, columns_D, HEAD)
    acc_MD = tl.zeros((M, D), tl.float32)
    max_M, sum_M = tl.full((M,), LOWEST, tl.float32), tl.zeros((M,), tl.float32)
    places_N = find_places(table, tl.minimum(keys_N, end - 1), PAGE)
    for start in range(0, end, KEYS):
        indexes_N = start + keys_N
        k_ND = load_rows(keys + key_head * HEAD, places_N * (KEY_HEADS * HEAD), columns_D, HEAD)
        v_ND = load_rows(values + key_head * HEAD, places_N * (KEY_HEADS * HEAD), columns_D, HEAD)
        places_N = find_places(table, tl.minimum(indexes_N + KEYS, end - 1), PAGE)
        scores_MN = score(q_MD, k_ND)
        if start + KEYS > here + 1:  # a block that every row sees whole needs no mask
            scores_MN = tl.where(indexes_N[None, :] <= (here + steps_M)[:, None], scores_MN, float("-inf"))
        acc_MD, max_M, sum_M = fold(acc_MD, max_M, sum_M, scores_MN, v_ND, scale, q_MD.dtype)

    row_M = tokens_M * (KEY_HEADS * GROUP) + heads_M
    result_MD = (acc_MD / sum_M[:, None]).to(out.dtype.element_ty)
    tl.store(out + row_M[:, None] * HEAD + columns_D[None, :], result_MD, columns_D[None, :] < HEAD)
