"""The Triton attention kernels against plain float64 attention, one entry and one sequence at a time.

Legend: E entries, T tokens, H query heads, K key/value heads, d head size, S slots, P pages per row, C sequences.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from attention_oracle import (
    DEVICE,
    HALF,
    PAGE,
    TOLERANCE,
    attend,
    attend_plainly,
    integers,
    make_cache,
    nothing_is_zero_by_chance,
    numbers,
    read_row,
)

from foresail.engine.kernels.attention import ENTRY_KEYS, attend_entries, choose_splits
from foresail.engine.kernels.cache import write_kv
from foresail.model.kernels.chunks import TILE_ROWS, attend_chunks, cut_tiles

__all__ = ["nothing_is_zero_by_chance"]  # a fixture for every test here


def check_entries(q_EHd, cache, slots, contexts, *, tolerance=TOLERANCE[torch.float32], **how):
    found = attend_entries(q_EHd, *cache, integers(slots), integers(contexts), **how)
    expected = attend_plainly(q_EHd, *cache, slots, contexts)
    torch.testing.assert_close(found.double(), expected, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize(("heads", "group", "splits"), [(2, 1, 1), (2, 3, 2), (1, 7, 1), (1, 7, 8)])
def test_entries_match_plain_attention_at_every_border(heads, group, splits):
    # one token, the borders of a page and of a key block, several blocks (of 8 splits some are empty), all pages
    contexts = [1, PAGE, PAGE + 1, ENTRY_KEYS, ENTRY_KEYS + 1, 2 * ENTRY_KEYS + 2, 35 * PAGE]
    rows = len(contexts)
    cache = make_cache(rows, 35, heads=heads, size=16)
    q_EHd = numbers(rows, heads * group, 16)
    check_entries(q_EHd, cache, range(rows), contexts, splits=splits)


@pytest.mark.parametrize("splits", [1, 3])
def test_entries_of_one_row_see_what_comes_before_them(splits):
    # a row with two drafted tokens, one with four, and one that begins at an empty cache
    slots = [1, 1, 1, 0, 0, 0, 0, 0, 2, 2]
    contexts = [31, 32, 33, 8, 9, 10, 11, 12, 1, 2]
    cache = make_cache(3, 12, heads=1, size=32)
    check_entries(numbers(10, 3, 32), cache, slots, contexts, splits=splits)


@pytest.mark.parametrize("size", [48, 128])
@pytest.mark.parametrize("dtype", [torch.float32, HALF])
def test_entries_of_any_head_size_and_type(dtype, size):
    cache = make_cache(2, 20, heads=2, size=size, dtype=dtype)
    q_EHd = numbers(3, 4, size, dtype=dtype)
    check_entries(q_EHd, cache, [1, 0, 1], [71, 4, 41], splits=2, tolerance=TOLERANCE[dtype])


def test_entries_of_a_float8_cache():
    cache = make_cache(2, 20, heads=2, size=32, dtype=torch.float8_e4m3fn)
    q_EHd = numbers(2, 4, 32, dtype=HALF)
    check_entries(q_EHd, cache, [0, 1], [51, 80], splits=2, tolerance=TOLERANCE[HALF])


def test_queries_may_be_a_slice_of_the_fused_projection():
    fused = numbers(2, 10, 16)
    cache = make_cache(2, 3, heads=2, size=16)
    check_entries(fused[:, :6], cache, [0, 1], [6, 12], splits=1)


@pytest.mark.parametrize("splits", [1, 2])
def test_what_lies_behind_the_context_does_not_matter(splits):
    keys, values, tables = make_cache(1, 20, heads=1, size=16)
    q_EHd = numbers(1, 1, 16)
    plain = attend_plainly(q_EHd, keys, values, tables, [0], [42])
    for cache in (keys, values):
        for index in range(42, 80):
            cache[tables[0, index // PAGE], index % PAGE] = torch.nan
    found = attend_entries(q_EHd, keys, values, tables, integers([0]), integers([42]), splits=splits)
    torch.testing.assert_close(found.double(), plain, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("splits", [1, 4])
def test_scratch_entries_are_finite_and_disturb_nobody(splits):
    keys, values, tables = make_cache(3, 10, heads=2, size=16)
    tables[2] = 0
    q_EHd = numbers(4, 4, 16)
    slots, contexts = [0, 1, 2, 2], [40, 21, 1, 1]
    found = attend_entries(q_EHd, keys, values, tables, integers(slots), integers(contexts), splits=splits)
    expected = attend_plainly(q_EHd, keys, values, tables, slots, contexts)
    torch.testing.assert_close(found.double(), expected, atol=1e-5, rtol=1e-5)


def test_splits_fill_the_card_and_no_more():
    assert [choose_splits(entries, 4, 132) for entries in (1, 8, 16, 64, 256, 4096)] == [32, 8, 4, 1, 1, 1]
    for entries in range(1, 600):
        splits = choose_splits(entries, 2, 132)
        assert splits == 32 or entries * 2 * splits >= 1.5 * 132
        assert splits == 1 or entries * 2 * splits < 3 * 132


def check_chunks(q_THd, cache, lengths, contexts, *, tolerance=TOLERANCE[torch.float32]) -> torch.Tensor:
    keys, values, tables = cache
    starts = np.cumsum([0, *lengths])
    tiles = torch.from_numpy(cut_tiles(lengths, q_THd.shape[1] // keys.shape[2])).to(DEVICE)
    found = attend_chunks(q_THd, keys, values, tables, integers(starts), integers(contexts), tiles)
    expected = []
    for row, (length, context) in enumerate(zip(lengths, contexts, strict=True)):
        k_LKd, v_LKd = read_row(keys, tables[row]), read_row(values, tables[row])
        for step in range(length):
            sees = context - length + step + 1
            expected.append(attend(q_THd[starts[row] + step], k_LKd[:sees], v_LKd[:sees]))
    torch.testing.assert_close(found.double(), torch.stack(expected), atol=tolerance, rtol=tolerance)
    return found


@pytest.mark.parametrize("group", [1, 3, 7])
def test_chunks_match_plain_attention(group):
    tile = TILE_ROWS // group
    # one token, one tile, one token more, several tiles; some behind a past of theirs
    lengths, pasts = [1, tile, tile + 1, 1, 2 * tile + 5], [0, 0, 3, 150, 64]
    contexts = [length + past for length, past in zip(lengths, pasts, strict=True)]
    cache = make_cache(len(lengths), -(-max(contexts) // PAGE), heads=2, size=16)
    check_chunks(numbers(sum(lengths), 2 * group, 16), cache, lengths, contexts)


def test_a_prompt_in_chunks_is_the_prompt_at_once():
    cache = make_cache(1, 40, heads=2, size=16)
    q_THd = numbers(150, 6, 16)
    whole = check_chunks(q_THd, cache, [150], [150])
    pieces = [
        check_chunks(q_THd[first:end], cache, [end - first], [end])
        for first, end in ((0, 64), (64, 65), (65, 150))
    ]
    torch.testing.assert_close(torch.cat(pieces), whole, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(("size", "dtype"), [(48, torch.float32), (128, HALF), (256, torch.float32)])
def test_chunks_of_any_head_size_and_type(size, dtype):
    cache = make_cache(2, 20, heads=1, size=size, dtype=dtype)
    q_THd = numbers(50, 10, size, dtype=dtype)[:, 2:9]  # a slice of the fused projection
    check_chunks(q_THd, cache, [20, 30], [80, 30], tolerance=TOLERANCE[dtype])


def test_chunks_of_a_float8_cache():
    cache = make_cache(1, 20, heads=2, size=32, dtype=torch.float8_e4m3fn)
    check_chunks(numbers(40, 4, 32, dtype=HALF), cache, [40], [75], tolerance=TOLERANCE[HALF])


def test_tiles_cover_every_token_once():
    assert cut_tiles([5, 40], 7).tolist() == [[0, 1, 1, 1], [0, 36, 18, 0]]
    lengths = [1, 0, 18, 19, 300]
    tiles = cut_tiles(lengths, 7)
    assert tiles.dtype == np.int32
    covered = [(s, t) for s, first in tiles.T.tolist() for t in range(first, min(first + 18, lengths[s]))]
    assert sorted(covered) == [(s, t) for s, length in enumerate(lengths) for t in range(length)]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (torch.float32, torch.float32),
        (torch.float32, torch.float16),
        (HALF, HALF),
        (torch.float32, torch.float8_e4m3fn),
    ],
)
def test_new_tokens_land_in_their_places(given, kept):
    fused = numbers(
        3, 12, 48, dtype=given
    )  # 6 query heads, 3 keys, 3 values; a row of 3 x 48 is no power of two
    if kept == torch.float8_e4m3fn and DEVICE == "cpu":
        fused = fused.to(kept).to(given)  # the interpreter cuts off what float8 would round
    k_EKd, v_EKd = fused[:, 6:9], fused[:, 9:]
    caches = [numbers(5, PAGE, 3, 48, seed=seed).to(kept) for seed in (1, 2)]
    expected = [cache.clone() for cache in caches]
    places = [7, 18, 0]
    write_kv(*caches, integers(places), k_EKd, v_EKd)
    for cache, before, new in zip(caches, expected, (k_EKd, v_EKd), strict=True):
        for entry, place in enumerate(places):
            before[place // PAGE, place % PAGE] = new[entry].to(kept)
        assert torch.equal(cache.float(), before.float())


def test_float8_keeps_what_is_too_large_at_its_greatest_number():
    keys, values = (torch.zeros(1, PAGE, 1, 16, device=DEVICE).to(torch.float8_e4m3fn) for _ in range(2))
    k_EKd = torch.tensor([1e4, -1e4, 448.0, 3.0], device=DEVICE).repeat(4).view(1, 1, 16)
    v_EKd = torch.full((1, 1, 16), torch.nan, device=DEVICE)
    write_kv(keys, values, integers([2]), k_EKd, v_EKd)
    assert keys[0, 2, 0, :4].tolist() == [448, -448, 448, 3]
    if DEVICE == "cuda":  # the interpreter's float8 knows no NaN
        assert values[0, 2].float().isnan().all()
    assert (keys[0, :2].float() == 0).all() and (keys[0, 3].float() == 0).all()
