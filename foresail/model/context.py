"""Context parallelism: ranks share a micro-batch, each with a slice of its tokens, and attention sees all of them.

Around attention, ranks exchange tokens for heads: each gives away all heads of some tokens and gets some heads of
all tokens, attends with them as one process would, and gives the results back (DeepSpeed's Ulysses). Two ranks,
four tokens t0 … t3, heads a and b:

    rank 0: t0 t1, a b   ->   t0 t1 t2 t3, a   -> attention ->   t0 t1, a b
    rank 1: t2 t3, a b   ->   t0 t1 t2 t3, b   -> attention ->   t2 t3, a b

The results per token (logprobs, values) are small, and every rank gets all of them (`merge_over_group`), so that
every rank computes losses over whole sequences. The backward pass of each rank is about its own tokens.

Legend: T tokens of the micro-batch, L of a slice, C ranks, H query heads, K key/value heads, h any heads,
d head size, M tokens with a loss, R those that this rank reads.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from foresail.model.decoder import Attend
from foresail.recipe.tables.cluster import head_mistakes


class ExchangedAttention:
    """`attend`, which needs all tokens of a batch, for a model that has a slice of them."""

    def __init__(self, attend: Attend, group: Any) -> None:
        self.attend, self.group, self.ranks = attend, group, dist.get_world_size(group)

    def __call__(self, layer: int, q_LHd: Tensor, k_LKd: Tensor, v_LKd: Tensor) -> Tensor:
        for mistake in head_mistakes(self.ranks, q_LHd.shape[1], k_LKd.shape[1]):
            raise ValueError(mistake)
        copies = max(1, self.ranks // k_LKd.shape[1])  # ranks whose queries attend to the same key head
        if copies > 1:
            k_LKd, v_LKd = (x.repeat_interleave(copies, dim=1) for x in (k_LKd, v_LKd))
        parts = [x.unflatten(1, (self.ranks, -1)).transpose(0, 1) for x in (q_LHd, k_LKd, v_LKd)]
        sizes = [part.shape[2] for part in parts]
        heads = Exchange.apply(torch.cat(parts, dim=2), self.group).flatten(0, 1).split(sizes, dim=1)
        out_Thd = self.attend(layer, *heads)
        out_CLhd = Exchange.apply(out_Thd.unflatten(0, (self.ranks, -1)).contiguous(), self.group)
        return out_CLhd.transpose(0, 1).flatten(1, 2)


class Exchange(torch.autograd.Function):
    """All-to-all: row r goes to rank r, which stores it at the sender's number; gradients go the same way back."""

    @staticmethod
    def forward(ctx: Any, rows_C: Tensor, group: Any) -> Tensor:
        ctx.group = group
        return exchange(rows_C, group)

    @staticmethod
    def backward(ctx: Any, grad_C: Tensor) -> tuple[Tensor, None]:
        return exchange(grad_C.contiguous(), ctx.group), None


def exchange(rows_C: Tensor, group: Any) -> Tensor:
    """Rank 0 has [a, b], rank 1 has [c, d]: then [a, c] and [b, d]."""
    received_C = torch.empty_like(rows_C)
    dist.all_to_all_single(received_C, rows_C, group=group)
    return received_C


def merge_over_group(read_R: Tensor, own_R: Tensor, count: int, group: Any) -> Tensor:
    """What all ranks have read, in the order of M: rank 0 reads [.1] at places [1], rank 1 [.2] at [0] -> [.2, .1].

    Every rank computes the same loss from it, which counts once: a gradient goes to the rank that read the number.
    """
    return MergeOverGroup.apply(read_R, own_R, count, group)


def gather_over_group(value: Tensor, group: Any) -> Tensor:
    """A number of each rank, in their order."""
    place = torch.full((1,), dist.get_rank(group), device=value.device)
    return merge_over_group(value[None], place, dist.get_world_size(group), group)


class MergeOverGroup(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, read_R: Tensor, own_R: Tensor, count: int, group: Any) -> Tensor:
        ctx.save_for_backward(own_R)
        merged_M = read_R.new_zeros(count).index_copy_(0, own_R, read_R)
        dist.all_reduce(merged_M, group=group)
        return merged_M

    @staticmethod
    def backward(ctx: Any, grad_M: Tensor) -> tuple[Tensor, None, None, None]:
        (own_R,) = ctx.saved_tensors
        return grad_M[own_R], None, None, None
