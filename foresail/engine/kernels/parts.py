# mypy: allow-untyped-defs
"""Parts of a context that programs look over side by side: what each kept of its softmax, and their merge.

Legend: E entries, H query heads, d head size, Z parts of a context; in a kernel M rows of a tile, D columns
(d padded to a power of two), R rows of a merge.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from foresail.model.kernels.sizes import count_blocks, power_from
from foresail.model.kernels.softmax import LOWEST, pad_columns

MERGED_PARTS = 16  # read by one program of the merge, all at once


@triton.jit
def positive(sums):
    # who sees nothing gets zeros, not NaN
    return tl.where(sums > 0, sums, 1.0)


class Parts(NamedTuple):
    """What programs that share contexts kept. A part whose weights sum to 0 is empty, whatever else it holds."""

    weighted_EHZd: Tensor  # values times weights
    stats_EHZ2: Tensor  # the greatest score, in base 2, and the sum of the weights

    @classmethod
    def like(cls, q_EHd: Tensor, count: int) -> Parts:
        *rows, head_dim = q_EHd.shape
        return cls(*(q_EHd.new_empty(*rows, count, size, dtype=torch.float32) for size in (head_dim, 2)))


def merge_parts(parts: Parts, out: Tensor) -> Tensor:
    """The attention of every head of every entry, from that over the parts of its context."""
    entries, heads, count, head_dim = parts.weighted_EHZd.shape
    rows = power_from(MERGED_PARTS // count)  # of one program
    assert out.is_contiguous()
    _merge_parts[(count_blocks(entries * heads, rows),)](
        *parts,
        out,
        entries * heads,
        HEAD=head_dim,
        COUNT=count,
        AT_ONCE=min(count, MERGED_PARTS),
        R=rows,
        D=pad_columns(head_dim),
        num_warps=1 if rows < 4 else 2,
    )
    return out


@triton.jit(do_not_specialize=["rows"])
def _merge_parts(
    weighted,
    stats,
    out,
    rows,
    HEAD: tl.constexpr,
    COUNT: tl.constexpr,
    AT_ONCE: tl.constexpr,
    R: tl.constexpr,
    D: tl.constexpr,
):
    """Some heads of entries: their parts, rescaled to their common maximum, summed one by one and divided.

    In their order and not as a tree: so the empty parts at the end change no bit.
    """
    row_R, columns_D = tl.program_id(0) * R + tl.arange(0, R), tl.arange(0, D)
    inside_R = row_R < rows
    acc_RD = tl.zeros((R, D), tl.float32)
    max_R, sum_R = tl.full((R,), LOWEST, tl.float32), tl.zeros((R,), tl.float32)
    for start in range(0, COUNT, AT_ONCE):
        for step in tl.static_range(AT_ONCE):
            part_R = row_R.to(tl.int64) * COUNT + start + step
            stored_R = inside_R & (start + step < COUNT)
            part_max_R = tl.load(stats + part_R * 2, stored_R, other=0.0)
            part_sum_R = tl.load(stats + part_R * 2 + 1, stored_R, other=0.0)
            used_R = part_sum_R != 0  # and not "> 0": NaN must show
            # A few parts are read without waiting for the sums; of many, most may be empty, and are left out.
            wanted_R = used_R if COUNT > AT_ONCE else stored_R
            wanted_RD = wanted_R[:, None] & (columns_D[None, :] < HEAD)
            part_RD = tl.load(weighted + part_R[:, None] * HEAD + columns_D[None, :], wanted_RD, other=0.0)
            part_max_R = tl.where(used_R, part_max_R, LOWEST)
            part_RD = tl.where(used_R[:, None], part_RD, 0.0)
            higher_R = tl.maximum(max_R, part_max_R)
            weight_R, decay_R = tl.exp2(part_max_R - higher_R), tl.exp2(max_R - higher_R)
            sum_R = sum_R * decay_R + part_sum_R * weight_R
            acc_RD = acc_RD * decay_R[:, None] + part_RD * weight_R[:, None]
            max_R = higher_R
    result_RD = (acc_RD / positive(sum_R)[:, None]).to(out.dtype.element_ty)
    inside_RD = inside_R[:, None] & (columns_D[None, :] < HEAD)
    tl.store(out + row_R.to(tl.int64)[:, None] * HEAD + columns_D[None, :], result_RD, inside_RD)


@triton.jit
def mark_empty(stats, part_M, real_M):
    tl.store(stats + part_M * 2 + 1, 0.0, real_M)


@triton.jit
def store_parts(weighted, stats, part_M, acc_MD, max_M, sum_M, columns_D, real_M, HEAD: tl.constexpr):
    real_MD = real_M[:, None] & (columns_D[None, :] < HEAD)
    tl.store(weighted + part_M[:, None] * HEAD + columns_D[None, :], acc_MD, real_MD)
    tl.store(stats + part_M * 2, max_M, real_M)
    tl.store(stats + part_M * 2 + 1, sum_M, real_M)
