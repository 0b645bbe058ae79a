"""Whether the fused kernels of this folder can take a tensor; else the model computes in plain PyTorch.

The trainer and the engine use the same test, so a token's log-probability is rounded the same way in both.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor

DTYPES = (torch.bfloat16, torch.float16, torch.float32)
OLDEST_DEVICE = (8, 0)  # before Ampere, Triton has no bfloat16


def can_fuse(x: Tensor) -> bool:
    """can_fuse(torch.zeros(2)) -> False: the CPU has no kernels."""
    return x.is_cuda and x.dtype in DTYPES and has_triton()


@cache
def has_triton() -> bool:
    return find_spec("triton") is not None and torch.cuda.get_device_capability() >= OLDEST_DEVICE
