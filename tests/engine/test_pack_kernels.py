"""Entries that share the beginning of their context, attended in packs, against each of them attended alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from attention_oracle import (
    HALF,
    PAGE,
    TOLERANCE,
    attend_plainly,
    integers,
    make_cache,
    nothing_is_zero_by_chance,
    numbers,
)

from foresail.engine.kernels.packs import TILE_ROWS, attend_packs, max_packed

__all__ = ["nothing_is_zero_by_chance"]  # a fixture for every test here

FAR = 35 * PAGE  # more than two blocks of keys
NEAR = PAGE


def cut_packs(runs: list[tuple[int, int, int]], entries: int, most: int) -> np.ndarray:
    """Three lines, from runs of (first entry, how many, tokens they share), none of which leaves one entry over."""
    packs = np.zeros((3, entries), dtype=np.int32)
    pieces = [
        (first + step, min(most, count - step), shared)
        for first, count, shared in runs
        for step in range(0, count, most)
    ]
    for pack, (first, size, shared) in enumerate(pieces):
        packs[:2, pack] = first, size
        packs[2, first : first + size] = shared
    return packs


def share_pages(tables, leader: int, others: list[int], tokens: int) -> None:
    """Give the beginning of one row to others."""
    tables[others, : tokens // PAGE] = tables[leader, : tokens // PAGE]


def poison_own_beginnings(cache, runs, slots):
    """The same cache, but of a pack only the leader's table leads to the shared pages, the others' to NaN.

    Who looks there for itself is found out.
    """
    keys, values, tables = (tensor.clone() for tensor in cache)
    keys, values = (
        torch.cat((x, torch.full_like(x[:1].float(), torch.nan).to(x.dtype))) for x in (keys, values)
    )
    for first, count, shared in runs:
        for slot in set(slots[first : first + count]) - {slots[first]}:
            tables[slot, : shared // PAGE] = len(keys) - 1
    return keys, values, tables


def check_packs(q_EHd, cache, rows, packs, *, tolerance=TOLERANCE[torch.float32], reading=None, **how):
    found = attend_packs(q_EHd, *(reading or cache), *map(integers, rows), integers(packs.tolist()), **how)
    expected = attend_plainly(q_EHd, *cache, *rows)
    torch.testing.assert_close(found.double(), expected, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize(
    ("heads", "group", "splits", "pack_splits"), [(2, 7, 1, 1), (2, 3, 2, 3), (1, 1, 3, 8), (1, 32, 1, 2)]
)
def test_siblings_in_packs_match_plain_attention(heads, group, splits, pack_splits):
    # two groups, one with a long prompt and one with a page of it; between and behind them rows of their own
    runs, entries = [(1, 3 if group < 32 else 2, FAR), (5, 4, NEAR)], 11
    cache = make_cache(entries, 40, heads=heads, size=16)
    share_pages(cache[2], 1, [2, 3], FAR)
    share_pages(cache[2], 5, [6, 7, 8], NEAR)
    # one cached no more than the prompt, the others end at borders of pages and in the midst
    cached = [9, FAR, FAR + PAGE, FAR + 6, 70, NEAR, 33, 2 * NEAR, NEAR + 1, 0, 150]
    rows = (range(entries), [tokens + 1 for tokens in cached])
    packs = cut_packs(runs, entries, max_packed(group))
    reading = poison_own_beginnings(cache, packed_runs(packs), list(range(entries)))
    how = {"splits": splits, "pack_splits": pack_splits, "reading": reading}
    check_packs(numbers(entries, heads * group, 16), cache, rows, packs, **how)


def packed_runs(packs: np.ndarray) -> list[tuple[int, int, int]]:
    return [(first, size, int(packs[2, first])) for first, size in packs[:2].T.tolist() if size]


@pytest.mark.parametrize(("splits", "pack_splits"), [(1, 1), (2, 2)])
def test_the_entries_of_one_row_are_a_pack(splits, pack_splits):
    # two drafted tokens behind a full page, four in the midst of one, none
    slots = [1, 1, 1, 0, 0, 0, 0, 0, 2]
    contexts = [81, 82, 83, 40, 41, 42, 43, 44, 22]
    cache = make_cache(3, 24, heads=1, size=32)
    packs = cut_packs([(0, 3, 80), (3, 5, 36)], 9, 21)
    how = {"splits": splits, "pack_splits": pack_splits}
    check_packs(numbers(9, 3, 32), cache, (slots, contexts), packs, **how)


def test_more_parts_than_are_merged_at_once():
    cache = make_cache(2, 40, heads=1, size=16)
    share_pages(cache[2], 0, [1], 24)
    rows = (range(2), [151, 31])
    how = {"splits": 16, "pack_splits": 2}
    check_packs(numbers(2, 2, 16), cache, rows, cut_packs([(0, 2, 24)], 2, 32), **how)


def test_without_packs_every_entry_is_by_itself():
    cache = make_cache(4, 20, heads=2, size=16)
    rows = (range(4), [71, 4, 41, 1])
    check_packs(numbers(4, 6, 16), cache, rows, np.zeros((3, 4), np.int32), splits=2, pack_splits=2)


def test_one_entry_and_a_group_wider_than_a_tile_go_without_packs():
    cache = make_cache(2, 20, heads=1, size=16)
    rows = ([0], [71])
    check_packs(numbers(1, 2, 16), cache, rows, np.zeros((3, 1), np.int32), splits=2, pack_splits=2)
    rows = ([0, 1], [71, 10])
    none = np.zeros((3, 2), np.int32)
    check_packs(numbers(2, TILE_ROWS + 1, 16), cache, rows, none, splits=1, pack_splits=1)


def test_a_pack_is_what_fits_into_a_tile():
    assert [max_packed(group) for group in (1, 6, 7, 32, 33, 64, 65)] == [64, 10, 9, 2, 1, 1, 0]


@pytest.mark.parametrize(
    ("size", "dtype", "kept"),
    [
        (48, torch.float32, torch.float32),
        (128, HALF, HALF),
        (256, torch.float32, torch.float32),
        (32, HALF, torch.float8_e4m3fn),
    ],
)
def test_packs_of_any_head_size_and_type(size, dtype, kept):
    cache = make_cache(3, 20, heads=2, size=size, dtype=kept)
    share_pages(cache[2], 0, [1, 2], 68)
    q_EHd = numbers(3, 8, size, dtype=dtype)[:, :4]  # a slice of the fused projection
    packs = cut_packs([(0, 3, 68)], 3, 32)
    rows = (range(3), [71, 69, 80])
    check_packs(q_EHd, cache, rows, packs, splits=1, pack_splits=2, tolerance=TOLERANCE[dtype])


def test_nan_of_a_broken_model_shows():
    keys, values, tables = make_cache(2, 20, heads=1, size=16)
    share_pages(tables, 0, [1], 40)
    q_EHd = numbers(2, 2, 16)
    q_EHd[1, 0, 3] = torch.nan
    rows = map(integers, (range(2), [46, 61], cut_packs([(0, 2, 40)], 2, 32).tolist()))
    found = attend_packs(q_EHd, keys, values, tables, *rows, splits=2, pack_splits=2)
    assert found[1, 0].isnan().all() and not found[0].isnan().any() and not found[1, 1].isnan().any()
