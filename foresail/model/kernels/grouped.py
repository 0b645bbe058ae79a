"""Each expert's matrix times its own rows, few or many: for decoding, and for the same bits in any batch.

A program multiplies one tile of one expert's rows. It finds its expert on the device: the grid is large enough for
every division of the rows, and surplus programs end at once. Decoding is bound by reading the weights, which
happens once if an expert's rows fit one tile.

Legend: P pairs of token and expert, those of the first expert first, T tokens, A experts of a token, E experts,
N outputs, K inputs, I inner width.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor

from foresail.model.kernels.matmul import Tile
from foresail.model.kernels.sizes import count_blocks, power_from

# By the rows an expert has in the mean: most of them fit one tile. Fastest at Compass-v2's widths on an H200.
TILES = (
    Tile(rows=16, columns=64, depth=128, warps=4, stages=4),
    Tile(rows=32, columns=128, depth=64, warps=4, stages=4),
    Tile(rows=64, columns=128, depth=64, warps=8, stages=3),
    Tile(rows=128, columns=128, depth=64, warps=8, stages=3),
)
GATED_TILES = (
    Tile(rows=16, columns=64, depth=128, warps=4, stages=4),
    Tile(rows=32, columns=64, depth=128, warps=4, stages=3),
    Tile(rows=64, columns=64, depth=64, warps=4, stages=3),
    Tile(rows=128, columns=64, depth=64, warps=8, stages=3),
)
INVARIANT = Tile(rows=64, columns=64, depth=64, warps=4, stages=4)
FLOAT32 = Tile(rows=32, columns=32, depth=32, warps=4, stages=2)
LINE = 16  # bytes, at a multiple of which each row of a matrix must begin
FILL = 0.75  # of a tile, by the mean: more, and too many experts need a second one


def gated_products(
    x_TK: Tensor,
    gate_up_ENK: Tensor,
    order_P: Tensor,
    ends_E: Tensor,
    num_active: int,
    tile: Tile | None = None,
) -> Tensor:
    """silu(gate x) * up x of every pair, whose token's row is read where it lies."""
    experts, double, depth = gate_up_ENK.shape
    inner, pairs = double // 2, order_P.numel()
    out_PI = x_TK.new_empty(pairs, inner)
    tile = tile or choose_tile(GATED_TILES, pairs, experts, x_TK.dtype)
    row_tiles = most_tiles(tile, pairs, experts)
    if pairs:
        gated_kernel[(row_tiles * count_blocks(inner, tile.columns),)](
            x_TK.contiguous(),
            in_tiles(gate_up_ENK, tile),
            order_P,
            ends_E,
            out_PI,
            num_active,
            inner,
            row_tiles,
            experts,
            K=depth,
            **settings(tile, experts),
        )
    return out_PI


def products(x_PK: Tensor, weight_ENK: Tensor, ends_E: Tensor, tile: Tile | None = None) -> Tensor:
    """x W^T with the matrix of each row's expert."""
    (experts, columns, depth), pairs = weight_ENK.shape, x_PK.shape[0]
    out_PN = x_PK.new_empty(pairs, columns)
    tile = tile or choose_tile(TILES, pairs, experts, x_PK.dtype)
    row_tiles = most_tiles(tile, pairs, experts)
    if pairs:
        product_kernel[(row_tiles * count_blocks(columns, tile.columns),)](
            x_PK.contiguous(),
            in_tiles(weight_ENK, tile),
            ends_E,
            out_PN,
            columns,
            row_tiles,
            experts,
            K=depth,
            **settings(tile, experts),
        )
    return out_PN


def invariant_products(x_PK: Tensor, weight_ENK: Tensor, ends_E: Tensor) -> Tensor:
    """The same bits for a row, whatever rows are beside it: the tile never changes."""
    return InvariantProducts.apply(x_PK, weight_ENK, ends_E)


class InvariantProducts(torch.autograd.Function):
    """The gradients are expert by expert: no row of them is compared with the engine's."""

    @staticmethod
    def forward(ctx: Any, x_PK: Tensor, weight_ENK: Tensor, ends_E: Tensor) -> Tensor:
        ctx.save_for_backward(x_PK, weight_ENK, ends_E)
        return products(x_PK, weight_ENK, ends_E, FLOAT32 if x_PK.dtype == torch.float32 else INVARIANT)

    @staticmethod
    def backward(ctx: Any, grad_PN: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        x_PK, weight_ENK, ends_E = ctx.saved_tensors
        for_x, for_weight, _ = ctx.needs_input_grad
        counts = ends_E.diff(prepend=ends_E.new_zeros(1)).tolist()
        rows, slopes = x_PK.split(counts), grad_PN.split(counts)
        matrices = weight_ENK.unbind(0)
        grad_x = torch.cat([s @ w for s, w in zip(slopes, matrices, strict=True)]) if for_x else None
        grad_w = torch.stack([s.t() @ r for s, r in zip(slopes, rows, strict=True)]) if for_weight else None
        return grad_x, grad_w, None


def choose_tile(tiles: Sequence[Tile], pairs: int, experts: int, dtype: torch.dtype) -> Tile:
    if dtype == torch.float32:
        return FLOAT32
    return next((tile for tile in tiles if pairs / experts <= FILL * tile.rows), tiles[-1])


def in_tiles(weight_ENK: Tensor, tile: Tile) -> TensorDescriptor:
    """All experts' rows one below the other, for loads of a whole tile; past a row's end there are zeros.

    Where the GPU can it loads a tile by one instruction, elsewhere Triton makes it the usual loads.
    """
    rows_MK = weight_ENK.contiguous().flatten(0, 1)
    per_line = LINE // rows_MK.element_size()
    if rows_MK.shape[1] % per_line or rows_MK.data_ptr() % LINE:
        rows_MK = F.pad(rows_MK, (0, -rows_MK.shape[1] % per_line))
    return TensorDescriptor.from_tensor(rows_MK, [tile.columns, tile.depth])


def most_tiles(tile: Tile, pairs: int, experts: int) -> int:
    """Tiles of rows that the pairs may fill, however they are divided among experts."""
    return pairs // tile.rows + min(experts, pairs)


def settings(tile: Tile, experts: int) -> dict[str, int]:
    return {
        "EXPERTS": power_from(experts),
        "TILE_M": tile.rows,
        "TILE_N": tile.columns,
        "TILE_K": tile.depth,
        "num_warps": tile.warps,
        "num_stages": tile.stages,
    }


@triton.jit
def find_rows(ends, row_tiles, num_experts, EXPERTS: tl.constexpr, TILE_M: tl.constexpr):
    """This program's expert, its first row, the end of that expert's rows, and which tile of columns it makes.

    Tiles of one expert's rows follow one another, so that its weights are in the L2 cache for all of them.
    """
    number = tl.program_id(0) % row_tiles
    experts = tl.arange(0, EXPERTS)
    end = tl.load(ends + experts, mask=experts < num_experts, other=0)
    begin = tl.load(ends + experts - 1, mask=(experts > 0) & (experts < num_experts), other=0)
    tiles = tl.where(experts < num_experts, (end - begin + TILE_M - 1) // TILE_M, 0)
    until = tl.cumsum(tiles, 0)
    expert = tl.sum(((until <= number) & (experts < num_experts)).to(tl.int32), 0)
    mine = experts == expert
    first = tl.sum(tl.where(mine, begin + (number - until + tiles) * TILE_M, 0), 0)
    last = tl.sum(tl.where(mine, end, 0), 0)
    return expert, first, last, tl.program_id(0) // row_tiles


@triton.jit(do_not_specialize=["row_tiles"])
def product_kernel(
    x, weight, ends, out, N, row_tiles, num_experts,
    K: tl.constexpr, EXPERTS: tl.constexpr, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr,
):  # fmt: skip
    expert, first, last, tile_n = find_rows(ends, row_tiles, num_experts, EXPERTS, TILE_M)
    if expert >= num_experts:
        return
    rows = (first + tl.arange(0, TILE_M)).to(tl.int64)[:, None]
    columns = tile_n * TILE_N + tl.arange(0, TILE_N)[None, :]
    depth = tl.arange(0, TILE_K)
    x_tile = x + rows * K + depth[None, :]
    top = expert * N + tile_n * TILE_N
    sums = tl.full((TILE_M, TILE_N), 0.0, tl.float32)
    for start in range(0, K, TILE_K):
        mask = rows < last
        if K % TILE_K != 0:
            mask = mask & (depth[None, :] < K - start)
        a = tl.load(x_tile + start, mask=mask, other=0.0)
        sums = tl.dot(a, weight.load([top, start]).T, sums, input_precision="ieee")
    tl.store(out + rows * N + columns, sums, mask=(rows < last) & (columns < N))


@triton.jit(do_not_specialize=["row_tiles"])
def gated_kernel(
    x, weight, order, ends, out, active, I, row_tiles, num_experts,
    K: tl.constexpr, EXPERTS: tl.constexpr, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr,
):  # fmt: skip
    """Gate and up are rounded to the dtype before they meet, as two kernels would."""
    expert, first, last, tile_n = find_rows(ends, row_tiles, num_experts, EXPERTS, TILE_M)
    if expert >= num_experts:
        return
    rows = (first + tl.arange(0, TILE_M)).to(tl.int64)[:, None]
    tokens = tl.load(order + rows, mask=rows < last, other=0).to(tl.int64) // active
    columns = tile_n * TILE_N + tl.arange(0, TILE_N)[None, :]
    depth = tl.arange(0, TILE_K)
    x_tile = x + tokens * K + depth[None, :]
    top = expert * 2 * I + tile_n * TILE_N
    gate = tl.full((TILE_M, TILE_N), 0.0, tl.float32)
    up = tl.full((TILE_M, TILE_N), 0.0, tl.float32)
    for start in range(0, K, TILE_K):
        mask = rows < last
        if K % TILE_K != 0:
            mask = mask & (depth[None, :] < K - start)
        a = tl.load(x_tile + start, mask=mask, other=0.0)
        gate = tl.dot(a, weight.load([top, start]).T, gate, input_precision="ieee")
        up = tl.dot(a, weight.load([top + I, start]).T, up, input_precision="ieee")
    gate = gate.to(out.dtype.element_ty).to(tl.float32)
    up = up.to(out.dtype.element_ty).to(tl.float32)
    tl.store(out + rows * I + columns, gate / (1 + tl.exp(-gate)) * up, mask=(rows < last) & (columns < I))
