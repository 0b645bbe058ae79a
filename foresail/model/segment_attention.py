"""Attention segment by segment, for CPUs and lengths so unequal that a padded rectangle would be mostly padding.

Legend: T tokens, S segments, L tokens of a segment, J those that it sees, H query heads, K key/value heads,
d head size.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

WORTH_A_CALL = 8192  # padded cells, pairs of a query and a key, that take about as long as one more call


def is_ragged(lengths: Sequence[int], parents: Sequence[int]) -> bool:
    """Whether rectangles of roots and of children would have more padding than a call for each segment costs."""
    own = [
        (length, length + (lengths[parent] if parent >= 0 else 0))
        for length, parent in zip(lengths, parents, strict=True)
    ]
    padded, roots = 0, sum(parent < 0 for parent in parents)
    for rows in (own[:roots], own[roots:]):
        cells = (
            len(rows) * max((row[0] for row in rows), default=0) * max((row[1] for row in rows), default=0)
        )
        padded += cells - sum(queries * keys for queries, keys in rows)
    return padded > WORTH_A_CALL * len(own)


class SegmentAttention:
    """`parents` are -1 for segments that see themselves; the others see all of their parent before."""

    def __init__(self, lengths: Sequence[int], parents: Sequence[int]) -> None:
        self.lengths, self.parents = [*lengths], [*parents]
        self.seen_LJ = [
            torch.ones(length, lengths[parent] + length, dtype=torch.bool).tril(lengths[parent])
            if parent >= 0
            else None
            for length, parent in zip(lengths, parents, strict=True)
        ]

    def attend(self, q_THd: Tensor, k_TKd: Tensor, v_TKd: Tensor) -> Tensor:
        queries, keys, values = (x.split(self.lengths) for x in (q_THd, k_TKd, v_TKd))
        grouped, outputs = q_THd.shape[1] != k_TKd.shape[1], []
        for segment, parent in enumerate(self.parents):
            k_JKd, v_JKd = keys[segment], values[segment]
            if parent >= 0:
                k_JKd, v_JKd = torch.cat((keys[parent], k_JKd)), torch.cat((values[parent], v_JKd))
            q, k, v = (x.transpose(0, 1)[None] for x in (queries[segment], k_JKd, v_JKd))
            out_1HLd = F.scaled_dot_product_attention(
                q,
                k,
                v,
                attn_mask=self.seen_LJ[segment],
                is_causal=parent < 0,
                enable_gqa=grouped,
            )
            outputs.append(out_1HLd[0].transpose(0, 1))
        return torch.cat(outputs)
