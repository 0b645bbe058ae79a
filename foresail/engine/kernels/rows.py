"""The state of the rows before and after a forward pass on CUDA: where its entries stand, what they drew.

A row has one entry per node of its draft tree, side by side, the root (the token drawn last) first; without
drafts it has the root alone. The last slot is a scratch row: entries that only fill a batch up are roots of it.

Legend: E entries, S slots, P pages per row, X stop ids per row, N nodes of a row.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from foresail.engine.advance import AT_LIMIT, BROKEN, STOPPED
from foresail.engine.entries import Entries
from foresail.model.kernels.sizes import count_blocks, power_from

MOST_NODES = 32  # one warp per row, a node per thread; sights_E has a bit for each
LOCATE_BLOCK = 128

# Columns of a block may start anywhere in it; a variant compiled for each alignment would gain nothing.
COLUMNS = ["slots", "nodes", "depths", "parents", "drafts", "sights"]


def locate(
    last_S: Tensor,
    lengths_S: Tensor,
    tables_SP: Tensor,
    entries: Entries,
    *,
    page_size: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Token ids, rotary positions, places in the cache, and the tokens cached before the step, per entry.

    A row of length 6 has 5 tokens cached. Its root is at position 5, and with pages (7, 3) of 4 tokens at
    place 3 * 4 + 1. Two drafted tokens that may follow it are both at position 6, at places 14 and 15.
    """
    ids_E = torch.empty(len(entries), dtype=torch.int64, device=last_S.device)
    positions_E, places_E = torch.empty_like(ids_E), torch.empty_like(ids_E)
    bases_E = torch.empty_like(ids_E, dtype=torch.int32)
    _locate[(count_blocks(len(entries), LOCATE_BLOCK),)](
        last_S,
        lengths_S,
        tables_SP,
        entries.slots_E,
        entries.nodes_E,
        entries.depths_E,
        entries.drafts_E,
        ids_E,
        positions_E,
        places_E,
        bases_E,
        len(entries),
        tables_SP.stride(0),
        PAGE_SIZE=page_size,
        BLOCK=LOCATE_BLOCK,
    )
    return ids_E, positions_E, places_E, bases_E


@triton.jit(do_not_specialize=["entries", "table_stride"], do_not_specialize_on_alignment=COLUMNS)
def _locate(
    last,
    lengths,
    tables,
    slots,
    nodes,
    depths,
    drafts,
    ids,
    positions,
    places,
    bases,
    entries,
    table_stride,
    PAGE_SIZE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    entry = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = entry < entries
    slot = tl.load(slots + entry, inside, other=0).to(tl.int64)
    node = tl.load(nodes + entry, inside, other=0)
    base = tl.load(lengths + slot, inside, other=1) - 1
    index = base + node
    page = tl.load(tables + slot * table_stride + index // PAGE_SIZE, inside, other=0)
    drawn = tl.load(last + slot, inside, other=0)
    draft = tl.load(drafts + entry, inside, other=0)
    tl.store(ids + entry, tl.where(node == 0, drawn, draft), inside)
    tl.store(positions + entry, base + tl.load(depths + entry, inside, other=0), inside)
    tl.store(places + entry, page.to(tl.int64) * PAGE_SIZE + index % PAGE_SIZE, inside)
    tl.store(bases + entry, base.to(tl.int32), inside)


def advance(
    last_S: Tensor,
    lengths_S: Tensor,
    limits_S: Tensor,
    stops_SX: Tensor,
    entries: Entries,
    tokens_E: Tensor,
    logprobs_E: Tensor,
) -> Tensor:
    """Follow the drafts that were drawn, move the rows on, and tell what each drew, as int32 of 5 x E.

    The lines: tokens, bits of their log-probabilities, the nodes they were drawn at; then, at the row's root,
    how many they are and how the row stands, as `engine/advance.py` says it. A root at entry 4 that drew 11,
    with a child that was drafted as 11 and drew 12, gives

        tokens 11, 12    nodes 0, 1    at entries 4, 5;    count 2    standing 0    at entry 4

    and zeros elsewhere. Siblings must differ in their drafted tokens.
    """
    drawn_5E = torch.empty(5, len(entries), dtype=torch.int32, device=last_S.device)
    _advance[(len(entries),)](
        last_S,
        lengths_S,
        limits_S,
        stops_SX,
        entries.slots_E,
        entries.nodes_E,
        entries.depths_E,
        entries.parents_E,
        entries.drafts_E,
        entries.sights_E,
        tokens_E,
        logprobs_E,
        drawn_5E,
        len(entries),
        len(last_S) - 1,
        stops_SX.shape[1],
        STOPS=power_from(stops_SX.shape[1]),
        NODES=MOST_NODES,
        STOPPED=STOPPED,
        AT_LIMIT=AT_LIMIT,
        BROKEN=BROKEN,
        num_warps=1,
    )
    return drawn_5E


@triton.jit(do_not_specialize=["entries", "scratch", "stop_ids"], do_not_specialize_on_alignment=COLUMNS)
def _advance(
    last,
    lengths,
    limits,
    stops,
    slots,
    nodes,
    depths,
    parents,
    drafts,
    sights,
    tokens,
    logprobs,
    drawn,
    entries,
    scratch,
    stop_ids,
    STOPS: tl.constexpr,
    NODES: tl.constexpr,
    STOPPED: tl.constexpr,
    AT_LIMIT: tl.constexpr,
    BROKEN: tl.constexpr,
):
    """One program per root. No walk: a node is on the path if each node it sees was drawn by its parent."""
    root = tl.program_id(0)
    if tl.load(nodes + root) != 0:
        return
    slot = tl.load(slots + root).to(tl.int64)
    real = slot < scratch
    node = tl.arange(0, NODES)
    entry = root + node
    # The next row starts from node 0 again, so the numbers agree in this row alone.
    mine = tl.load(nodes + entry, entry < entries, other=0) == node
    depth = tl.load(depths + entry, mine, other=0)
    token = tl.load(tokens + entry, mine, other=0).to(tl.int32)
    logprob = tl.load(logprobs + entry, mine, other=0.0)

    below = mine & (node > 0)
    parent_token = tl.load(tokens + root + tl.load(parents + entry, below, other=0), below, other=0)
    as_drafted = (node == 0) | (below & (tl.load(drafts + entry, below, other=0) == parent_token))
    followed = tl.sum(tl.where(as_drafted, 1 << node, 0), 0)
    on_path = mine & real & ((tl.load(sights + entry, mine, other=0) & ~followed) == 0)

    column = tl.arange(0, STOPS)
    stop = tl.load(stops + slot * stop_ids + column, column < stop_ids, other=-1)
    is_stop = tl.max((token[:, None] == stop[None, :]).to(tl.int32), 1)
    limit = tl.load(limits + slot)
    standing = tl.where(depth + 1 >= limit, AT_LIMIT, 0)
    standing = tl.where(is_stop != 0, STOPPED, standing)
    standing = tl.where(logprob != logprob, BROKEN, standing)
    end = tl.min(tl.where(on_path & (standing > 0), depth, NODES), 0)
    emitted = on_path & (depth <= end)
    count = tl.sum(emitted.to(tl.int32), 0)

    unused = mine & (node >= count)
    _lay_down(drawn, root, depth, token, emitted, unused)
    _lay_down(drawn + entries, root, depth, logprob.to(tl.int32, bitcast=True), emitted, unused)
    _lay_down(drawn + 2 * entries, root, depth, node, emitted, unused)
    final = emitted & (depth == count - 1)
    tl.store(drawn + 3 * entries + entry, tl.where(node == 0, count, 0), mine)
    final_standing = tl.sum(tl.where(final, standing, 0), 0)
    tl.store(drawn + 4 * entries + entry, tl.where(node == 0, final_standing, 0), mine)

    tl.store(last + slot, tl.sum(tl.where(final, token, 0), 0).to(tl.int64), real)
    tl.store(lengths + slot, tl.load(lengths + slot) + count, real)
    tl.store(limits + slot, limit - count, real)


@triton.jit
def _lay_down(line, root, depth, values, emitted, unused):
    """Values in the order of the path from the root's cell on, zeros in the rest of the row's cells."""
    cell = root + tl.arange(0, values.shape[0])
    tl.store(line + root + depth, values, emitted)
    tl.store(line + cell, tl.zeros_like(values), unused)
