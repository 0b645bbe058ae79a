"""A CPU that behaves like a GPU: its table is its own, and the host reads a step when the next one runs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from foresail.engine.advance import SampledTokens
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
        size = {"num_pages": engine.num_pages, "page_size": engine.page_size}
        mtp = engine.own_drafts is not None
        super().__init__(engine.model, Table(slots, columns), **size, batch_invariant=False, mtp=mtp)
        self.host = engine.table

    def update_rows(self, slots: np.ndarray) -> None:
        super().update_rows(slots)
        for name in COLUMNS:
            getattr(self.table, name)[slots] = getattr(self.host, name)[slots]

    def add_pages(self, slots: np.ndarray, columns: np.ndarray, pages: list[int]) -> None:
        self.table.pages_SP[slots, columns] = pages

    def decode(self, block: np.ndarray) -> Callable[[], SampledTokens]:
        """Without entries behind the last token that a row may sample, of which the host did not know."""
        allowed_E = block[1] < self.table.left_S[block[0]]
        if not allowed_E.any():
            nothing = np.zeros(len(allowed_E), dtype=np.int64)
            return lambda: SampledTokens(nothing, nothing.astype(np.float32), nothing, nothing)
        kept = block[:, allowed_E]
        drawn = super().decode(kept)()
        firsts_R = np.flatnonzero(kept[1] == 0)
        slots_R, counts_R = kept[0][firsts_R], drawn.counts_E[firsts_R]
        self.table.last_S[slots_R] = drawn.tokens_E[firsts_R + counts_R - 1]
        self.table.move(slots_R, counts_R)

        def spread(found: np.ndarray, inside: np.ndarray) -> np.ndarray:
            whole = np.zeros((len(inside), *found.shape[1:]), dtype=found.dtype)
            whole[inside] = found
            return whole

        columns = (drawn.tokens_E, drawn.logprobs_E, drawn.counts_E, drawn.ends_E)
        ahead_RK = None if drawn.ahead_RK is None else spread(drawn.ahead_RK, allowed_E[block[1] == 0])
        return lambda: SampledTokens(*(spread(column_E, allowed_E) for column_E in columns), ahead_RK)


def run_ahead(engine: Engine) -> Engine:
    engine.runner = engine.admission.runner = engine.slots.runner = AheadRunner(engine)
    return engine
