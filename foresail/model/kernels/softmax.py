# mypy: allow-untyped-defs
"""The softmax of attention, one block of keys after another.

A tile runs along its keys and keeps, in base 2, the greatest score, the sum of the weights and the weighted
values. A block of which a row sees nothing leaves all three as they are, to the last bit.

Legend: in a kernel M rows of a tile, N keys of a block, D columns (d padded to a power of two).
"""

from __future__ import annotations

from math import e, log2

import triton
import triton.language as tl

from foresail.model.kernels.sizes import power_from

LOWEST = tl.constexpr(-1e30)  # under every score, yet finite: the difference of two is not NaN


def softmax_scale(head_dim: int) -> float:
    """What scores are multiplied with before 2 is raised to them: e to the usual scaled score."""
    return log2(e) * head_dim**-0.5


def pad_columns(head_dim: int) -> int:
    return max(16, power_from(head_dim))


@triton.jit
def score(q_MD, k_ND):
    # float8 keys are widened here; ieee: float32 stays float32 instead of passing through tf32
    return tl.dot(q_MD, tl.trans(k_ND.to(q_MD.dtype)), input_precision="ieee")


@triton.jit
def fold(acc_MD, max_M, sum_M, scores_MN, v_ND, scale, dtype: tl.constexpr):
    """Take one more block of keys into the running softmax."""
    higher_M = tl.maximum(max_M, tl.max(scores_MN, 1) * scale)
    weights_MN = tl.exp2(scores_MN * scale - higher_M[:, None])
    decay_M = tl.exp2(max_M - higher_M)
    sum_M = sum_M * decay_M + tl.sum(weights_MN, 1)
    acc_MD = acc_MD * decay_M[:, None]
    acc_MD = tl.dot(weights_MN.to(dtype), v_ND.to(dtype), acc_MD, input_precision="ieee")
    return acc_MD, higher_M, sum_M
