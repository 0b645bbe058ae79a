"""What MTP layers compute after a decode step on CUDA: where, with which tokens, and what is kept for the next.

`engine/mtp.py` says the same in PyTorch, in some two hundred small kernels, each of which would take a graph longer
than its work. All sizes are known beforehand: what a row does not need goes to the scratch row.

Legend: E entries, R rows, S slots, K MTP layers, J = K - 1 places kept of a row, W = R J + E places computed, D
hidden size, P pages per row, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from foresail.engine.entries import Entries
from foresail.engine.kernels.rows import COLUMNS, ROW_ENTRIES
from foresail.model.kernels.norm import row_layout
from foresail.model.kernels.sizes import count_blocks, power_from

KEEP_BLOCK = 1024  # columns


@dataclass(frozen=True, kw_only=True)
class DraftLayout:
    """Rows by number, and places: the J that are kept of every row, then the entries."""

    slots_R: Tensor
    firsts_R: Tensor  # entries
    counts_R: Tensor  # tokens that stand
    last_R: Tensor  # places
    before_KR: Tensor  # the position before the token that each layer drafts
    slots_W: Tensor
    positions_W: Tensor
    places_W: Tensor  # in the cache
    contexts_W: Tensor
    rows_W: Tensor
    tokens_KW: (
        Tensor  # that each layer takes: ids, or -1, -2, … for the first, second, … one drafted of the row
    )


def lay_out(
    entries: Entries,
    tokens_E: Tensor,
    counts_E: Tensor,
    positions_E: Tensor,
    next_SJ: Tensor,
    known_S: Tensor,
    pages_SP: Tensor,
    *,
    num_rows: int,
    page_size: int,
) -> DraftLayout:
    """`next_SJ` are the tokens behind the kept places, of which `known_S` are known."""
    device, kept = tokens_E.device, next_SJ.shape[1]
    num_entries, num_places, layers = len(entries), num_rows * kept + len(entries), kept + 1

    def empty(*size: int, dtype: torch.dtype = torch.int64) -> Tensor:
        return torch.empty(*size, dtype=dtype, device=device)

    layout = DraftLayout(
        slots_R=empty(num_rows, dtype=torch.int32),
        firsts_R=empty(num_rows),
        counts_R=empty(num_rows),
        last_R=empty(num_rows),
        before_KR=empty(layers, num_rows),
        slots_W=empty(num_places, dtype=torch.int32),
        positions_W=empty(num_places),
        places_W=empty(num_places),
        contexts_W=empty(num_places, dtype=torch.int32),
        rows_W=empty(num_places),
        tokens_KW=empty(layers, num_places),
    )
    _lay_out[(num_rows,)](
        entries.slots_E,
        entries.offsets_E,
        tokens_E,
        counts_E,
        positions_E,
        next_SJ,
        known_S,
        pages_SP,
        layout.slots_R,
        layout.firsts_R,
        layout.counts_R,
        layout.last_R,
        layout.before_KR,
        layout.slots_W,
        layout.positions_W,
        layout.places_W,
        layout.contexts_W,
        layout.rows_W,
        layout.tokens_KW,
        num_entries,
        num_rows,
        num_places,
        len(known_S) - 1,
        pages_SP.stride(0),
        PAGE_SIZE=page_size,
        KEPT=kept,
        KEPT_BLOCK=power_from(max(kept, 1)),
        ROW_ENTRIES=ROW_ENTRIES,
        ENTRIES=power_from(num_entries),
    )
    return layout


@triton.jit(
    do_not_specialize=["entries", "num_rows", "num_places", "scratch"],
    do_not_specialize_on_alignment=[*COLUMNS, "counts"],
)
def _lay_out(
    slots,
    offsets,
    tokens,
    counts,
    positions,
    nexts,
    known,
    pages,
    row_slots,
    row_firsts,
    row_counts,
    row_last,
    row_before,
    place_slots,
    place_positions,
    place_places,
    place_contexts,
    place_rows,
    place_tokens,
    entries,
    num_rows,
    num_places,
    scratch,
    page_stride,
    PAGE_SIZE: tl.constexpr,
    KEPT: tl.constexpr,
    KEPT_BLOCK: tl.constexpr,
    ROW_ENTRIES: tl.constexpr,
    ENTRIES: tl.constexpr,
):
    """One program per row. Rows that are not there or sampled nothing, and entries that fill the batch up, are the
    scratch row's.
    """
    row = tl.program_id(0)
    every = tl.arange(0, ENTRIES)
    begins = tl.load(offsets + every, every < entries, other=1) == 0
    number = tl.cumsum(begins.to(tl.int32), 0) - 1
    first = tl.min(tl.where(begins & (number == row), every, entries), 0)
    found = first < entries
    first = tl.where(found, first, 0)
    slot = tl.load(slots + first)
    there = found & (slot != scratch) & (tl.load(counts + first) > 0)
    slot = tl.where(there, slot, scratch).to(tl.int64)
    count = tl.where(there, tl.load(counts + first), 1)
    position = tl.load(positions + first)
    tl.store(row_slots + row, slot.to(tl.int32))
    tl.store(row_firsts + row, first.to(tl.int64))
    tl.store(row_counts + row, count.to(tl.int64))
    tl.store(row_last + row, (num_rows * KEPT + first + count - 1).to(tl.int64))
    for layer in tl.static_range(KEPT + 1):
        tl.store(row_before + layer * num_rows + row, position + count + layer)

    for part in tl.static_range(2):
        if part == 0:  # the places kept of the row
            step = tl.arange(0, KEPT_BLOCK) - KEPT
            mine = step < 0
            needed = mine & there & (-step <= tl.load(known + slot))
            place = row * KEPT + step + KEPT
        else:
            step = tl.arange(0, ROW_ENTRIES)
            entry = first + step
            mine = found & (entry < entries)
            mine = mine & (tl.load(offsets + entry, mine, other=-1) == step)
            needed = mine & there & (step < count)
            place = num_rows * KEPT + entry
        whose = tl.where(needed, slot, scratch)
        where = tl.where(needed, position + step, 0)
        page = tl.load(pages + whose * page_stride + where // PAGE_SIZE, mine, other=0).to(tl.int64)
        tl.store(place_slots + place, whose.to(tl.int32), mine)
        tl.store(place_positions + place, where, mine)
        tl.store(place_places + place, page * PAGE_SIZE + where % PAGE_SIZE, mine)
        tl.store(place_contexts + place, (where + 1).to(tl.int32), mine)
        tl.store(place_rows + place, (row + 0 * step).to(tl.int64), mine)
        for layer in tl.static_range(KEPT + 1):
            ahead = step + layer + 1  # counted from the row's last token before the step
            kept = tl.load(nexts + slot * KEPT + KEPT + ahead - 1, needed & (ahead <= 0), other=0)
            sampled = tl.load(tokens + first + ahead - 1, needed & (ahead > 0) & (ahead <= count), other=0)
            token = tl.where(
                ahead <= 0, kept, tl.where(ahead <= count, sampled, (count - ahead).to(tl.int64))
            )
            tl.store(place_tokens + layer * num_places + place, tl.where(needed, token, 0), mine)

    if row == 0:  # entries of no row at all
        nobody = (number >= num_rows) & (every < entries)
        filler = num_rows * KEPT + every
        spare = tl.load(pages + scratch.to(tl.int64) * page_stride).to(tl.int64)
        zeros = tl.full((ENTRIES,), 0, tl.int64)
        tl.store(place_slots + filler, (zeros + scratch).to(tl.int32), nobody)
        tl.store(place_positions + filler, zeros, nobody)
        tl.store(place_places + filler, zeros + spare * PAGE_SIZE, nobody)
        tl.store(place_contexts + filler, (zeros + 1).to(tl.int32), nobody)
        tl.store(place_rows + filler, zeros, nobody)
        for layer in tl.static_range(KEPT + 1):
            tl.store(place_tokens + layer * num_places + filler, zeros, nobody)


def join_inputs(
    stream_WD: Tensor,
    tokens_W: Tensor,
    rows_W: Tensor,
    drafts_RK: Tensor,
    embed_VD: Tensor,
    hidden_weight_D: Tensor,
    token_weight_D: Tensor,
    eps: float,
) -> Tensor:
    """[norm(stream); norm(embedding of the token)] of every place, tokens as a `DraftLayout` has them."""
    places, width = stream_WD.shape
    out = torch.empty(places, 2 * width, dtype=embed_VD.dtype, device=stream_WD.device)
    _join_inputs[(places,)](
        stream_WD.contiguous(),
        tokens_W,
        rows_W,
        drafts_RK,
        embed_VD,
        hidden_weight_D,
        token_weight_D,
        out,
        eps,
        drafts_RK.stride(0),
        width,
        **row_layout(width),
    )
    return out


@triton.jit(do_not_specialize_on_alignment=["tokens"])
def _join_inputs(
    stream,
    tokens,
    rows,
    drafts,
    embed,
    hidden_weight,
    token_weight,
    out,
    eps,
    draft_stride,
    width,
    BLOCK: tl.constexpr,
):
    place = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < width
    token = tl.load(tokens + place)
    drafted = tl.load(drafts + tl.load(rows + place) * draft_stride - 1 - token, token < 0, other=0)
    token = tl.where(token < 0, drafted, token)
    hidden = tl.load(stream + place * width + columns, inside, other=0.0).to(tl.float32)
    said = tl.load(embed + token * width + columns, inside, other=0.0).to(tl.float32)
    hidden *= tl.rsqrt(tl.sum(hidden * hidden, 0) / width + eps)
    said *= tl.rsqrt(tl.sum(said * said, 0) / width + eps)
    hidden *= tl.load(hidden_weight + columns, inside, other=0.0).to(tl.float32)
    said *= tl.load(token_weight + columns, inside, other=0.0).to(tl.float32)
    tl.store(out + place * 2 * width + columns, hidden, inside)
    tl.store(out + (place * 2 + 1) * width + columns, said, inside)


def keep(
    layout: DraftLayout,
    stream_ED: Tensor,
    tokens_E: Tensor,
    stream_SJD: Tensor,
    next_SJ: Tensor,
    known_S: Tensor,
) -> None:
    """The last J places of every row and the tokens behind them, in place."""
    kept, width = stream_SJD.shape[1:]
    if kept:
        _keep[(len(layout.slots_R), count_blocks(width, KEEP_BLOCK))](
            layout.slots_R,
            layout.firsts_R,
            layout.counts_R,
            stream_ED.contiguous(),
            tokens_E,
            stream_SJD,
            next_SJ,
            known_S,
            width,
            KEPT=kept,
            BLOCK=KEEP_BLOCK,
        )


@triton.jit
def _keep(
    slots,
    firsts,
    counts,
    stream,
    tokens,
    kept_stream,
    nexts,
    known,
    width,
    KEPT: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """The places move up: what is read stands behind what has been written."""
    row, block = tl.program_id(0), tl.program_id(1)
    slot, first, count = (
        tl.load(slots + row).to(tl.int64),
        tl.load(firsts + row),
        tl.load(counts + row),
    )
    columns = block * BLOCK + tl.arange(0, BLOCK)
    inside = columns < width
    for place in tl.static_range(KEPT):
        step = count - KEPT + place
        old = slot * KEPT + KEPT + step
        ours = tl.load(stream + (first + step) * width + columns, inside & (step >= 0), other=0.0)
        theirs = tl.load(kept_stream + old * width + columns, inside & (step < 0), other=0.0)
        tl.store(
            kept_stream + (slot * KEPT + place) * width + columns, tl.where(step >= 0, ours, theirs), inside
        )
        if block == 0:
            token = tl.where(
                step >= 0,
                tl.load(tokens + first + step, step >= 0, other=0),
                tl.load(nexts + old, step < 0, other=0),
            )
            tl.store(nexts + slot * KEPT + place, token)
    if block == 0:
        tl.store(known + slot, tl.minimum(tl.load(known + slot) + count, KEPT))
