"""Products with the model's matrices: as fast as the library can, or the same bits in any batch.

    with batch_invariant():
        hidden_TD = model(ids_T, positions_T, attend)

Legend: M rows, N outputs, K inputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor

from foresail.model.kernels import available

_invariant = False


@contextmanager
def batch_invariant() -> Iterator[None]:
    """Inside, a row's product does not depend on the rows beside it; a CUDA graph keeps what it was captured in.

    It holds for the whole process, all threads of it.
    """
    global _invariant
    before, _invariant = _invariant, True
    try:
        yield
    finally:
        _invariant = before


def linear(x_MK: Tensor, weight_NK: Tensor, bias_N: Tensor | None = None) -> Tensor:
    """x W^T + bias."""
    if _invariant:
        return row_by_row(x_MK, weight_NK, bias_N)
    return F.linear(x_MK, weight_NK, bias_N)


def add_linear(stream_MN: Tensor, x_MK: Tensor, weight_NK: Tensor) -> Tensor:
    """stream + x W^T. Without gradients the stream's own memory may take the sum: go on with the result.

    The library adds where it writes the product: on a GPU that costs nothing, and it rounds once.
    """
    if _invariant:
        return row_by_row(x_MK, weight_NK, residual_MN=stream_MN)
    if torch.is_grad_enabled():
        return torch.addmm(stream_MN, x_MK, weight_NK.t())
    return stream_MN.addmm_(x_MK, weight_NK.t())


def row_by_row(
    x_MK: Tensor, weight_NK: Tensor, bias_N: Tensor | None = None, residual_MN: Tensor | None = None
) -> Tensor:
    """Each row as if it were alone: where no kernel promises that, it is left alone, at the price of time."""
    if available.can_fuse(x_MK):
        from foresail.model.kernels import matmul

        return matmul.linear(x_MK, weight_NK, bias_N, residual_MN)
    # fresh copies: how a row lies in memory can change the order of the sums, too
    out_MN = torch.cat([F.linear(x_1K.clone(), weight_NK, bias_N) for x_1K in x_MK.split(1)])
    return out_MN if residual_MN is None else residual_MN + out_MN
