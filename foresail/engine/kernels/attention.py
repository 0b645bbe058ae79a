# mypy: allow-untyped-defs
"""Attention of a decode step over the paged KV cache, and the running softmax that prefill (`chunks`) shares.

The query heads that share a key head are rows of one tile, so a key is read once for all of them. A tile runs
along its keys and keeps, in base 2, the greatest score, the sum of the weights and the weighted values. Few
entries with long contexts would leave most of the card idle: then programs share a context, and a second
kernel merges their parts. Keys and values of the step's own tokens must be in the cache before.

Legend: E entries, H query heads, K key/value heads, d head size, S slots, P pages per row; in a kernel M rows
of a tile, N keys of a block, D columns (d padded to a power of two), Z splits.
"""

from __future__ import annotations

from math import e, log2
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from foresail.engine.kernels.cache import find_places, load_rows

ENTRY_KEYS = 32  # of a block: six programs fit on a Hopper multiprocessor, each with two blocks under way
ENTRY_OPTIONS = {"num_warps": 4, "num_stages": 3}
SPLITS_AT_ONCE = tl.constexpr(8)  # read together by the merge; fixed, so that the sum's order is
MOST_SPLITS = 32
LOWEST = tl.constexpr(-1e30)  # under every score, yet finite: the difference of two is not NaN


def softmax_scale(head_dim: int) -> float:
    """What scores are multiplied with before 2 is raised to them: e to the usual scaled score."""
    return log2(e) * head_dim**-0.5


def choose_splits(entries: int, key_heads: int, multiprocessors: int) -> int:
    """How many programs share one context, so that the card is filled three to six times over.

    choose_splits(256, 4, 132) -> 1, choose_splits(64, 4, 132) -> 2, choose_splits(1, 4, 132) -> 32
    """
    splits = 1
    while splits < MOST_SPLITS and entries * key_heads * splits < 3 * multiprocessors:
        splits *= 2
    return splits


def attend_entries(
    q_EHd: Tensor,
    keys: Tensor,
    values: Tensor,
    tables_SP: Tensor,
    slots_E: Tensor,
    bases_E: Tensor,
    nodes_E: Tensor,
    sights_E: Tensor,
    *,
    splits: int,
    split_tokens: int = 0,
    out: Tensor | None = None,
) -> Tensor:
    """Every entry over its row: all of the `base` cached tokens, and the step's nodes that it sights.

    With base 100, node 2 and sights 0b101 it attends 0..99, 100 and 102. Each context is cut into `splits`
    equal parts, or into parts of `split_tokens`: if `splits` of them hold every context, the order of the sums,
    and so the last bit of the result, depends on the row's own length alone.
    """
    entries, heads, head_dim = q_EHd.shape
    key_heads = keys.shape[2]
    if split_tokens % ENTRY_KEYS:
        raise ValueError(
            f"split_tokens {split_tokens} is not a multiple of {ENTRY_KEYS}; try {ENTRY_KEYS * 16}"
        )
    assert q_EHd.stride()[1:] == (head_dim, 1) and keys.is_contiguous() and values.is_contiguous()
    out = torch.empty_like(q_EHd, memory_format=torch.contiguous_format) if out is None else out
    assert out.is_contiguous()
    # Of one split the first kernel writes the result itself, and the parts are not touched.
    parts, stats = out, out
    if splits > 1:
        parts = torch.empty(entries, heads, splits, head_dim, dtype=torch.float32, device=out.device)
        stats = torch.empty(entries, heads, splits, 2, dtype=torch.float32, device=out.device)
    sizes: dict[str, Any] = {
        "HEAD": head_dim,
        "D": max(16, triton.next_power_of_2(head_dim)),
        "KEYS": ENTRY_KEYS,
    }
    _attend_split[(entries, key_heads, splits)](
        q_EHd,
        keys,
        values,
        tables_SP,
        slots_E,
        bases_E,
        nodes_E,
        sights_E,
        out,
        parts,
        stats,
        softmax_scale(head_dim),
        q_EHd.stride(0),
        tables_SP.stride(0),
        split_tokens,
        KEY_HEADS=key_heads,
        GROUP=heads // key_heads,
        M=max(triton.next_power_of_2(heads // key_heads), 16),
        PAGE=keys.shape[1],
        WHOLE=splits == 1,
        **sizes,
        **ENTRY_OPTIONS,
    )
    if splits > 1:
        _merge_splits[(entries, heads)](
            parts, stats, bases_E, nodes_E, out, splits, split_tokens, **sizes, num_warps=4
        )
    return out


@triton.jit(do_not_specialize=["table_stride", "split_tokens"])
def _attend_split(
    q,
    keys,
    values,
    tables,
    slots,
    bases,
    nodes,
    sights,
    out,
    parts,
    stats,
    scale,
    q_stride,
    table_stride,
    split_tokens,
    KEY_HEADS: tl.constexpr,
    GROUP: tl.constexpr,
    HEAD: tl.constexpr,
    PAGE: tl.constexpr,
    WHOLE: tl.constexpr,
    M: tl.constexpr,
    D: tl.constexpr,
    KEYS: tl.constexpr,
):
    """One key head of one entry over one part of its context."""
    # Entries run fastest: siblings of a group are neighbours, and the cache on the chip serves their prompt.
    entry, key_head, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    splits = tl.num_programs(2)
    base = tl.load(bases + entry).to(tl.int32)
    context = base + tl.load(nodes + entry).to(tl.int32) + 1
    share = _share(context, splits, split_tokens, KEYS)
    first = split * share
    if first >= context:
        return
    # the last part takes what too few parts of a fixed length leave over
    end = tl.where(split == splits - 1, context, tl.minimum(first + share, context))
    seen = tl.load(sights + entry).to(tl.int32)
    table = tables + tl.load(slots + entry).to(tl.int64) * table_stride

    rows_M, columns_D, keys_N = tl.arange(0, M), tl.arange(0, D), tl.arange(0, KEYS)
    heads_M = key_head * GROUP + tl.minimum(rows_M, GROUP - 1)
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
        bits_N = (seen >> tl.minimum(tl.maximum(indexes_N - base, 0), 31)) & 1
        visible_N = (indexes_N < end) & ((indexes_N < base) | (bits_N == 1))
        scores_MN = score(q_MD, k_ND)
        scores_MN = tl.where(visible_N[None, :], scores_MN, float("-inf"))
        acc_MD, max_M, sum_M = fold(acc_MD, max_M, sum_M, scores_MN, v_ND, scale, q_MD.dtype)

    # the rows that fill up the tile repeat its last head: once is enough
    real_MD = (rows_M[:, None] < GROUP) & (columns_D[None, :] < HEAD)
    row_M = entry.to(tl.int64) * (KEY_HEADS * GROUP) + heads_M
    if WHOLE:
        result_MD = (acc_MD / _positive(sum_M)[:, None]).to(out.dtype.element_ty)
        tl.store(out + row_M[:, None] * HEAD + columns_D[None, :], result_MD, real_MD)
    else:
        part_M = row_M * splits + split
        tl.store(parts + part_M[:, None] * HEAD + columns_D[None, :], acc_MD, real_MD)
        tl.store(stats + part_M * 2, max_M, rows_M < GROUP)
        tl.store(stats + part_M * 2 + 1, sum_M, rows_M < GROUP)


@triton.jit(do_not_specialize=["splits", "split_tokens"])
def _merge_splits(
    parts,
    stats,
    bases,
    nodes,
    out,
    splits,
    split_tokens,
    HEAD: tl.constexpr,
    D: tl.constexpr,
    KEYS: tl.constexpr,
):
    """One head of one entry: its parts, rescaled to their common maximum, summed and divided."""
    entry, head = tl.program_id(0), tl.program_id(1)
    context = tl.load(bases + entry).to(tl.int32) + tl.load(nodes + entry).to(tl.int32) + 1
    used = tl.minimum(tl.cdiv(context, _share(context, splits, split_tokens, KEYS)), splits)
    row = entry.to(tl.int64) * tl.num_programs(1) + head
    columns_D = tl.arange(0, D)
    acc_D = tl.zeros((D,), tl.float32)
    greatest, total = tl.max(tl.full((1,), LOWEST, tl.float32)), tl.sum(tl.zeros((1,), tl.float32))
    for start in range(0, used, SPLITS_AT_ONCE):
        splits_Z = start + tl.arange(0, SPLITS_AT_ONCE)
        parts_Z = row * splits + splits_Z
        max_Z = tl.load(stats + parts_Z * 2, splits_Z < used, other=LOWEST)
        sum_Z = tl.load(stats + parts_Z * 2 + 1, splits_Z < used, other=0.0)
        wanted_ZD = (splits_Z < used)[:, None] & (columns_D < HEAD)[None, :]
        part_ZD = tl.load(parts + parts_Z[:, None] * HEAD + columns_D[None, :], wanted_ZD, other=0.0)
        higher = tl.maximum(greatest, tl.max(max_Z))
        weights_Z, decay = tl.exp2(max_Z - higher), tl.exp2(greatest - higher)
        acc_D = acc_D * decay + tl.sum(part_ZD * weights_Z[:, None], 0)
        total = total * decay + tl.sum(sum_Z * weights_Z)
        greatest = higher
    result_D = acc_D / _positive(total)
    tl.store(out + row * HEAD + columns_D, result_D.to(out.dtype.element_ty), columns_D < HEAD)


@triton.jit
def _share(context, splits, split_tokens, KEYS: tl.constexpr):
    """Tokens in each part of a context, in whole blocks: 100 in 3 parts of 32-key blocks -> 64 (64, 36, none)."""
    even = tl.cdiv(tl.cdiv(context, splits), KEYS) * KEYS
    return tl.where(split_tokens > 0, split_tokens, even)


@triton.jit
def score(q_MD, k_ND):
    # float8 keys are widened here; ieee: float32 stays float32 instead of passing through tf32
    return tl.dot(q_MD, tl.trans(k_ND.to(q_MD.dtype)), input_precision="ieee")


@triton.jit
def fold(acc_MD, max_M, sum_M, scores_MN, v_ND, scale, dtype: tl.constexpr):
    """Take one more block of keys into the running softmax."""
    higher_M = tl.maximum(max_M, tl.max(scores_MN, 1) * scale)
    weights_MN = tl.exp2(scores_MN * scale - higher_M[:, None])
    decay_M = tl.exp2(max_M - higher_M)
    sum_M = sum_M * decay_M + tl.sum(weights_MN, 1)
    acc_MD = acc_MD * decay_M[:, None]
    acc_MD = tl.dot(weights_MN.to(dtype), v_ND.to(dtype), acc_MD, input_precision="ieee")
    return acc_MD, higher_M, sum_M


@triton.jit
def _positive(sums):
    # who sees nothing gets zeros, not NaN
    return tl.where(sums > 0, sums, 1.0)
