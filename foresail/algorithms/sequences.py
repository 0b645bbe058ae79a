"""Sums and means over the tokens of each sequence of a micro-batch, repeated at all of its tokens.

Legend: M tokens with a loss, S sequences.
"""

from __future__ import annotations

import torch
from torch import Tensor


def sums_of_sequences(values_M: Tensor, sequence_M: Tensor, num_sequences: int) -> Tensor:
    """Values [1, 2, 5] of sequences [0, 0, 1] -> [3, 3, 5]."""
    zeros_S = values_M.new_zeros(num_sequences)
    return zeros_S.index_add(0, sequence_M, values_M)[sequence_M]


def means_of_sequences(values_M: Tensor, sequence_M: Tensor, num_sequences: int) -> Tensor:
    """Values [1, 2, 5] of sequences [0, 0, 1] -> [1.5, 1.5, 5]."""
    counts_M = sums_of_sequences(torch.ones_like(values_M), sequence_M, num_sequences)
    return sums_of_sequences(values_M, sequence_M, num_sequences) / counts_M
