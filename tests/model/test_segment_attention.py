"""Segments attended to one by one, on a CPU: the same outputs and gradients as in padded rectangles."""

from __future__ import annotations

import pytest
import torch

from foresail.model.attention import PackedAttention
from foresail.model.segment_attention import SegmentAttention, is_ragged

PROMPTS, ALONE = [-1, -1, 0, 0, 1], [-1] * 5


@pytest.mark.parametrize("parents", [PROMPTS, ALONE])
@pytest.mark.parametrize("kv_heads", [1, 2])
def test_segments_one_by_one_equal_a_rectangle(parents: list[int], kv_heads: int) -> None:
    lengths = [9, 2, 1, 30, 4]
    starts_S1 = torch.tensor([0, *lengths]).cumsum(0)
    packed = PackedAttention(starts_S1, None if parents is ALONE else torch.tensor(parents))
    assert packed.segments is None
    draw = torch.Generator().manual_seed(0)
    inputs = [torch.randn(sum(lengths), heads, 8, generator=draw) for heads in (2, kv_heads, kv_heads)]
    weights = torch.randn(sum(lengths), 2, 8, generator=draw)
    found = []
    for attend in (packed.attend, SegmentAttention(lengths, parents).attend):
        leaves = [x.clone().requires_grad_() for x in inputs]
        out_THd = attend(*leaves)
        found.append([out_THd, *torch.autograd.grad((out_THd * weights).sum(), leaves)])
    torch.testing.assert_close(found[1], found[0], atol=1e-5, rtol=1e-5)


def test_only_much_padding_is_worth_a_call_for_each() -> None:
    assert is_ragged([1000, 10, 10], [-1, -1, -1])
    assert is_ragged([500, 100, 10, 400], [-1, -1, 0, 1])
    assert not is_ragged([300, 300, 300, 300], [-1, -1, 0, 1])  # no padding
    assert not is_ragged([40, 3, 5, 60], [-1, -1, 0, 1])  # short
    packed = PackedAttention(torch.tensor([0, 1000, 1010, 1020]))
    assert isinstance(packed.segments, SegmentAttention)
