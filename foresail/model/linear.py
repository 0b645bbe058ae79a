"""Products with the model's matrices: by the fast library, or batch-invariant.

    with batch_invariant():
        logits_TV = model(ids_T, positions_T, attend, logits).value

Legend: M rows, N outputs, K inputs.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from foresail.model.kernels import available

_process_invariant = False


class ThreadMode(threading.local):
    """Each thread has its own."""

    invariant = False


_thread = ThreadMode()


@contextmanager
def batch_invariant(enabled: bool = True) -> Iterator[None]:
    """Inside, a row's product does not depend on the rows beside it; a CUDA graph keeps what it was captured in.

    It holds for the whole process, all threads of it, those of the backward pass among them.
    """
    global _process_invariant
    before, _process_invariant = _process_invariant, _process_invariant or enabled
    try:
        yield
    finally:
        _process_invariant = before


@contextmanager
def thread_batch_invariant(enabled: bool = True) -> Iterator[None]:
    """The same for this thread alone: an engine sets it for each of its steps.

    A reward model may score in another thread meanwhile: its sums must not depend on when the engine is at work.
    """
    before, _thread.invariant = _thread.invariant, _thread.invariant or enabled
    try:
        yield
    finally:
        _thread.invariant = before


def is_batch_invariant() -> bool:
    return _process_invariant or _thread.invariant


def linear(x_MK: Tensor, weight_NK: Tensor, bias_N: Tensor | None = None) -> Tensor:
    """x W^T + bias."""
    if is_batch_invariant():
        return row_by_row(x_MK, weight_NK, bias_N)
    return F.linear(x_MK, weight_NK, bias_N)


def add_linear(stream_MN: Tensor, x_MK: Tensor, weight_NK: Tensor) -> Tensor:
    """stream + x W^T. Without gradients the stream's own memory may take the sum: go on with the result.

    The library adds where it writes the product: on a GPU that costs nothing in place, and it rounds once. A
    float32 stream takes in the sum of 16-bit numbers as it is.
    """
    if is_batch_invariant():
        return row_by_row(x_MK, weight_NK, residual_MN=stream_MN, out_dtype=stream_MN.dtype)
    if stream_MN.dtype == x_MK.dtype:
        if torch.is_grad_enabled():
            return torch.addmm(stream_MN, x_MK, weight_NK.t())
        return stream_MN.addmm_(x_MK, weight_NK.t())
    if not x_MK.is_cuda:
        return stream_MN + F.linear(x_MK, weight_NK)
    if torch.is_grad_enabled():
        return AddWideLinear.apply(stream_MN, x_MK, weight_NK)
    return torch.addmm(stream_MN, x_MK, weight_NK.t(), out_dtype=torch.float32, out=stream_MN)


class Linear(nn.Linear):
    """One of the model's matrices; with a low-rank pair beside it, it is a `lora.LowRankLinear`."""

    def forward(self, x_MK: Tensor) -> Tensor:
        return linear(x_MK, self.weight, self.bias)

    def tail(self, x_MK: Tensor, start: int) -> Tensor:
        """The outputs from `start` on."""
        return linear(x_MK, self.weight[start:], None if self.bias is None else self.bias[start:])

    def add_to(self, stream_MN: Tensor, x_MK: Tensor) -> Tensor:
        """stream + x W^T; go on with the result, see `add_linear`."""
        return add_linear(stream_MN, x_MK, self.weight)


def wide_linear(x_MK: Tensor, weight_NK: Tensor) -> Tensor:
    """x W^T in float32, from 16-bit matrices without a rounding in between.

    Logits want that: around 16 the next bfloat16 is an eighth away. On a CPU the library rounds 16-bit products
    itself.
    """
    if x_MK.dtype == torch.float32 or not x_MK.is_cuda:
        return linear(x_MK, weight_NK).float()
    if is_batch_invariant():
        return row_by_row(x_MK, weight_NK, out_dtype=torch.float32)
    return WideLinear.apply(x_MK, weight_NK)


class WideLinear(torch.autograd.Function):
    """PyTorch's product with a wider output has no derivative of its own."""

    @staticmethod
    def forward(ctx: Any, x_MK: Tensor, weight_NK: Tensor) -> Tensor:
        ctx.save_for_backward(x_MK, weight_NK)
        return torch.mm(x_MK, weight_NK.t(), out_dtype=torch.float32)

    @staticmethod
    def backward(ctx: Any, grad_MN: Tensor) -> tuple[Tensor | None, Tensor | None]:
        return product_gradients(grad_MN, *ctx.saved_tensors, *ctx.needs_input_grad)


class AddWideLinear(torch.autograd.Function):
    """Nor has its sum with a float32 matrix."""

    @staticmethod
    def forward(ctx: Any, stream_MN: Tensor, x_MK: Tensor, weight_NK: Tensor) -> Tensor:
        ctx.save_for_backward(x_MK, weight_NK)
        return torch.addmm(stream_MN, x_MK, weight_NK.t(), out_dtype=torch.float32)

    @staticmethod
    def backward(ctx: Any, grad_MN: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        for_stream, *for_product = ctx.needs_input_grad
        return grad_MN if for_stream else None, *product_gradients(grad_MN, *ctx.saved_tensors, *for_product)


def product_gradients(
    grad_MN: Tensor, x_MK: Tensor, weight_NK: Tensor, for_x: bool, for_weight: bool
) -> tuple[Tensor | None, Tensor | None]:
    grad_MN = grad_MN.to(x_MK.dtype)
    return grad_MN @ weight_NK if for_x else None, grad_MN.t() @ x_MK if for_weight else None


def row_by_row(
    x_MK: Tensor,
    weight_NK: Tensor,
    bias_N: Tensor | None = None,
    residual_MN: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> Tensor:
    """Batch-invariant products; without a kernel for that, each row is computed alone, which is slow."""
    if available.can_fuse(x_MK):
        from foresail.model.kernels import matmul

        return matmul.linear(x_MK, weight_NK, bias_N, residual_MN, out_dtype)
    # fresh copies: how a row lies in memory can change the order of the sums, too
    out_MN = torch.cat([F.linear(x_1K.clone(), weight_NK, bias_N) for x_1K in x_MK.split(1)])
    out_MN = out_MN if out_dtype is None else out_MN.to(out_dtype)
    return out_MN if residual_MN is None else residual_MN + out_MN
