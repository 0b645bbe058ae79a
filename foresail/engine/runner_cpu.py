"""Forward passes on the CPU in plain PyTorch, on the host's table; a step is finished when it returns.

Legend: E entries, T tokens, V vocabulary, D hidden size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from foresail.engine.advance import SampledTokens, advance
from foresail.engine.attention_cpu import ChunkAttention, EntryAttention, PerTokenAttention
from foresail.engine.cache import KVCache
from foresail.engine.drafts import UNREAD
from foresail.engine.entries import Entries
from foresail.engine.mtp import MtpDrafter, Verified
from foresail.engine.noise import uniforms
from foresail.engine.prefill import PrefillChunk, pack_prefill, tokens_ahead
from foresail.engine.routes import RouteCache
from foresail.engine.sampling import SamplingRows, sample
from foresail.engine.table import Table
from foresail.model import linear
from foresail.model.decoder import CachedAttend, Decoder
from foresail.model.mtp import stream
from foresail.model.readouts import logits


class CpuRunner:
    """The runner for CPUs; see `runner.Runner`."""

    steps_ahead = 0
    efficient_prefill_tokens = 1  # time grows with every token
    cache_bytes = 0  # none outside PyTorch's allocator

    def __init__(
        self,
        model: Decoder,
        table: Table,
        *,
        num_pages: int,
        page_size: int,
        batch_invariant: bool,
        replay_routing: bool = False,
        mtp: bool = False,
    ) -> None:
        self.model, self.table, self.page_size = model, table, page_size
        self.batch_invariant = batch_invariant
        self.products = partial(linear.thread_batch_invariant, batch_invariant)
        self.mtp = MtpDrafter(model, len(table.lengths_S)) if mtp else None
        self.propose = False
        shape = model.shape if mtp else model.shape.without_mtp()
        self.cache = KVCache.zeros(shape, num_pages, page_size, model.dtype)
        if replay_routing:
            self.cache.routes = RouteCache(model.shape, num_pages, page_size, model.device)

    # The host's table is used directly, so updates need little work.

    def update_rows(self, slots: np.ndarray) -> None:
        if self.mtp is not None:
            self.mtp.forget(torch.from_numpy(slots))

    def add_pages(self, slots: np.ndarray, columns: np.ndarray, pages: list[int]) -> None: ...

    # Forward passes.

    def fill(self, chunks: Sequence[PrefillChunk]) -> None:
        """Compute the keys and values of these tokens into the cache."""
        packed = pack_prefill(chunks, self.page_size)
        positions_T, places_T = torch.from_numpy(packed.positions_T), torch.from_numpy(packed.places_T)
        tables_CP, lengths_C = torch.from_numpy(packed.tables_CP), torch.from_numpy(packed.lengths_C)
        attend: CachedAttend = ChunkAttention(self.cache, tables_CP, places_T, positions_T, lengths_C)
        if self.batch_invariant:
            tables_TP = tables_CP.repeat_interleave(lengths_C, dim=0)
            attend = PerTokenAttention(self.cache, tables_TP, places_T, (positions_T + 1).tolist())
        ahead = None
        if self.mtp is not None:
            ids_KT = torch.from_numpy(tokens_ahead(chunks, self.mtp.layers))
            ahead = partial(self.mtp.fill, ids_KT=ids_KT, positions_T=positions_T, attend=attend)
        with self.products():
            ids_T = torch.from_numpy(packed.ids_T)
            self.model(ids_T, positions_T, attend, None, self.cache.route(places_T), ahead)
        if self.cache.routes is not None:
            self.cache.routes.forget_last_layer(places_T)

    def decode(self, block: np.ndarray) -> Callable[[], SampledTokens]:
        """Sample a token at every entry, and decide which are kept."""
        slots_E, offsets_E, drafts_E = block.astype(np.int64)
        if self.mtp is not None:
            unread_E = drafts_E == UNREAD
            drafts_E[unread_E] = self.mtp.ahead_SK.numpy()[slots_E[unread_E], offsets_E[unread_E] - 1]
        entries = Entries(slots_E, offsets_E, drafts_E)
        positions_E = self.table.lengths_S[slots_E] - 1 + entries.offsets_E
        ids_E = np.where(entries.offsets_E == 0, self.table.last_S[slots_E], entries.drafts_E)
        attend, positions = self._attend(slots_E, positions_E), torch.from_numpy(positions_E)
        route, ahead = self.cache.route(attend.places_T), None if self.mtp is None else stream
        with self.products():
            output = self.model(torch.from_numpy(ids_E), positions, attend, logits, route, ahead)
        tokens_E, logprobs_E = self._sample(output.value, slots_E, positions)
        sampled = advance(self.table, entries, tokens_E.numpy(), logprobs_E.numpy())
        if self.mtp is not None:
            sampled = self._look_ahead(self.mtp, entries, output.ahead, positions, sampled)
        return lambda: sampled

    def _look_ahead(
        self,
        mtp: MtpDrafter,
        entries: Entries,
        stream_ED: Tensor,
        positions_E: Tensor,
        sampled: SampledTokens,
    ) -> SampledTokens:
        """Let MTP layers follow the kept tokens, and draft if enabled."""
        columns = (entries.slots_E, entries.offsets_E, entries.drafts_E)
        done = Verified(
            stream_ED=stream_ED,
            tokens_E=torch.from_numpy(sampled.tokens_E),
            counts_E=torch.from_numpy(sampled.counts_E),
            positions_E=positions_E,
        )
        with self.products():
            ahead_RK = mtp.follow(
                Entries(*map(torch.from_numpy, columns)),
                done,
                lambda slots, positions: self._attend(slots.numpy(), positions.numpy()),
                lambda logits_RV, slots_R, before_R: self._sample(logits_RV, slots_R.numpy(), before_R)[0],
                propose=self.propose,
            )
        return replace(sampled, ahead_RK=ahead_RK.numpy()) if self.propose else sampled

    def _attend(self, slots_E: np.ndarray, positions_E: np.ndarray) -> EntryAttention | PerTokenAttention:
        width = positions_E.max() // self.page_size + 1
        tables_EP = self.table.pages_SP[slots_E, :width]
        pages_E = np.take_along_axis(tables_EP, positions_E[:, None] // self.page_size, 1)[:, 0].astype(
            np.int64
        )
        places_E = torch.from_numpy(pages_E * self.page_size + positions_E % self.page_size)
        tables, contexts_E = torch.from_numpy(tables_EP), positions_E + 1
        if self.batch_invariant:
            return PerTokenAttention(self.cache, tables, places_E, contexts_E.tolist())
        return EntryAttention(self.cache, tables, places_E, torch.from_numpy(contexts_E))

    def _sample(self, logits_EV: Tensor, slots_E: np.ndarray, positions_E: Tensor) -> tuple[Tensor, Tensor]:
        table = self.table
        noise_E = uniforms(torch.from_numpy(table.keys_S[slots_E]), positions_E + 1)
        settings = SamplingRows(
            temperature_B=torch.from_numpy(table.temperature_S[slots_E]),
            top_p_B=torch.from_numpy(table.top_p_S[slots_E]),
            top_k_B=torch.from_numpy(table.top_k_S[slots_E]),
            min_p_B=torch.from_numpy(table.min_p_S[slots_E]),
        )
        return sample(logits_EV, settings, noise_E, truncate=table.truncates(slots_E))

    # The cache stays in main memory.

    def give_back_memory(self) -> None: ...

    def take_memory(self) -> None: ...
