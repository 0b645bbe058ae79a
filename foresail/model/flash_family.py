"""Attention after shared prompts by a flash kernel that reads packed tokens.

Every segment sees itself in one call, and all children of a parent see it in another; the two are joined by their
log-sums. The backward pass hands the joined output and log-sums to the kernel, and each call gives its own part of
the exact gradient.

Legend: T tokens, C those of children, P those of parents, S segments, H query heads, K key/value heads,
d head size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class Spans:
    """Of one call: offsets of the queries and of the keys they see, and the longest of each."""

    q_S1: Tensor
    k_S1: Tensor
    longest_q: int
    longest_k: int
    causal: bool


class Kernel(Protocol):
    """Attention over spans and its gradient; log-sums are (H, tokens)."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor, spans: Spans) -> tuple[Tensor, Tensor]: ...

    def backward(
        self, grad: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, log_sums: Tensor, spans: Spans
    ) -> tuple[Tensor, Tensor, Tensor]: ...


class Flash:
    """PyTorch's own."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor, spans: Spans) -> tuple[Tensor, Tensor]:
        sizes = spans.q_S1, spans.k_S1, spans.longest_q, spans.longest_k
        out, log_sums, *_ = torch.ops.aten._flash_attention_forward(q, k, v, *sizes, 0.0, spans.causal, False)
        return out, log_sums

    def backward(
        self, grad: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, log_sums: Tensor, spans: Spans
    ) -> tuple[Tensor, Tensor, Tensor]:
        sizes = spans.q_S1, spans.k_S1, spans.longest_q, spans.longest_k
        # what dropout would need
        seed, unused = torch.zeros(2, dtype=torch.uint64, device=q.device), torch.empty(0, device=q.device)
        return torch.ops.aten._flash_attention_backward(
            grad, q, k, v, out, log_sums, *sizes, 0.0, spans.causal, seed, unused
        )


class FlashFamily:
    """As `family.Family`, where a kernel reads packed tokens. The children of a parent lie side by side."""

    def __init__(
        self, starts_S1: Tensor, parents_S: Tensor, device: torch.device, kernel: Kernel | None = None
    ) -> None:
        self.kernel = kernel or Flash()
        lengths_S, is_child_S = starts_S1.diff(), parents_S >= 0
        parents = torch.unique(parents_S[is_child_S])
        segment_T = torch.repeat_interleave(torch.arange(len(lengths_S)), lengths_S)
        below_S = torch.zeros_like(lengths_S).index_add(0, parents_S[is_child_S], lengths_S[is_child_S])
        self.children_C = torch.nonzero(is_child_S[segment_T]).squeeze(1).to(device)
        self.parents_P = torch.nonzero(torch.isin(segment_T, parents)).squeeze(1).to(device)
        self.own = make_spans(lengths_S, lengths_S, device, causal=True)
        self.up = make_spans(below_S[parents], lengths_S[parents], device, causal=False)

    def attend(self, q_THd: Tensor, k_TKd: Tensor, v_TKd: Tensor) -> Tensor:
        return FamilyAttention.apply(q_THd, k_TKd, v_TKd, self)


def make_spans(queries_S: Tensor, keys_S: Tensor, device: torch.device, *, causal: bool) -> Spans:
    def offsets(lengths_S: Tensor) -> Tensor:
        return torch.nn.functional.pad(lengths_S.cumsum(0), (1, 0)).to(torch.int32).to(device)

    return Spans(
        q_S1=offsets(queries_S),
        k_S1=offsets(keys_S),
        longest_q=int(queries_S.max()),
        longest_k=int(keys_S.max()),
        causal=causal,
    )


class FamilyAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q_THd: Tensor, k_TKd: Tensor, v_TKd: Tensor, family: FlashFamily) -> Tensor:
        children, parents = family.children_C, family.parents_P
        out_THd, log_sums_HT = family.kernel.forward(q_THd, k_TKd, v_TKd, family.own)
        q_CHd, k_PKd, v_PKd = q_THd[children], k_TKd[parents], v_TKd[parents]
        up_CHd, up_HC = family.kernel.forward(q_CHd, k_PKd, v_PKd, family.up)
        own_HC = log_sums_HT[:, children]
        joined_HC = torch.logaddexp(own_HC, up_HC)
        share_CH1 = (own_HC - joined_HC).exp().t()[..., None]
        joined_CHd = torch.lerp(up_CHd.float(), out_THd[children].float(), share_CH1)
        out_THd = out_THd.index_copy(0, children, joined_CHd.to(out_THd.dtype))
        log_sums_HT = log_sums_HT.index_copy(1, children, joined_HC)
        ctx.save_for_backward(q_THd, k_TKd, v_TKd, out_THd, log_sums_HT)
        ctx.family = family
        return out_THd

    @staticmethod
    def backward(ctx: Any, grad_THd: Tensor) -> tuple[Tensor | None, ...]:
        q_THd, k_TKd, v_TKd, out_THd, log_sums_HT = ctx.saved_tensors
        family: FlashFamily = ctx.family
        children, parents, grad_THd = family.children_C, family.parents_P, grad_THd.contiguous()
        for_q, for_k, for_v = family.kernel.backward(
            grad_THd, q_THd, k_TKd, v_TKd, out_THd, log_sums_HT, family.own
        )
        up_q, up_k, up_v = family.kernel.backward(
            grad_THd[children],
            q_THd[children],
            k_TKd[parents],
            v_TKd[parents],
            out_THd[children],
            log_sums_HT[:, children].contiguous(),
            family.up,
        )
        for_q.index_add_(0, children, up_q)
        for_k.index_add_(0, parents, up_k)
        for_v.index_add_(0, parents, up_v)
        return for_q, for_k, for_v, None
