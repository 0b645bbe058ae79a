"""Tensors that are cheaper to compute again than to keep until the backward pass.

    inner_TI = silu_mul(gate_up_T2I)
    with recomputed(inner_TI, silu_mul, gate_up_T2I):
        out_TD = down(inner_TI)          # would keep inner_TI for its gradient; keeps how to make it instead

Its sources must be saved anyway, as here by `silu_mul` itself.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks

from foresail.model.kernels import available

Make = Callable[[Tensor], Tensor]
Recompute = Callable[[Tensor, Make, Tensor], AbstractContextManager[object]]


def not_recomputed(tensor: Tensor, make: Make, source: Tensor) -> AbstractContextManager[object]:
    """In the place of `recomputed`: operations keep what they need."""
    return nullcontext()


def recomputed(tensor: Tensor, make: Make, source: Tensor) -> AbstractContextManager[object]:
    """Inside, operations that would keep `tensor` keep `make` and `source`. On a CPU, where that is slow, not."""
    if not (torch.is_grad_enabled() and available.can_fuse(tensor)):
        return nullcontext()
    place, shape = tensor.data_ptr(), tensor.shape

    def pack(saved: Tensor) -> Tensor | tuple[Make, Tensor]:
        return (make, source) if saved.data_ptr() == place and saved.shape == shape else saved

    def unpack(packed: Tensor | tuple[Make, Tensor]) -> Tensor:
        if isinstance(packed, Tensor):
            return packed
        with torch.no_grad():
            return packed[0](packed[1])

    return saved_tensors_hooks(pack, unpack)
