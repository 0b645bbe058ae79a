"""Batch-invariant x W^T: a row's result has the same bits in any batch.

A library picks tiles and splits by the number of rows, and with them the order of the sums. Here both are
fixed by the weight's shape and the dtype; a small batch fills its tile with zeros.

Legend: M rows, N outputs, K inputs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from foresail.model.kernels.sizes import count_blocks


class Tile(NamedTuple):
    rows: int
    columns: int
    depth: int
    warps: int
    stages: int


WIDE = Tile(rows=128, columns=128, depth=64, warps=8, stages=3)  # two on a multiprocessor
# Few columns make few programs, so each must have more of the weight on its way.
NARROW = Tile(rows=128, columns=64, depth=64, warps=4, stages=6)
NARROW_COLUMNS = 8192
FLOAT32 = Tile(rows=64, columns=64, depth=32, warps=4, stages=3)
ROW_TILES = 8  # that a weight's tile meets in turn, while it is in the L2 cache


def linear(
    x_MK: Tensor,
    weight_NK: Tensor,
    bias_N: Tensor | None = None,
    residual_MN: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> Tensor:
    """residual + x W^T + bias, summed in float32 and rounded once, to the dtype of x if no other is named."""
    return LinearFunction.apply(x_MK, weight_NK, bias_N, residual_MN, out_dtype or x_MK.dtype)


class LinearFunction(torch.autograd.Function):
    """The gradients are PyTorch's own products: no row of them is compared with the engine's."""

    @staticmethod
    def forward(
        ctx: Any,
        x_MK: Tensor,
        weight_NK: Tensor,
        bias_N: Tensor | None,
        residual_MN: Tensor | None,
        out_dtype: torch.dtype,
    ) -> Tensor:
        ctx.save_for_backward(x_MK, weight_NK)
        return multiply(x_MK, weight_NK, bias_N, residual_MN, out_dtype)

    @staticmethod
    def backward(ctx: Any, grad_MN: Tensor) -> tuple[Tensor | None, ...]:
        x_MK, weight_NK = ctx.saved_tensors
        for_x, for_weight, for_bias, for_residual, _ = ctx.needs_input_grad
        narrow_MN = grad_MN.to(x_MK.dtype)
        return (
            narrow_MN @ weight_NK if for_x else None,
            narrow_MN.t() @ x_MK if for_weight else None,
            narrow_MN.sum(0) if for_bias else None,
            grad_MN if for_residual else None,
            None,
        )


def multiply(
    x_MK: Tensor,
    weight_NK: Tensor,
    bias_N: Tensor | None,
    residual_MN: Tensor | None,
    out_dtype: torch.dtype,
) -> Tensor:
    rows, (columns, depth) = x_MK.shape[0], weight_NK.shape
    tile = choose_tile(columns, x_MK.dtype)
    out_MN = x_MK.new_empty(rows, columns, dtype=out_dtype)
    if out_MN.numel():
        multiply_kernel[(count_blocks(rows, tile.rows) * count_blocks(columns, tile.columns),)](
            x_MK.contiguous(),
            weight_NK.contiguous(),
            bias_N,
            None if residual_MN is None else residual_MN.contiguous(),
            out_MN,
            rows,
            columns,
            K=depth,
            TILE_M=tile.rows,
            TILE_N=tile.columns,
            TILE_K=tile.depth,
            ROW_TILES=ROW_TILES,
            num_warps=tile.warps,
            num_stages=tile.stages,
        )
    return out_MN


def choose_tile(columns: int, dtype: torch.dtype) -> Tile:
    """Never by the number of rows."""
    if dtype == torch.float32:
        return FLOAT32
    return NARROW if columns <= NARROW_COLUMNS else WIDE


@triton.jit(do_not_specialize=["M"])
def multiply_kernel(
    x,
    weight,
    bias,
    residual,
    out,
    M,
    N,
    K: tl.constexpr,
    TILE_M: tl.constexpr,
    TILE_N: tl.constexpr,
    TILE_K: tl.constexpr,
    ROW_TILES: tl.constexpr,
):
    tile_m, tile_n = locate(M, N, TILE_M, TILE_N, ROW_TILES)
    rows = (tile_m * TILE_M + tl.arange(0, TILE_M)).to(tl.int64)[:, None]
    columns = (tile_n * TILE_N + tl.arange(0, TILE_N)).to(tl.int64)[None, :]
    depth = tl.arange(0, TILE_K)

    x_tile = x + rows * K + depth[None, :]
    weight_tile = weight + columns * K + depth[:, None]
    sums = tl.full((TILE_M, TILE_N), 0.0, tl.float32)
    for start in range(0, K, TILE_K):
        left = K - start
        a = tl.load(x_tile + start, mask=(rows < M) & (depth[None, :] < left), other=0.0)
        b = tl.load(weight_tile + start, mask=(columns < N) & (depth[:, None] < left), other=0.0)
        sums = tl.dot(a, b, sums, input_precision="ieee")

    if bias is not None:
        sums += tl.load(bias + columns, mask=columns < N, other=0.0).to(tl.float32)
    inside = (rows < M) & (columns < N)
    if residual is not None:
        sums += tl.load(residual + rows * N + columns, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + rows * N + columns, sums, mask=inside)


@triton.jit
def locate(M, N, TILE_M: tl.constexpr, TILE_N: tl.constexpr, ROW_TILES: tl.constexpr):
    """This program's tile: down a band of ROW_TILES row tiles, then on to the next columns."""
    program = tl.program_id(0)
    high = (M + TILE_M - 1) // TILE_M
    wide = (N + TILE_N - 1) // TILE_N
    band = program // (ROW_TILES * wide)
    height = tl.minimum(high - band * ROW_TILES, ROW_TILES)
    step = program % (ROW_TILES * wide)
    return band * ROW_TILES + step % height, step // height
