# mypy: allow-untyped-defs
"""Attention of a decode step over the paged KV cache, each entry by itself.

The query heads that share a key head are rows of one tile, so a key is read once for all of them. Few entries
with long contexts would leave most of the card idle: then programs share a context, and their parts are merged.
Keys and values of the step's own tokens must be in the cache before.

Legend: E entries, H query heads, K key/value heads, d head size, S slots, P pages per row; in a kernel M rows
of a tile, N keys of a block, D columns (d padded to a power of two).
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from foresail.engine.kernels.parts import Parts, mark_empty, merge_parts, positive, store_parts
from foresail.model.kernels.paged import find_places, load_rows
from foresail.model.kernels.sizes import power_from
from foresail.model.kernels.softmax import LOWEST, fold, pad_columns, score, softmax_scale

ENTRY_KEYS = 32  # of a block
ENTRY_WARPS = 2
CROWD = 1024  # programs from which on more of them on a multiprocessor do better than more blocks under way
MAX_SPLITS = 32


def choose_splits(entries: int, key_heads: int, multiprocessors: int) -> int:
    """How many programs share one context, so that most multiprocessors have one or two.

    choose_splits(64, 4, 132) -> 1, choose_splits(16, 4, 132) -> 4, choose_splits(1, 4, 132) -> 32
    """
    splits = 1
    while splits < MAX_SPLITS and entries * key_heads * splits < 1.5 * multiprocessors:
        splits *= 2
    return splits


def attend_entries(
    q_EHd: Tensor,
    keys: Tensor,
    values: Tensor,
    tables_SP: Tensor,
    slots_E: Tensor,
    contexts_E: Tensor,
    *,
    splits: int,
) -> Tensor:
    """Every entry over the first `context` tokens of its row. Each context is cut into `splits` equal parts."""
    out = torch.empty_like(q_EHd, memory_format=torch.contiguous_format)
    rows = (tables_SP, slots_E, contexts_E)
    if splits == 1:  # the kernel writes the result itself
        launch_splits(q_EHd, keys, values, *rows, out=out, splits=1)
        return out
    parts = Parts.like(q_EHd, splits)
    launch_splits(q_EHd, keys, values, *rows, parts=parts, splits=splits)
    return merge_parts(parts, out)


def launch_splits(
    q_EHd: Tensor,
    keys: Tensor,
    values: Tensor,
    tables_SP: Tensor,
    slots_E: Tensor,
    contexts_E: Tensor,
    *,
    out: Tensor | None = None,
    parts: Parts | None = None,
    splits: int,
    shared_E: Tensor | None = None,
    before: int = 0,
) -> None:
    """Write the result to `out`, or fill the last `splits` parts.

    Of the `before` parts in front of them, packs fill those of the entries whose first tokens are shared;
    these entries start behind their shared tokens, and of the others those parts are marked as empty here.
    """
    entries, heads, head_dim = q_EHd.shape
    key_heads = keys.shape[2]
    assert q_EHd.stride()[1:] == (head_dim, 1) and keys.is_contiguous() and values.is_contiguous()
    assert out is None or out.is_contiguous()
    weighted, stats = parts or (out, out)
    _attend_split[(entries, key_heads, splits)](
        q_EHd,
        keys,
        values,
        tables_SP,
        slots_E,
        contexts_E,
        contexts_E if shared_E is None else shared_E,
        weighted,
        stats,
        softmax_scale(head_dim),
        q_EHd.stride(0),
        tables_SP.stride(0),
        KEY_HEADS=key_heads,
        GROUP=heads // key_heads,
        HEAD=head_dim,
        PAGE=keys.shape[1],
        BEFORE=before,
        WHOLE=parts is None,
        M=max(power_from(heads // key_heads), 16),
        D=pad_columns(head_dim),
        KEYS=ENTRY_KEYS,
        num_warps=ENTRY_WARPS,
        num_stages=2 if entries * key_heads * splits >= CROWD else 3,
    )


@triton.jit(do_not_specialize=["table_stride"])
def _attend_split(
    q,
    keys,
    values,
    tables,
    slots,
    contexts,
    shared,
    weighted,
    stats,
    scale,
    q_stride,
    table_stride,
    KEY_HEADS: tl.constexpr,
    GROUP: tl.constexpr,
    HEAD: tl.constexpr,
    PAGE: tl.constexpr,
    BEFORE: tl.constexpr,
    WHOLE: tl.constexpr,
    M: tl.constexpr,
    D: tl.constexpr,
    KEYS: tl.constexpr,
):
    """One key head of one entry over one part of its context."""
    # Entries run fastest: siblings of a group are neighbours, and the cache on the chip serves their prompt.
    entry, key_head, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    splits = tl.num_programs(2)
    # all loads before any use: a short context takes hardly longer than waiting for them one by one
    context, slot = tl.load(contexts + entry).to(tl.int32), tl.load(slots + entry).to(tl.int64)
    past = tl.load(shared + entry).to(tl.int32) if BEFORE else 0
    share = share_blocks(context - past, splits, KEYS)
    first = past + split * share
    end = tl.minimum(first + share, context)

    rows_M, columns_D, keys_N = tl.arange(0, M), tl.arange(0, D), tl.arange(0, KEYS)
    # the rows that fill up the tile repeat its last head, and are not stored
    real_M = rows_M < GROUP
    heads_M = key_head * GROUP + tl.minimum(rows_M, GROUP - 1)
    row_M = entry.to(tl.int64) * (KEY_HEADS * GROUP) + heads_M
    part_M = row_M * (BEFORE + splits) + BEFORE + split
    if split == 0:
        for pack_part in tl.static_range(BEFORE):
            mark_empty(stats, row_M * (BEFORE + splits) + pack_part, real_M & (past == 0))
    if first >= end:
        if not WHOLE:
            mark_empty(stats, part_M, real_M)
        return

    table = tables + slot * table_stride
    q_MD = load_rows(q + entry.to(tl.int64) * q_stride, heads_M * HEAD, columns_D, HEAD)
    acc_MD = tl.zeros((M, D), tl.float32)
    max_M, sum_M = tl.full((M,), LOWEST, tl.float32), tl.zeros((M,), tl.float32)
    # Past the end the last key is read again, and masked: what lies there may be anything, NaN too.
    places_N = find_places(table, tl.minimum(first + keys_N, end - 1), PAGE)
    for start in range(first, end, KEYS):
        indexes_N = start + keys_N
        k_ND = load_rows(keys + key_head * HEAD, places_N * (KEY_HEADS * HEAD), columns_D, HEAD)
        v_ND = load_rows(values + key_head * HEAD, places_N * (KEY_HEADS * HEAD), columns_D, HEAD)
        # the next block's places: found in its own turn, they would keep the compiler from loading ahead
        places_N = find_places(table, tl.minimum(indexes_N + KEYS, end - 1), PAGE)
        scores_MN = tl.where((indexes_N < end)[None, :], score(q_MD, k_ND), float("-inf"))
        acc_MD, max_M, sum_M = fold(acc_MD, max_M, sum_M, scores_MN, v_ND, scale, q_MD.dtype)

    if WHOLE:
        result_MD = (acc_MD / positive(sum_M)[:, None]).to(weighted.dtype.element_ty)
        real_MD = real_M[:, None] & (columns_D[None, :] < HEAD)
        tl.store(weighted + row_M[:, None] * HEAD + columns_D[None, :], result_MD, real_MD)
    else:
        store_parts(weighted, stats, part_M, acc_MD, max_M, sum_M, columns_D, real_M, HEAD)


@triton.jit
def share_blocks(tokens, splits, KEYS: tl.constexpr):
    """Tokens in each part, in whole blocks: 100 in 3 parts of 32-key blocks -> 64 (64, 36, none)."""
    return tl.cdiv(tl.cdiv(tokens, splits), KEYS) * KEYS
