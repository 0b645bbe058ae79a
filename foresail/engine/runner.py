"""What the engine asks of the device its model is on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from foresail.engine.advance import Drawn
from foresail.engine.cache import KVCache
from foresail.engine.chunk import Chunk
from foresail.engine.runner_cpu import CpuRunner
from foresail.engine.table import Table
from foresail.model.decoder import Decoder


class Runner(Protocol):
    """Forward passes over the cache, and the device's copy of the table."""

    steps_ahead: int  # how many decode steps may be under way while the host goes on

    @property
    def cache(self) -> KVCache: ...

    def seat(self, slots: np.ndarray) -> None:
        """These lines of the table are new."""

    def add_pages(self, slots: np.ndarray, columns: np.ndarray, pages: list[int]) -> None:
        """These cells of the table's pages are new."""

    def fill(self, chunks: Sequence[Chunk]) -> None:
        """Compute and keep the keys and values of these tokens."""

    def decode(self, block: np.ndarray) -> Callable[[], Drawn]:
        """Draw a token at every entry and say which of them stand; the outcome can be read later."""

    def give_back_memory(self) -> None: ...

    def take_memory(self) -> None: ...


def open_runner(model: Decoder, table: Table, *, num_pages: int, page_size: int) -> Runner:
    if model.device.type == "cuda":
        from foresail.engine.runner_cuda import CudaRunner  # brings Triton, which only CUDA machines have

        return CudaRunner(model, table, num_pages=num_pages, page_size=page_size)
    return CpuRunner(model, table, num_pages=num_pages, page_size=page_size)
