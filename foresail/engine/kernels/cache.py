# mypy: allow-untyped-defs
"""The paged KV cache under Triton: new tokens are written to their places. `model/kernels/paged.py` reads them.

A cache here is one layer's view (pages, page_size, K, d), contiguous, in bf16, float16, float32 or float8.
The place of a token is page * page_size + offset.

Legend: E entries or tokens, K key/value heads, d head size.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from foresail.model.kernels.sizes import power_from

ELEMENTS_PER_WARP = 256  # 16 bytes of bf16 per thread
FP8_MAX = tl.constexpr(448.0)  # the largest float8_e4m3fn; what lies beyond would become NaN


def write_kv(keys: Tensor, values: Tensor, places_E: Tensor, k_EKd: Tensor, v_EKd: Tensor) -> None:
    """Store the keys and values of new tokens: places [35] -> page 2, offset 3 when pages hold 16.

    k and v may be slices of the fused projection: only their heads must lie side by side.
    """
    entries, key_heads, head_dim = k_EKd.shape
    width = key_heads * head_dim
    assert keys.is_contiguous() and values.is_contiguous() and keys.shape[2:] == k_EKd.shape[1:]
    assert k_EKd.stride()[1:] == (head_dim, 1) and v_EKd.stride()[1:] == (head_dim, 1)
    block = power_from(width)
    _write_rows[(entries,)](
        keys,
        values,
        places_E,
        k_EKd,
        v_EKd,
        k_EKd.stride(0),
        v_EKd.stride(0),
        WIDTH=width,
        BLOCK=block,
        FP8=keys.dtype == torch.float8_e4m3fn,
        num_warps=min(max(block // ELEMENTS_PER_WARP, 1), 8),
    )


@triton.jit
def _write_rows(
    keys,
    values,
    places,
    k,
    v,
    k_stride,
    v_stride,
    WIDTH: tl.constexpr,
    BLOCK: tl.constexpr,
    FP8: tl.constexpr,
):
    # 64 bits: a layer of a large cache has more than 2**31 elements
    entry = tl.program_id(0).to(tl.int64)
    place = tl.load(places + entry).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < WIDTH
    new_k = tl.load(k + entry * k_stride + columns, mask=inside)
    new_v = tl.load(v + entry * v_stride + columns, mask=inside)
    if FP8:
        new_k, new_v = _clamp(new_k), _clamp(new_v)
    tl.store(keys + place * WIDTH + columns, new_k.to(keys.dtype.element_ty), mask=inside)
    tl.store(values + place * WIDTH + columns, new_v.to(values.dtype.element_ty), mask=inside)


@triton.jit
def _clamp(x):
    # NaN stays NaN, so that a broken model is noticed
    return tl.clamp(x.to(tl.float32), -FP8_MAX, FP8_MAX, propagate_nan=tl.PropagateNan.ALL)
