"""The interface of runners, which do the engine's forward passes on a device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import torch

from foresail.engine.advance import SampledTokens
from foresail.engine.cache import KVCache
from foresail.engine.prefill import PrefillChunk
from foresail.engine.runner_cpu import CpuRunner
from foresail.engine.table import Table
from foresail.model.decoder import Decoder
from foresail.model.kernels.available import can_fuse


class Runner(Protocol):
    """Forward passes over the cache, and the device's copy of the table."""

    steps_ahead: int  # decode steps that may be unread
    efficient_prefill_tokens: int  # prompt tokens that a pass should have, if so many wait
    cache_bytes: int  # outside PyTorch's allocator
    propose: bool  # whether MTP layers draft in the next steps

    @property
    def cache(self) -> KVCache: ...

    def update_rows(self, slots: np.ndarray) -> None:
        """Update these lines of the device's table."""

    def add_pages(self, slots: np.ndarray, columns: np.ndarray, pages: list[int]) -> None:
        """Update these cells of the table's pages."""

    def fill(self, chunks: Sequence[PrefillChunk]) -> None:
        """Compute the keys and values of these tokens into the cache."""

    def decode(self, block: np.ndarray) -> Callable[[], SampledTokens]:
        """Sample a token at every entry; the result, with the kept tokens, can be read later."""

    def give_back_memory(self) -> None: ...

    def take_memory(self) -> None: ...


def can_draft(model: Decoder) -> bool:
    """Whether the model has MTP layers."""
    return model.shape.mtp > 0


def open_runner(
    model: Decoder,
    table: Table,
    *,
    num_pages: int,
    page_size: int,
    fp8_kv: bool,
    batch_invariant: bool,
    replay_routing: bool = False,
    mtp: bool,
) -> Runner:
    """The runner for the model's device; an error says what the device lacks."""
    if mtp and not model.shape.mtp:
        raise ValueError("the model has no MTP layers to draft with; see foresail mtp add")
    if model.device.type == "cuda":
        return open_cuda_runner(
            model, table, num_pages, page_size, fp8_kv, batch_invariant, replay_routing, mtp
        )
    if fp8_kv:
        raise ValueError('engine.kv_dtype = "fp8" needs a CUDA device; leave it at "model" on a CPU')
    return CpuRunner(
        model,
        table,
        num_pages=num_pages,
        page_size=page_size,
        batch_invariant=batch_invariant,
        replay_routing=replay_routing,
        mtp=mtp,
    )


def open_cuda_runner(
    model: Decoder,
    table: Table,
    num_pages: int,
    page_size: int,
    fp8_kv: bool,
    batch_invariant: bool,
    replay_routing: bool,
    mtp: bool,
) -> Runner:
    if not can_fuse(model.embed.weight):
        raise ValueError(
            f"the engine cannot run {model.dtype} on {torch.cuda.get_device_name(model.device)}: it needs Triton "
            "(pip install triton), a GPU of compute capability 8.0 or newer, and bfloat16, float16 or float32; "
            'set model.device = "cpu" to do without'
        )
    if page_size & (page_size - 1):
        raise ValueError(f"engine.page_size {page_size} is no power of two, which a GPU needs; try 16")
    from foresail.engine.runner_cuda import CudaRunner  # imports Triton, which only CUDA machines have

    kv_dtype = torch.float8_e4m3fn if fp8_kv else model.dtype
    return CudaRunner(
        model,
        table,
        num_pages=num_pages,
        page_size=page_size,
        kv_dtype=kv_dtype,
        batch_invariant=batch_invariant,
        replay_routing=replay_routing,
        mtp=mtp,
    )
