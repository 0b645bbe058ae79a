"""Attention by tiles gives a token the same bits in prefill, in decoding and in training.

Legend: T tokens, H query heads, K key/value heads, d head size, S sequences.
"""

from __future__ import annotations

from contextlib import nullcontext
from itertools import pairwise

import numpy as np
import pytest
import torch
from attention_oracle import (
    DEVICE,
    HALF,
    PAGE,
    integers,
    make_cache,
    numbers,
)
from torch import Tensor

from foresail.model import linear
from foresail.model.attention import PackedAttention
from foresail.model.kernels import available
from foresail.model.kernels.chunks import TILE_ROWS, attend_chunks, cut_tiles

DTYPES = [torch.float32, HALF]
SIZE = 16


def attend_pieces(q_THd, keys, values, tables, slots: list[int], lengths: list[int], contexts) -> Tensor:
    """Pieces of the rows `slots`, laid flat, each at the end of its context."""
    tiles = torch.from_numpy(cut_tiles(lengths, q_THd.shape[1] // keys.shape[2])).to(DEVICE)
    starts_C1 = integers(np.cumsum([0, *lengths]))
    return attend_chunks(
        q_THd, keys, values, tables, starts_C1, integers(contexts), tiles, slots_C=integers(slots)
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("group", [1, 3])
def test_a_sequence_has_the_same_bits_however_it_is_cut(group, dtype):
    length = TILE_ROWS // group + 70  # two tiles, two blocks of keys at least
    cache = make_cache(1, -(-length // PAGE), heads=1, size=SIZE, dtype=dtype)
    q_THd = numbers(length, group, SIZE, dtype=dtype)
    whole = attend_pieces(q_THd, *cache, [0], [length], [length])
    for cuts in ([0, 64, length], [0, 1, 63, 66, length]):
        for first, end in pairwise(cuts):
            piece = attend_pieces(q_THd[first:end], *cache, [0], [end - first], [end])
            assert torch.equal(piece, whole[first:end])
    ends = [1, 2, 63, 64, 65, 100, length]  # tokens of one row beside each other, as drafts are
    entries = attend_pieces(q_THd[[end - 1 for end in ends]], *cache, [0] * len(ends), [1] * len(ends), ends)
    assert torch.equal(entries, whole[[end - 1 for end in ends]])


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_sequence_has_the_same_bits_in_any_company(dtype):
    lengths, contexts = [70, 1, 30], [70, 130, 95]
    cache = make_cache(4, 33, heads=2, size=SIZE, dtype=dtype)
    parts = [numbers(length, 6, SIZE, dtype=dtype, seed=length) for length in lengths]
    alone = [
        attend_pieces(part, *cache, [slot], [len(part)], [context])
        for part, slot, context in zip(parts, (3, 0, 2), contexts, strict=True)
    ]
    together = attend_pieces(torch.cat(parts), *cache, [3, 0, 2], lengths, contexts)
    assert torch.equal(together, torch.cat(alone))
    reverse = attend_pieces(torch.cat(parts[::-1]), *cache, [2, 0, 3], lengths[::-1], contexts[::-1])
    assert torch.equal(reverse, torch.cat(alone[::-1]))


def test_later_tokens_leave_no_trace():
    """Forty tokens of a tile end within its first block of keys; it goes on, with keys that outweigh theirs."""
    keys, values, tables = make_cache(1, 30, heads=1, size=SIZE)
    q_THd = numbers(120, 1, SIZE)
    before = attend_pieces(q_THd, keys, values, tables, [0], [120], [120])
    for cache in (keys, values):
        for index in range(40, 120):
            cache[tables[0, index // PAGE], index % PAGE] *= 1000
    after = attend_pieces(q_THd, keys, values, tables, [0], [120], [120])
    assert torch.equal(before[:40], after[:40])
    assert not torch.isclose(before[40:], after[40:]).all(-1).any()


# The trainer.

LENGTHS = [70, 1, 37]


@pytest.fixture
def by_kernels(monkeypatch):
    """The model's kernels, also where the interpreter must run them."""
    monkeypatch.setattr(available, "can_fuse", lambda x: True)


def fused_heads(dtype: torch.dtype) -> tuple[Tensor, ...]:
    """Queries, keys and values as slices of one projection."""
    return numbers(sum(LENGTHS), 10, SIZE, dtype=dtype).split((6, 2, 2), 1)


def starts(lengths: list[int]) -> Tensor:
    return torch.tensor([0, *lengths], device=DEVICE).cumsum(0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_trainer_attends_as_decoding_does(dtype, by_kernels):
    q_THd, k_TKd, v_TKd = fused_heads(dtype)
    with linear.batch_invariant():
        packed = PackedAttention(starts(LENGTHS))(0, q_THd, k_TKd, v_TKd)
    plain = PackedAttention(starts(LENGTHS))(0, q_THd, k_TKd, v_TKd)
    assert not torch.equal(packed, plain)  # else this says nothing
    torch.testing.assert_close(packed, plain, atol=2e-2 if dtype == HALF else 1e-5, rtol=0)
    for first, end in pairwise(starts(LENGTHS).tolist()):
        table = integers([*reversed(range(-(-(end - first) // PAGE)))])
        caches = (in_pages(x_TKd[first:end], table) for x_TKd in (k_TKd, v_TKd))
        tokens = sorted({first, (first + end) // 2, end - 1})
        contexts, count = [token - first + 1 for token in tokens], len(tokens)
        decoded = attend_pieces(q_THd[tokens], *caches, table[None], [0] * count, [1] * count, contexts)
        assert torch.equal(decoded, packed[tokens])


def in_pages(x_LKd: Tensor, table: Tensor) -> Tensor:
    """A cache of one row, whose pages `table` lists."""
    room = x_LKd.new_zeros(len(table) * PAGE, *x_LKd.shape[1:])
    room[: len(x_LKd)] = x_LKd
    return room.unflatten(0, (-1, PAGE))[table.argsort()].contiguous()


def test_a_packed_sequence_has_the_bits_it_has_alone(by_kernels):
    heads = fused_heads(torch.float32)
    with linear.batch_invariant():
        packed = PackedAttention(starts(LENGTHS))(0, *heads)
        parts = [x.split(LENGTHS) for x in heads]
        alone = [
            PackedAttention(starts([length]))(0, *qkv) for length, *qkv in zip(LENGTHS, *parts, strict=True)
        ]
    assert torch.equal(packed, torch.cat(alone))


@pytest.mark.parametrize("dtype", DTYPES)
def test_after_a_shared_prompt_a_sequence_has_the_bits_it_has_alone(dtype, by_kernels):
    """A prompt of 70 tokens with answers of 1 and 20 after it, then one sequence of 17."""
    lengths, parents = [70, 1, 20, 17], torch.tensor([-1, 0, 0, -1])
    heads = numbers(sum(lengths), 10, SIZE, dtype=dtype).split((6, 2, 2), 1)
    prompt, *answers, other = (slice(first, end) for first, end in pairwise(starts(lengths).tolist()))
    with linear.batch_invariant():
        shared = PackedAttention(starts(lengths), parents)(0, *heads)
        for answer in answers:
            whole = [torch.cat((x[prompt], x[answer])) for x in heads]
            alone = PackedAttention(starts([len(whole[0])]))(0, *whole)
            assert torch.equal(alone, torch.cat((shared[prompt], shared[answer])))
        assert torch.equal(PackedAttention(starts([17]))(0, *(x[other] for x in heads)), shared[other])


def test_gradients_are_those_of_plain_attention(by_kernels):
    grads = []
    for mode in (linear.batch_invariant, nullcontext):
        heads = [x.detach().clone().requires_grad_() for x in fused_heads(torch.float32)]
        with mode():
            out = PackedAttention(starts(LENGTHS))(0, *heads)
        out.square().sum().backward()
        grads.append([x.grad for x in heads])
    for found, expected in zip(*grads, strict=True):
        assert expected.abs().max() > 0
        torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
