"""The choice of a run's device, dtype, number of threads and CPU library."""

from __future__ import annotations

import os
import platform
from typing import Any

import torch

onednn: Any = torch.backends.mkldnn  # its setting is a property, which type checkers do not see
ARM = ("aarch64", "arm64")


def choose_device(name: str) -> torch.device:
    """ "auto" is CUDA when there is one."""
    if name not in ("auto", "cpu", "cuda"):
        raise ValueError(f"unknown device {name!r}; use auto, cpu or cuda")
    if name == "cuda" and not torch.cuda.is_available():
        raise ValueError('the device is set to "cuda" but PyTorch sees none; set it to auto or cpu')
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(name)


def choose_dtype(name: str, device: torch.device) -> torch.dtype:
    """ "auto" is bfloat16 on CUDA and float32 elsewhere."""
    if name == "auto":
        return torch.bfloat16 if device.type == "cuda" else torch.float32
    return getattr(torch, name)


def choose_threads(num_parameters: int, ranks: int = 1, *, beside: int = 0) -> None:
    """A single thread for small models, where threads wait for each other longer than they compute.

    Ranks share the cores, except one for each process that computes `beside` them. OMP_NUM_THREADS overrides this.
    """
    if "OMP_NUM_THREADS" in os.environ:
        return
    if num_parameters < 1_000_000:
        torch.set_num_threads(1)
    elif ranks > 1 or beside:
        torch.set_num_threads(max(1, ((os.cpu_count() or 1) - beside) // ranks))


def choose_library(dtype: torch.dtype) -> None:
    """On an ARM CPU products go to BLAS alone, but for bfloat16 where the CPU knows it.

    oneDNN is slower with the few rows of a float32 decode step, and leaves products of at most eight to BLAS: a
    row's last bits would depend on how many stand beside it. In float16 it is slower by far, and in bfloat16 on a
    CPU without it every product fails first, with a warning.
    """
    if platform.machine() in ARM:
        knows_bfloat16 = torch.ops.mkldnn._is_mkldnn_bf16_supported()
        onednn.enabled = dtype == torch.bfloat16 and knows_bfloat16
