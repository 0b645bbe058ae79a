"""Bit for bit the same in every run on one machine: slower kernels where the fast ones add in any order.

    with deterministic():
        loss.backward()
        optimizer.step()

PyTorch then takes its ordered kernels, the backward pass of flash attention among them, and raises where it has
none. What an engine draws is a matter of its own: which rows share a batch depends on the clock, so it has to be
batch-invariant (`linear.batch_invariant`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils import deterministic as module

memory: Any = module  # its one setting is a property, which type checkers do not see


@contextmanager
def deterministic(enabled: bool = True) -> Iterator[None]:
    """Enter it before anything is computed on a GPU: cuBLAS reads its setting when it starts."""
    if not enabled:
        yield
        return
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    # the same number again, but set, so that MKL may not choose a smaller one by itself
    torch.set_num_threads(torch.get_num_threads())
    before = torch.are_deterministic_algorithms_enabled(), memory.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True)
    memory.fill_uninitialized_memory = (
        False  # finds reads of what was never written; ours are tested, it costs
    )
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before[0])
        memory.fill_uninitialized_memory = before[1]
