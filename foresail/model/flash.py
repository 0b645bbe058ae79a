"""Attention of packed segments by a flash kernel, which reads the packed layout.

Every segment sees itself. A segment may also continue another, its parent: parents come first in the batch, their
children last and in the same order, so that one more call lets all children see their parents, and the two results
are merged by their log-sums. In the backward pass both calls get the merged output and log-sums, and each gives
its part of the exact gradient. There every child has a copy of its parent's keys, up to `MAX_COPIES`: with the
keys of a few prompts alone the kernel would leave most of a GPU idle.

Legend: T tokens, C those of children, P those of parents, J the parents' copied for each child, S segments,
H query heads, K key/value heads, d head size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from foresail.model.kernels import available

MAX_COPIES = 2  # of a parent's tokens, for each token of the batch


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


class TorchKernel:
    """PyTorch's own, by its operators: they hand out log-sums, and take merged ones in the backward pass."""

    def __init__(self, device: torch.device) -> None:
        # what dropout would need
        self.seed = torch.zeros(2, dtype=torch.uint64, device=device)
        self.unused = torch.empty(0, device=device)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, spans: Spans) -> tuple[Tensor, Tensor]:
        sizes = spans.q_S1, spans.k_S1, spans.longest_q, spans.longest_k
        out, log_sums, *_ = torch.ops.aten._flash_attention_forward(q, k, v, *sizes, 0.0, spans.causal, False)
        return out, log_sums

    def backward(
        self, grad: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, log_sums: Tensor, spans: Spans
    ) -> tuple[Tensor, Tensor, Tensor]:
        sizes = spans.q_S1, spans.k_S1, spans.longest_q, spans.longest_k
        return torch.ops.aten._flash_attention_backward(
            grad, q, k, v, out, log_sums, *sizes, 0.0, spans.causal, self.seed, self.unused
        )


class FlashAttention:
    """Which tokens attend to which. `parents_S` is -1 where there is none; no parent has one."""

    def __init__(
        self,
        starts_S1: Tensor,
        parents_S: Tensor | None,
        device: torch.device,
        kernel: Kernel | None = None,
    ) -> None:
        self.kernel = kernel or TorchKernel(device)
        lengths_S = starts_S1.diff()
        self.own = make_spans(lengths_S, lengths_S, device, causal=True)
        self.up = None if parents_S is None else ParentSpans(starts_S1, parents_S, device)

    def attend(self, q_THd: Tensor, k_TKd: Tensor, v_TKd: Tensor) -> Tensor:
        return FlashFunction.apply(q_THd, k_TKd, v_TKd, self)


class ParentSpans:
    """How children attend to their parents: of which tokens, in which spans."""

    def __init__(self, starts_S1: Tensor, parents_S: Tensor, device: torch.device) -> None:
        lengths_S, above, first = starts_S1.diff(), count_parents(parents_S), int((parents_S < 0).sum())
        self.parents = slice(0, int(starts_S1[above]))
        self.children = slice(int(starts_S1[first]), int(starts_S1[-1]))
        parents_C, lengths_C = parents_S[first:], lengths_S[first:]
        families_P = torch.zeros(above, dtype=lengths_S.dtype).index_add_(0, parents_C, lengths_C)
        self.forward = self.backward = make_spans(families_P, lengths_S[:above], device, causal=False)
        self.copies_J: Tensor | None = None
        if int(lengths_S[parents_C].sum()) <= MAX_COPIES * int(starts_S1[-1]):
            self.backward = make_spans(lengths_C, lengths_S[parents_C], device, causal=False)
            copies = [torch.arange(int(starts_S1[p]), int(starts_S1[p + 1])) for p in parents_C.tolist()]
            self.copies_J = torch.cat(copies).to(device, non_blocking=True)

    def copy(self, x_TKd: Tensor) -> Tensor:
        """The parents' keys or values, in the spans of `backward`."""
        return x_TKd[self.parents] if self.copies_J is None else x_TKd[self.copies_J]

    def sum_copies(self, grad: Tensor) -> Tensor:
        """The gradient of the parents' tokens from that of `copy`, summed in float32."""
        if self.copies_J is None:
            return grad
        sums_PKd = grad.new_zeros(self.parents.stop, *grad.shape[1:], dtype=torch.float32)
        return sums_PKd.index_add_(0, self.copies_J, grad.float())


def count_parents(parents_S: Tensor) -> int:
    """[-1, -1, -1, 0, 0, 1] -> 2: the first two segments have children, the last three are those."""
    above = int(parents_S.max()) + 1
    _, runs = torch.unique_consecutive(parents_S, return_counts=True)
    assert len(runs) == above + 1 and bool((parents_S.diff() >= 0).all()), (
        f"segments out of order: {parents_S}"
    )
    return above


def make_spans(queries_S: Tensor, keys_S: Tensor, device: torch.device, *, causal: bool) -> Spans:
    def offsets(lengths_S: Tensor) -> Tensor:
        offsets_S1 = torch.nn.functional.pad(lengths_S.cumsum(0), (1, 0)).to(torch.int32)
        return offsets_S1.to(device, non_blocking=True)

    return Spans(
        q_S1=offsets(queries_S),
        k_S1=offsets(keys_S),
        longest_q=int(queries_S.max()),
        longest_k=int(keys_S.max()),
        causal=causal,
    )


class FlashFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q_THd: Tensor, k_TKd: Tensor, v_TKd: Tensor, packed: FlashAttention) -> Tensor:
        out_THd, sums_HT = packed.kernel.forward(q_THd, k_TKd, v_TKd, packed.own)
        if (up := packed.up) is not None:
            q_CHd, k_PKd, v_PKd = q_THd[up.children], k_TKd[up.parents], v_TKd[up.parents]
            more_CHd, more_HC = packed.kernel.forward(q_CHd, k_PKd, v_PKd, up.forward)
            merge(out_THd[up.children], sums_HT[:, up.children], more_CHd, more_HC)
        ctx.save_for_backward(q_THd, k_TKd, v_TKd, out_THd, sums_HT)
        ctx.packed = packed
        return out_THd

    @staticmethod
    def backward(ctx: Any, grad_THd: Tensor) -> tuple[Tensor | None, ...]:
        q_THd, k_TKd, v_TKd, out_THd, sums_HT = ctx.saved_tensors
        packed: FlashAttention = ctx.packed
        grad_THd = grad_THd.contiguous()
        for_q, for_k, for_v = packed.kernel.backward(
            grad_THd, q_THd, k_TKd, v_TKd, out_THd, sums_HT, packed.own
        )
        if (up := packed.up) is not None:
            more_q, more_k, more_v = packed.kernel.backward(
                grad_THd[up.children],
                q_THd[up.children],
                up.copy(k_TKd),
                up.copy(v_TKd),
                out_THd[up.children],
                sums_HT[:, up.children].contiguous(),
                up.backward,
            )
            for_q[up.children].add_(more_q)
            for_k[up.parents].add_(up.sum_copies(more_k))
            for_v[up.parents].add_(up.sum_copies(more_v))
        return for_q, for_k, for_v, None


def merge(out_CHd: Tensor, sums_HC: Tensor, more_CHd: Tensor, more_HC: Tensor) -> None:
    """In place: attention over some keys becomes that over more, each result weighing by its sum."""
    if available.can_fuse(out_CHd):
        from foresail.model.kernels import merge_attention

        merge_attention.merge(out_CHd, sums_HC, more_CHd, more_HC)
    else:
        merged_HC = torch.logaddexp(sums_HC, more_HC)
        share_CH1 = (sums_HC - merged_HC).exp().t()[..., None]
        out_CHd.copy_(torch.lerp(more_CHd.float(), out_CHd.float(), share_CH1))
        sums_HC.copy_(merged_HC)
