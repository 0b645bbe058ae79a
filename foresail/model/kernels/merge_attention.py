# mypy: allow-untyped-defs
"""Two attention results of the same queries over different keys, merged into one.

Legend: C tokens, H heads, d head size; in the kernel D columns (d padded to a power of two).
"""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from foresail.model.kernels.sizes import count_blocks, power_from

TOKENS = 32  # of a program


def merge(out_CHd: Tensor, sums_HC: Tensor, more_CHd: Tensor, more_HC: Tensor) -> None:
    """In place in the first two, which may be slices of more tokens."""
    tokens, heads, head_dim = out_CHd.shape
    assert (
        out_CHd.is_contiguous() and more_CHd.is_contiguous() and sums_HC.stride(1) == more_HC.stride(1) == 1
    )
    merge_kernel[(count_blocks(tokens, TOKENS), heads)](
        out_CHd,
        sums_HC,
        more_CHd,
        more_HC,
        tokens,
        sums_HC.stride(0),
        more_HC.stride(0),
        HEADS=heads,
        HEAD=head_dim,
        D=power_from(head_dim),
        TOKENS=TOKENS,
    )


@triton.jit(do_not_specialize=["tokens", "sums_stride", "more_stride"])
def merge_kernel(
    out,
    sums,
    more,
    more_sums,
    tokens,
    sums_stride,
    more_stride,
    HEADS: tl.constexpr,
    HEAD: tl.constexpr,
    D: tl.constexpr,
    TOKENS: tl.constexpr,
):
    head = tl.program_id(1)
    token = tl.program_id(0) * TOKENS + tl.arange(0, TOKENS)
    column = tl.arange(0, D)
    is_token = token < tokens
    one = tl.load(sums + head * sums_stride + token, mask=is_token, other=0.0)
    other = tl.load(more_sums + head * more_stride + token, mask=is_token, other=0.0)
    largest = tl.maximum(one, other)
    merged = largest + tl.log(tl.exp(one - largest) + tl.exp(other - largest))
    places = (token.to(tl.int64)[:, None] * HEADS + head) * HEAD + column[None, :]
    inside = is_token[:, None] & (column < HEAD)[None, :]
    mine = tl.load(out + places, mask=inside, other=0.0).to(tl.float32)
    theirs = tl.load(more + places, mask=inside, other=0.0).to(tl.float32)
    mixed = mine * tl.exp(one - merged)[:, None] + theirs * tl.exp(other - merged)[:, None]
    tl.store(out + places, mixed, mask=inside)
    # One warp stores the sums of all tokens, and each has read those of its own: none may be late.
    tl.debug_barrier()
    tl.store(sums + head * sums_stride + token, merged, mask=is_token)
