"""The state of the rows before and after a forward pass on CUDA: where its entries stand, what they sampled.

A row has an entry for the token it sampled last, and one for each drafted token, side by side. The last slot is a
scratch row: entries that only fill a batch up belong to it.

Legend: E entries, S slots, P pages per row, X stop ids per row.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from foresail.engine.advance import AT_LIMIT, BROKEN, STOPPED
from foresail.engine.drafts import MAX_DRAFT
from foresail.engine.entries import Entries
from foresail.model.kernels.sizes import count_blocks, power_from

ROW_ENTRIES = power_from(1 + MAX_DRAFT)  # at most: one warp per row, an entry per thread
LOCATE_BLOCK = 128

# Columns of a block may start anywhere in it; a variant compiled for each alignment would gain nothing.
COLUMNS = ["slots", "offsets", "drafts"]


def locate(
    last_S: Tensor,
    lengths_S: Tensor,
    limits_S: Tensor,
    ahead_SK: Tensor | None,
    tables_SP: Tensor,
    entries: Entries,
    *,
    page_size: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Token ids, positions, places in the cache, and how many tokens each entry sees, itself included.

    A row of length 6 has 5 tokens cached. Its last token is at position 5, with pages (7, 3) of 4 tokens at
    place 3 * 4 + 1, and sees 6 tokens; a token drafted after it is at position 6 and place 14, and sees 7.

    A drafted token that is `UNREAD` is found in ahead_SK. Entries behind the last token that a row may sample, of
    which the host did not know when it laid them out, go to the scratch page.
    """
    ids_E = torch.empty(len(entries), dtype=torch.int64, device=last_S.device)
    positions_E, places_E = torch.empty_like(ids_E), torch.empty_like(ids_E)
    contexts_E = torch.empty_like(ids_E, dtype=torch.int32)
    _locate[(count_blocks(len(entries), LOCATE_BLOCK),)](
        last_S,
        lengths_S,
        limits_S,
        ahead_SK,
        tables_SP,
        entries.slots_E,
        entries.offsets_E,
        entries.drafts_E,
        ids_E,
        positions_E,
        places_E,
        contexts_E,
        len(entries),
        len(last_S) - 1,
        tables_SP.stride(0),
        0 if ahead_SK is None else ahead_SK.stride(0),
        PAGE_SIZE=page_size,
        BLOCK=LOCATE_BLOCK,
    )
    return ids_E, positions_E, places_E, contexts_E


@triton.jit(do_not_specialize=["entries", "scratch", "table_stride"], do_not_specialize_on_alignment=COLUMNS)
def _locate(
    last,
    lengths,
    limits,
    ahead,
    tables,
    slots,
    offsets,
    drafts,
    ids,
    positions,
    places,
    contexts,
    entries,
    scratch,
    table_stride,
    ahead_stride,
    PAGE_SIZE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    entry = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = entry < entries
    slot = tl.load(slots + entry, inside, other=0).to(tl.int64)
    offset = tl.load(offsets + entry, inside, other=0)
    allowed = offset < tl.load(limits + slot, inside, other=0)
    position = tl.where(allowed, tl.load(lengths + slot, inside, other=1) - 1 + offset, 0)
    whose = tl.where(allowed, slot, scratch)
    page = tl.load(tables + whose * table_stride + position // PAGE_SIZE, inside, other=0)
    sampled = tl.load(last + slot, inside, other=0)
    draft = tl.load(drafts + entry, inside, other=0).to(tl.int64)
    if ahead is not None:
        unread = inside & (offset > 0) & (draft < 0)
        draft = tl.where(unread, tl.load(ahead + slot * ahead_stride + offset - 1, unread, other=0), draft)
    tl.store(ids + entry, tl.where(offset == 0, sampled, draft), inside)
    tl.store(positions + entry, position, inside)
    tl.store(places + entry, page.to(tl.int64) * PAGE_SIZE + position % PAGE_SIZE, inside)
    tl.store(contexts + entry, (position + 1).to(tl.int32), inside)


def advance(
    last_S: Tensor,
    lengths_S: Tensor,
    limits_S: Tensor,
    stops_SX: Tensor,
    entries: Entries,
    ids_E: Tensor,
    tokens_E: Tensor,
    logprobs_E: Tensor,
) -> Tensor:
    """Follow the drafts that were sampled, move the rows on, and tell what each sampled, as int32 of 4 x E.

    `ids_E` are the tokens that the step took, so at drafted entries the drafts.

    The lines: tokens and the bits of their log-probabilities; then, at the row's first entry, how many it keeps
    and how it stands, as `engine/advance.py` says it. A row at entries 4 to 6 that sampled 11, 12, 13 where 11 and
    20 were drafted gives

        tokens 11, 12    at entries 4, 5;    count 2    standing 0    at entry 4

    and zeros elsewhere. A row that may sample no more keeps nothing, and stays as it is.
    """
    sampled_4E = torch.empty(4, len(entries), dtype=torch.int32, device=last_S.device)
    _advance[(len(entries),)](
        last_S,
        lengths_S,
        limits_S,
        stops_SX,
        entries.slots_E,
        entries.offsets_E,
        ids_E,
        tokens_E,
        logprobs_E,
        sampled_4E,
        len(entries),
        len(last_S) - 1,
        stops_SX.shape[1],
        STOPS=power_from(stops_SX.shape[1]),
        ROW_ENTRIES=ROW_ENTRIES,
        STOPPED=STOPPED,
        AT_LIMIT=AT_LIMIT,
        BROKEN=BROKEN,
        num_warps=1,
    )
    return sampled_4E


@triton.jit(do_not_specialize=["entries", "scratch", "stop_ids"], do_not_specialize_on_alignment=COLUMNS)
def _advance(
    last,
    lengths,
    limits,
    stops,
    slots,
    offsets,
    ids,
    tokens,
    logprobs,
    sampled,
    entries,
    scratch,
    stop_ids,
    STOPS: tl.constexpr,
    ROW_ENTRIES: tl.constexpr,
    STOPPED: tl.constexpr,
    AT_LIMIT: tl.constexpr,
    BROKEN: tl.constexpr,
):
    """One program per row: its tokens stand up to the first that was drafted wrongly, or that ends it."""
    first = tl.program_id(0)
    if tl.load(offsets + first) != 0:
        return
    slot = tl.load(slots + first).to(tl.int64)
    real = slot < scratch
    offset = tl.arange(0, ROW_ENTRIES)
    entry = first + offset
    # The next row starts from offset 0 again, so the numbers agree in this row alone.
    mine = tl.load(offsets + entry, entry < entries, other=0) == offset
    token = tl.load(tokens + entry, mine, other=0).to(tl.int32)
    logprob = tl.load(logprobs + entry, mine, other=0.0)
    drafted = mine & (offset > 0)
    token_before = tl.load(tokens + entry - 1, drafted, other=0)
    wrong = drafted & (tl.load(ids + entry, drafted, other=0) != token_before)

    column = tl.arange(0, STOPS)
    stop = tl.load(stops + slot * stop_ids + column, column < stop_ids, other=-1)
    is_stop = tl.max((token[:, None] == stop[None, :]).to(tl.int32), 1)
    limit = tl.load(limits + slot)
    standing = tl.where(offset + 1 >= limit, AT_LIMIT, 0)
    standing = tl.where(is_stop != 0, STOPPED, standing)
    standing = tl.where(logprob != logprob, BROKEN, standing)
    end = tl.min(tl.where(mine & (standing > 0), offset, ROW_ENTRIES), 0)
    count = tl.minimum(tl.min(tl.where(wrong | ~mine, offset, ROW_ENTRIES), 0), end + 1)
    moves = real & (limit > 0)
    count = tl.where(moves, count, 0)

    kept = offset < count
    tl.store(sampled + entry, tl.where(kept, token, 0), mine)
    tl.store(sampled + entries + entry, tl.where(kept, logprob.to(tl.int32, bitcast=True), 0), mine)
    final = offset == count - 1
    final_standing = tl.sum(tl.where(final, standing, 0), 0)
    tl.store(sampled + 2 * entries + entry, tl.where(offset == 0, count, 0), mine)
    tl.store(sampled + 3 * entries + entry, tl.where(offset == 0, final_standing, 0), mine)

    tl.store(last + slot, tl.sum(tl.where(final, token, 0), 0).to(tl.int64), moves)
    tl.store(lengths + slot, tl.load(lengths + slot) + count, moves)
    tl.store(limits + slot, limit - count, moves)
