"""Rows of one length, attended as rows, are what they are as packed sequences."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from foresail.model import attention
from foresail.model.attention import PackedAttention
from foresail.model.determinism import deterministic
from foresail.model.row_attention import attend_rows, can_attend_rows

LENGTH = 1024


def test_rows_are_whole_and_equal():
    assert can_attend_rows([4096, 4096]) and can_attend_rows([1024])
    assert not can_attend_rows([4096, 2048]) and not can_attend_rows([1000, 1000])
    with deterministic(True):
        assert not can_attend_rows([4096, 4096])


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize(("heads", "kv_heads", "head_dim"), [(4, 2, 128), (6, 6, 64)])
def test_values_and_gradients_are_those_of_packed_sequences(heads, kv_heads, head_dim, monkeypatch):
    numbers = torch.Generator("cuda").manual_seed(0)

    def noise(count: int) -> Tensor:
        x = torch.randn(3 * LENGTH, count, head_dim, generator=numbers, device="cuda")
        return x.bfloat16().requires_grad_()

    qkv, slopes = [noise(heads), noise(kv_heads), noise(kv_heads)], noise(heads).detach()
    packed = PackedAttention(torch.arange(4) * LENGTH)
    asked = []
    monkeypatch.setattr(attention, "attend_rows", lambda *args: asked.append(args[-1]) or attend_rows(*args))

    def run() -> list[Tensor]:
        out = packed(0, *qkv)
        return [out, *torch.autograd.grad(out, qkv, slopes)]

    rows = run()
    with deterministic(True):
        packs = run()
    assert asked == [LENGTH]
    for row, pack in zip(rows, packs, strict=True):
        limit = 0.02 * pack.abs().max().item()
        torch.testing.assert_close(row, pack, atol=limit, rtol=0)
