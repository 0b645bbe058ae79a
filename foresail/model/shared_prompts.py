"""Attention where segments go on after others: answers after a prompt that they share.

Segments without a parent come first and see themselves. The others are spread into a rectangle with a row for each:
on the left its parent's keys, on the right its own.

Legend: T tokens, S segments, C those with a parent, L tokens of the longest of them, J keys of a row,
H query heads, K key/value heads, d head size.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from foresail.model.padded import PaddedAttention


class SharedPromptAttention:
    """The segment of each token, and the tokens it may attend to. `parents_S` is -1 where there is none, and then 0
    or more.
    """

    def __init__(self, starts_S1: Tensor, parents_S: Tensor, device: torch.device) -> None:
        lengths_S, roots = starts_S1.diff(), int((parents_S < 0).sum())
        self.first = int(starts_S1[roots])  # token of a child
        self.roots = PaddedAttention(lengths_S[:roots].tolist(), device)
        self.children = PaddedAttention(lengths_S[roots:].tolist(), device)
        parents_C = parents_S[roots:]
        before = places_of(starts_S1[parents_C], lengths_S[parents_C])
        own = places_of(starts_S1[roots:-1], lengths_S[roots:])
        self.keys_CJ, there_CJ = (torch.cat(halves, 1).to(device) for halves in zip(before, own, strict=True))
        # a token sees all of the parent, and of its own segment itself and what came before
        later_LL = torch.ones(own[0].shape[1], own[0].shape[1], dtype=torch.bool).triu(1)
        later_LJ = F.pad(later_LL, (before[0].shape[1], 0)).to(device)
        self.seen_C1LJ = (there_CJ[:, None] & ~later_LJ)[:, None]

    def attend(self, q_THd: Tensor, k_TKd: Tensor, v_TKd: Tensor) -> Tensor:
        roots = self.roots.attend(*(x[: self.first] for x in (q_THd, k_TKd, v_TKd)))
        q = self.children.pad(q_THd[self.first :])
        k, v = (self._gather(x) for x in (k_TKd, v_TKd))
        children = self.children.unpad(
            F.scaled_dot_product_attention(
                q, k, v, attn_mask=self.seen_C1LJ, enable_gqa=q.shape[1] != k.shape[1]
            )
        )
        return torch.cat((roots, children))

    def _gather(self, x_TKd: Tensor) -> Tensor:
        """The keys or values each row may see, (C, K, J, d)."""
        rows = x_TKd.index_select(0, self.keys_CJ.flatten())
        return rows.unflatten(0, self.keys_CJ.shape).transpose(1, 2)


def places_of(starts_C: Tensor, lengths_C: Tensor) -> tuple[Tensor, Tensor]:
    """Starts [7, 2], lengths [1, 3] -> places [[7, 7, 7], [2, 3, 4]], of which [[1, 0, 0], [1, 1, 1]] are there."""
    steps_L = torch.arange(int(lengths_C.max()))
    there_CL = steps_L < lengths_C[:, None]
    return starts_C[:, None] + torch.where(there_CL, steps_L, 0), there_CL
