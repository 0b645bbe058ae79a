"""A CPU that behaves like a GPU: its table is its own, and the host reads a step when the next one runs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from foresail.engine.advance import Drawn
from foresail.engine.engine import Engine
from foresail.engine.runner_cpu import CpuRunner
from foresail.engine.table import Table

COLUMNS = (
    "last_S", "lengths_S", "left_S", "keys_S", "temperature_S", "top_p_S", "min_p_S", "top_k_S", "stops_SX",
    "pages_SP",
)  # fmt: skip


class AheadRunner(CpuRunner):
    steps_ahead = 1
    efficient_prefill_tokens = 16

    def __init__(self, engine: Engine) -> None:
        slots, columns = engine.table.pages_SP.shape
        options = {"num_pages": engine.num_pages, "page_size": engine.page_size, "batch_invariant": False}
        super().__init__(engine.model, Table(slots, columns), **options)
        self.host = engine.table

    def update_rows(self, slots: np.ndarray) -> None:
        for name in COLUMNS:
            getattr(self.table, name)[slots] = getattr(self.host, name)[slots]

    def add_pages(self, slots: np.ndarray, columns: np.ndarray, pages: list[int]) -> None:
        self.table.pages_SP[slots, columns] = pages

    def decode(self, block: np.ndarray) -> Callable[[], Drawn]:
        drawn = super().decode(block)()
        firsts_R = np.flatnonzero(block[1] == 0)
        slots_R, counts_R = block[0][firsts_R], drawn.counts_E[firsts_R]
        self.table.last_S[slots_R] = drawn.tokens_E[firsts_R + counts_R - 1]
        self.table.lengths_S[slots_R] += counts_R
        self.table.left_S[slots_R] -= counts_R
        return lambda: drawn


def run_ahead(engine: Engine) -> Engine:
    engine.runner = engine.admission.runner = AheadRunner(engine)
    return engine
