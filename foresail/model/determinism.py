"""Deterministic mode: runs on one machine are equal bit for bit, with slower kernels that add in a fixed order.

    with deterministic():
        loss.backward()
        optimizer.step()

PyTorch then uses its deterministic kernels, and raises where it has none. For an engine this is not enough: its
batches depend on timing, so it must be batch-invariant too (`linear.batch_invariant`).
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
