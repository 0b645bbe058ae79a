"""Which device a run computes on, and in which numbers."""

from __future__ import annotations

import torch


def choose_device(wanted: str) -> torch.device:
    """ "auto" is CUDA when there is one."""
    if wanted not in ("auto", "cpu", "cuda"):
        raise ValueError(f"unknown device {wanted!r}; use auto, cpu or cuda")
    if wanted == "cuda" and not torch.cuda.is_available():
        raise ValueError('the device is set to "cuda" but PyTorch sees none; set it to auto or cpu')
    if wanted == "auto":
        wanted = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(wanted)


def choose_dtype(wanted: str, device: torch.device) -> torch.dtype:
    """ "auto" is bfloat16 on CUDA and float32 elsewhere."""
    if wanted == "auto":
        return torch.bfloat16 if device.type == "cuda" else torch.float32
    return getattr(torch, wanted)
