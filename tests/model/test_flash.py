"""Attention after shared prompts, merged from two calls of a kernel, against one rectangle with a mask.

Legend: T tokens, H query heads, K key/value heads, d head size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from foresail.model import flash
from foresail.model.flash import FlashAttention, Spans, merge
from foresail.model.kernels import available
from foresail.model.padded import PaddedAttention
from foresail.model.shared_prompts import SharedPromptAttention

LENGTHS = [5, 9, 6, 3, 1, 7, 2, 2]
PARENTS = [-1, -1, -1, 0, 0, 0, 1, 1]
STARTS = torch.tensor([0, *LENGTHS]).cumsum(0)


@dataclass(frozen=True)
class Pair:
    """One span of queries over one of keys, heads first and all of them there."""

    queries: slice
    keys: slice
    q: Tensor
    k: Tensor
    v: Tensor
    scores: Tensor


class PlainKernel:
    """The formulas, a span at a time."""

    def pairs(self, q: Tensor, k: Tensor, v: Tensor, spans: Spans) -> Iterator[Pair]:
        k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
        bounds = zip(*(b.tolist() for x in (spans.q_S1, spans.k_S1) for b in (x[:-1], x[1:])), strict=True)
        for q_start, q_end, k_start, k_end in bounds:
            queries, keys = slice(q_start, q_end), slice(k_start, k_end)
            heads = [x.transpose(0, 1) for x in (q[queries], k[keys], v[keys])]
            scores = heads[0] @ heads[1].transpose(1, 2) * q.shape[-1] ** -0.5
            if spans.causal:
                scores = scores.masked_fill(torch.ones(scores.shape[1:]).triu(1).bool(), -1e30)
            yield Pair(queries, keys, *heads, scores)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, spans: Spans) -> tuple[Tensor, Tensor]:
        out, log_sums = torch.zeros_like(q), q.new_zeros(q.shape[1], q.shape[0])
        for pair in self.pairs(q, k, v, spans):
            log_sums[:, pair.queries] = pair.scores.logsumexp(-1)
            out[pair.queries] = (pair.scores.softmax(-1) @ pair.v).transpose(0, 1)
        return out, log_sums

    def backward(
        self, grad: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, log_sums: Tensor, spans: Spans
    ) -> tuple[Tensor, Tensor, Tensor]:
        for_q = torch.zeros_like(q)
        for_k, for_v = (q.new_zeros(len(k), *q.shape[1:]) for _ in range(2))
        for pair in self.pairs(q, k, v, spans):
            weights = (pair.scores - log_sums[:, pair.queries, None]).exp()
            slope = grad[pair.queries].transpose(0, 1)
            along = (slope * out[pair.queries].transpose(0, 1)).sum(-1, keepdim=True)
            inner = weights * (slope @ pair.v.transpose(1, 2) - along) * q.shape[-1] ** -0.5
            for_q[pair.queries] += (inner @ pair.k).transpose(0, 1)
            for_k[pair.keys] += (inner.transpose(1, 2) @ pair.q).transpose(0, 1)
            for_v[pair.keys] += (weights.transpose(1, 2) @ slope).transpose(0, 1)
        together = (k.shape[1], q.shape[1] // k.shape[1])
        return for_q, for_k.unflatten(1, together).sum(2), for_v.unflatten(1, together).sum(2)


def heads(device: str = "cpu", dtype: torch.dtype = torch.float32, size: int = 4) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    tokens = int(STARTS[-1])
    return [
        torch.randn(tokens, heads, size, generator=generator).to(device, dtype).requires_grad_()
        for heads in (4, 2, 2)
    ]


def results(
    family: SharedPromptAttention | FlashAttention | PaddedAttention, inputs: list[Tensor]
) -> list[Tensor]:
    out = family.attend(*inputs)
    slope = torch.randn(out.shape, generator=torch.Generator().manual_seed(1)).to(out.device, out.dtype)
    return [out, *torch.autograd.grad(out, inputs, slope)]


@pytest.mark.parametrize("most", [0, 2])
def test_two_calls_joined_are_one(most, monkeypatch):
    """With copies of the parents' keys in the backward pass, and without."""
    monkeypatch.setattr(flash, "MAX_COPIES", most)
    inputs, cpu = heads(), torch.device("cpu")
    merged = results(FlashAttention(STARTS, torch.tensor(PARENTS), cpu, PlainKernel()), inputs)
    masked = results(SharedPromptAttention(STARTS, torch.tensor(PARENTS), cpu), inputs)
    torch.testing.assert_close(merged, masked, rtol=1e-5, atol=2e-6)


def test_a_batch_without_parents_is_one_call():
    inputs, cpu = heads(), torch.device("cpu")
    found = results(FlashAttention(STARTS, None, cpu, PlainKernel()), inputs)
    padded = results(PaddedAttention(LENGTHS, cpu), inputs)
    torch.testing.assert_close(found, padded, rtol=1e-5, atol=2e-6)


def test_segments_out_of_order_are_refused():
    with pytest.raises(AssertionError, match="out of order"):
        FlashAttention(STARTS, torch.tensor([-1, 0, 0, -1, -1, 4, 4, 4]), torch.device("cpu"), PlainKernel())


def test_the_fused_join_is_the_plain_one(monkeypatch):
    """Tokens of a slice; sums so far apart that one side weighs nothing among them."""
    pytest.importorskip("triton_interpreter", reason="its interpreter runs the kernel")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    generator = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator).to(device)

    outs, sums = draw(50, 3, 24), 50 * draw(3, 50)
    more, more_sums = draw(40, 3, 24), 50 * draw(3, 40)
    found = []
    for fused in (False, True):
        monkeypatch.setattr(available, "can_fuse", lambda x, fused=fused: fused)
        result = outs.clone(), sums.clone()
        merge(result[0][10:], result[1][:, 10:], more, more_sums)
        found.append(result)
    torch.testing.assert_close(found[1], found[0], rtol=1e-5, atol=1e-5)
    assert torch.equal(found[1][0][:10], outs[:10]) and torch.equal(found[1][1][:, :10], sums[:, :10])


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("most", [0, 2])
def test_cuda_flash_gives_what_the_formulas_give(most, monkeypatch):
    monkeypatch.setattr(flash, "MAX_COPIES", most)
    inputs = heads("cuda", torch.bfloat16, 64)
    parents = torch.tensor(PARENTS)
    found = results(FlashAttention(STARTS, parents, torch.device("cuda")), inputs)
    exact = [x.detach().double().cpu().requires_grad_() for x in inputs]
    for ours, expected in zip(
        found, results(SharedPromptAttention(STARTS, parents, torch.device("cpu")), exact), strict=True
    ):
        assert (ours.double().cpu() - expected).norm() < 0.01 * expected.norm()
