# mypy: allow-untyped-defs
"""Attention of a decode step in which entries share the beginning of their context, page for page.

A pack is a run of neighbouring entries whose first tokens are the very same pages: samples of one prompt, or
one row with its drafted tokens. Their queries are rows of one tile, so the shared keys are read once for all of
them; then every entry looks over the rest of its row alone, and the parts are merged.

Legend: E entries, H query heads, K key/value heads, d head size, S slots, P pages per row; in a kernel M rows
of a tile, N keys of a block, D columns (d padded to a power of two).
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from foresail.engine.kernels.attention import attend_entries, launch_splits, share_blocks
from foresail.engine.kernels.parts import Parts, mark_empty, merge_parts, store_parts
from foresail.model.kernels.chunks import choose_block
from foresail.model.kernels.paged import find_places, load_rows
from foresail.model.kernels.softmax import LOWEST, fold, pad_columns, score, softmax_scale

TILE_ROWS = 64  # pairs of entry and head: what a warp group of Hopper's matrix unit takes
PACK_WARPS = 4


def max_packed(group: int) -> int:
    """Entries that fit into a tile when `group` query heads share a key head: max_packed(7) -> 9."""
    return TILE_ROWS // group


def attend_packs(
    q_EHd: Tensor,
    keys: Tensor,
    values: Tensor,
    tables_SP: Tensor,
    slots_E: Tensor,
    contexts_E: Tensor,
    packs: Tensor,
    *,
    splits: int,
    pack_splits: int,
) -> Tensor:
    """As `attend_entries`, but what packs share is read once for each pack.

    `packs` has three int32 lines of E: the packs' first entries and their sizes, 2 to `max_packed`, packs first
    and zeros behind them; and for every entry the tokens its pack shares, whole pages that all its entries have
    cached, or 0. The shared tokens are divided among `pack_splits` programs, what lies behind them among `splits`.
    """
    entries, heads, head_dim = q_EHd.shape
    key_heads = keys.shape[2]
    rows = (tables_SP, slots_E, contexts_E)
    if min(max_packed(heads // key_heads), entries) < 2:
        return attend_entries(q_EHd, keys, values, *rows, splits=splits)
    assert q_EHd.stride()[1:] == (head_dim, 1) and keys.is_contiguous() and values.is_contiguous()
    assert packs.shape == (3, entries) and packs.is_contiguous()
    parts = Parts.like(q_EHd, pack_splits + splits)
    block, stages = choose_block(pad_columns(head_dim) * q_EHd.element_size())
    # a pack has two entries at least: there are no more than half as many packs
    _attend_pack[(entries // 2, key_heads, pack_splits)](
        q_EHd,
        keys,
        values,
        tables_SP,
        slots_E,
        packs,
        *parts,
        softmax_scale(head_dim),
        q_EHd.stride(0),
        tables_SP.stride(0),
        entries,
        pack_splits + splits,
        KEY_HEADS=key_heads,
        GROUP=heads // key_heads,
        HEAD=head_dim,
        PAGE=keys.shape[1],
        M=TILE_ROWS,
        D=pad_columns(head_dim),
        KEYS=block,
        num_warps=PACK_WARPS,
        num_stages=stages,
    )
    launch_splits(
        q_EHd,
        keys,
        values,
        *rows,
        parts=parts,
        splits=splits,
        shared_E=packs[2],
        before=pack_splits,
    )
    return merge_parts(parts, torch.empty_like(q_EHd, memory_format=torch.contiguous_format))


@triton.jit(do_not_specialize=["table_stride", "entries", "num_parts"])
def _attend_pack(
    q,
    keys,
    values,
    tables,
    slots,
    packs,
    weighted,
    stats,
    scale,
    q_stride,
    table_stride,
    entries,
    num_parts,
    KEY_HEADS: tl.constexpr,
    GROUP: tl.constexpr,
    HEAD: tl.constexpr,
    PAGE: tl.constexpr,
    M: tl.constexpr,
    D: tl.constexpr,
    KEYS: tl.constexpr,
):
    """A pack's entries, with their query heads of one key head, over one part of the tokens they share."""
    pack, key_head, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    leader, size = tl.load(packs + pack), tl.load(packs + entries + pack)
    if size == 0:
        return
    shared, slot = tl.load(packs + 2 * entries + leader), tl.load(slots + leader).to(tl.int64)
    share = share_blocks(shared, tl.num_programs(2), KEYS)
    first = split * share
    end = tl.minimum(first + share, shared)

    rows_M, columns_D, keys_N = tl.arange(0, M), tl.arange(0, D), tl.arange(0, KEYS)
    # the rows that fill up the tile repeat its last entry, and are not stored
    real_M = rows_M // GROUP < size
    entries_M = (leader + tl.minimum(rows_M // GROUP, size - 1)).to(tl.int64)
    heads_M = key_head * GROUP + rows_M % GROUP
    part_M = (entries_M * (KEY_HEADS * GROUP) + heads_M) * num_parts + split
    if first >= end:
        mark_empty(stats, part_M, real_M)
        return

    table = tables + slot * table_stride
    q_MD = load_rows(q, entries_M * q_stride + heads_M * HEAD, columns_D, HEAD)
    acc_MD = tl.zeros((M, D), tl.float32)
    max_M, sum_M = tl.full((M,), LOWEST, tl.float32), tl.zeros((M,), tl.float32)
    places_N = find_places(table, tl.minimum(first + keys_N, end - 1), PAGE)
    for start in range(first, end, KEYS):
        k_ND = load_rows(keys + key_head * HEAD, places_N * (KEY_HEADS * HEAD), columns_D, HEAD)
        v_ND = load_rows(values + key_head * HEAD, places_N * (KEY_HEADS * HEAD), columns_D, HEAD)
        places_N = find_places(table, tl.minimum(start + KEYS + keys_N, end - 1), PAGE)
        scores_MN = score(q_MD, k_ND)
        if start + KEYS > end:  # only the last block can be too long
            scores_MN = tl.where((start + keys_N < end)[None, :], scores_MN, float("-inf"))
        acc_MD, max_M, sum_M = fold(acc_MD, max_M, sum_M, scores_MN, v_ND, scale, q_MD.dtype)
    store_parts(weighted, stats, part_M, acc_MD, max_M, sum_M, columns_D, real_M, HEAD)
