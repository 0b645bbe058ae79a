"""Forward passes on CUDA: decode steps as graphs, one step ahead of the host; prefill without graphs.

Launching the kernels of a step one by one takes longer than running them, so each step is captured once per bucket
of entries and replayed. A graph reads its rows from the device's table, samples, and advances the rows; the host
reads the tokens while the next step runs. Padding entries belong to the table's scratch row.

Legend: E entries, T tokens, C chunks, V vocabulary, D hidden size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from foresail.engine.advance import SampledTokens
from foresail.engine.cache_cuda import CudaKVCache
from foresail.engine.entries import Entries
from foresail.engine.graph import Graph, GraphKind, Plan, Readback, bucket_of, buckets
from foresail.engine.kernels.attention import attend_entries, choose_splits
from foresail.engine.kernels.mtp import DraftLayout
from foresail.engine.kernels.packs import attend_packs, max_packed
from foresail.engine.kernels.rows import advance, locate
from foresail.engine.kernels.sampling import sample_untruncated
from foresail.engine.mtp import Verified
from foresail.engine.mtp_cuda import CudaMtpDrafter
from foresail.engine.noise import uniforms
from foresail.engine.packs import plan_packs, tokens_saved
from foresail.engine.prefill import PrefillChunk, pack_prefill, tokens_ahead
from foresail.engine.routes import RouteCache
from foresail.engine.sampling import SamplingRows, sample
from foresail.engine.table import Table
from foresail.engine.table_cuda import DeviceTable, upload
from foresail.model import linear
from foresail.model.decoder import Decoder
from foresail.model.kernels.chunks import attend_chunks, cut_tiles
from foresail.model.mtp import stream
from foresail.model.readouts import logits

READBACKS = 4  # buffers for copies to the host; at most two are in use
WORTH_PACKING = 24 * 2**20  # bytes that packing must save per layer: it needs an extra kernel
PACK_SPLITS = 1
PLAN_STEPS = 32  # after which drafted entries are planned again: growing rows share more pages


class CudaRunner:
    """The runner for CUDA; see `runner.Runner`."""

    steps_ahead = 1
    efficient_prefill_tokens = 4096

    def __init__(
        self,
        model: Decoder,
        table: Table,
        *,
        num_pages: int,
        page_size: int,
        kv_dtype: torch.dtype,
        batch_invariant: bool,
        replay_routing: bool = False,
        mtp: bool = False,
    ) -> None:
        self.model, self.host_table, self.page_size = model, table, page_size
        self.device, shape = model.device, model.shape
        self.group = shape.num_heads // shape.num_kv_heads
        cached = shape if mtp else shape.without_mtp()
        self.cache = CudaKVCache(cached, num_pages + 1, page_size, kv_dtype, model.device)
        if replay_routing:
            # never lent: only a few bytes per token
            self.cache.routes = RouteCache(shape, num_pages + 1, page_size, model.device)
        self.table = DeviceTable(table, scratch_page=num_pages, device=model.device)
        self.add_pages = self.table.add_pages
        self.mtp = CudaMtpDrafter(model, self.table.pages_SP, page_size) if mtp else None
        self.propose = False
        self.give_back_memory, self.take_memory = self.cache.give_back_memory, self.cache.take_memory
        self.cache_bytes = self.cache.memory.reserved_bytes
        self.batch_invariant = batch_invariant
        self.products = partial(linear.thread_batch_invariant, batch_invariant)
        self.multiprocessors = torch.cuda.get_device_properties(self.device).multi_processor_count
        self.graphs: dict[GraphKind, Graph] = {}
        self.graph_memory = torch.cuda.graph_pool_handle()
        self.capturing = torch.cuda.Stream(
            self.device, priority=-1
        )  # before work that `at_once` starts beside it
        self.readbacks = [Readback() for _ in range(READBACKS)]
        self.last_plan: Plan | None = None
        self.plan_steps = 0  # steps with the current plan

    def update_rows(self, slots: np.ndarray) -> None:
        self.table.update_rows(slots)
        if self.mtp is not None:
            self.mtp.forget(upload(slots, self.device))

    # Prefill.

    def fill(self, chunks: Sequence[PrefillChunk]) -> None:
        """Compute the keys and values of these tokens into the cache."""
        assert self.cache.memory.taken, "the cache's memory is lent: engine.take_memory() first"
        packed = pack_prefill(chunks, self.page_size)
        ids_T, positions_T, places_T = upload(
            np.stack((packed.ids_T, packed.positions_T, packed.places_T)), self.device
        )
        starts_C1 = np.concatenate(([0], packed.lengths_C.cumsum()))
        attend = partial(
            attend_chunks,
            tables_SP=upload(packed.tables_CP, self.device),
            starts_C1=upload(starts_C1.astype(np.int32), self.device),
            contexts_C=upload(packed.contexts_C.astype(np.int32), self.device),
            tiles=upload(cut_tiles(packed.lengths_C, self.group), self.device),
        )
        cached_attend, ahead = WriteAndAttend(self.cache, places_T, attend), None
        if self.mtp is not None:
            ids_KT = upload(tokens_ahead(chunks, self.mtp.layers), self.device)
            ahead = partial(self.mtp.fill, ids_KT=ids_KT, positions_T=positions_T, attend=cached_attend)
        with self.products():
            self.model(ids_T, positions_T, cached_attend, None, self.cache.route(places_T), ahead)
        if self.cache.routes is not None:
            self.cache.routes.forget_last_layer(places_T)

    # Decoding.

    def decode(self, block: np.ndarray) -> Callable[[], SampledTokens]:
        """Launch a step. Calling the result waits for its end."""
        assert self.cache.memory.taken, "the cache's memory is lent: engine.take_memory() first"
        if not self.graphs:
            self._capture_plain_steps()
        plan = self._plan(block)
        graph = self._graph(plan.kind)
        graph.replay(plan)
        readback = self.readbacks.pop(0)
        self.readbacks.append(readback)
        readback.begin(graph.sampled_4E)
        return partial(readback.end, block.shape[1])

    def _plan(self, block: np.ndarray) -> Plan:
        """Reuse the plan of the step before if its entries are the same, as is usual."""
        last, self.plan_steps = self.last_plan, self.plan_steps + 1
        old = self.plan_steps > PLAN_STEPS and bool(block[1].any())
        changed = last is None or last.kind.propose != self.propose or not np.array_equal(block, last.block)
        if self.last_plan is None or old or changed:
            self.plan_steps = 0
            packs = plan_packs(self.host_table, block, max(1, max_packed(self.group)), self.page_size)
            token_bytes = 2 * self.cache.keys[0, 0, 0].numel() * self.cache.dtype.itemsize
            kind = GraphKind(
                size=bucket_of(block.shape[1]),
                packed=not self.batch_invariant and tokens_saved(packs) * token_bytes > WORTH_PACKING,
                truncates=self.host_table.truncates(block[0]),
                rows=0 if self.mtp is None else bucket_of(int((block[1] == 0).sum())),
                propose=self.propose,
            )
            self.last_plan = Plan(kind=kind, block=block, packs=packs)
        return self.last_plan

    def _capture_plain_steps(self) -> None:
        """Capture the largest first: the others then share its memory."""
        for size in reversed(buckets(self.table.scratch)):
            self._graph(GraphKind(size=size, rows=0 if self.mtp is None else size))

    def _graph(self, kind: GraphKind) -> Graph:
        if kind not in self.graphs:
            graph = Graph(kind.size, self.table.scratch, self.device)
            step = partial(self._step, graph.entries, graph.packs_3E, kind)
            with self.products():
                graph.capture(step, self.graph_memory, self.capturing)
            self.graphs[kind] = graph
        return self.graphs[kind]

    def _step(self, entries: Entries, packs_3E: Tensor, kind: GraphKind) -> Tensor:
        """Sample tokens and advance the table: int32 of 4 x E, see `advance`.

        MTP layers' drafts are below: K lines, a column for each row.
        """
        table = self.table
        ids_E, positions_E, places_E, contexts_E = locate(
            table.last_S,
            table.lengths_S,
            table.left_S,
            None if self.mtp is None else self.mtp.ahead_SK,
            table.pages_SP,
            entries,
            page_size=self.page_size,
        )
        if self.batch_invariant:
            attend = self._attend_batch_invariant(entries, contexts_E)
        elif kind.packed:
            attend = self._attend_packs(entries, contexts_E, packs_3E)
        else:
            attend = self._attend(entries, contexts_E)
        cached_attend, route = WriteAndAttend(self.cache, places_E, attend), self.cache.route(places_E)
        ahead = None if self.mtp is None else stream
        output = self.model(ids_E, positions_E, cached_attend, logits, route, ahead)
        sample_tokens = self._sample_truncated if kind.truncates else self._sample
        tokens_E, logprobs_E = sample_tokens(output.value, entries.slots_E, positions_E)
        rows = (table.last_S, table.lengths_S, table.left_S, table.stops_SX)
        sampled_4E = advance(*rows, entries, ids_E, tokens_E, logprobs_E)
        if self.mtp is None:
            return sampled_4E
        ahead_RK = self.mtp.follow(
            entries,
            Verified(
                stream_ED=output.ahead, tokens_E=tokens_E, counts_E=sampled_4E[2], positions_E=positions_E
            ),
            self._attend_places,
            lambda *read: sample_tokens(*read)[0],
            num_rows=kind.rows,
            propose=kind.propose,
        )
        if not kind.propose:
            return sampled_4E
        ahead_KE = F.pad(ahead_RK.t(), (0, len(entries) - kind.rows)).to(sampled_4E.dtype)
        return torch.cat((sampled_4E, ahead_KE))

    def _attend_places(self, layout: DraftLayout) -> WriteAndAttend:
        """The attention of MTP layers over a row's places."""
        entries = Entries(layout.slots_W, None, None)
        kind = self._attend_batch_invariant if self.batch_invariant else self._attend
        return WriteAndAttend(self.cache, layout.places_W, kind(entries, layout.contexts_W))

    def _attend(self, entries: Entries, contexts_E: Tensor) -> Callable[..., Tensor]:
        return partial(
            attend_entries,
            tables_SP=self.table.pages_SP,
            slots_E=entries.slots_E,
            contexts_E=contexts_E,
            splits=choose_splits(len(entries), self.model.shape.num_kv_heads, self.multiprocessors),
        )

    def _attend_packs(self, entries: Entries, contexts_E: Tensor, packs_3E: Tensor) -> Callable[..., Tensor]:
        plain = self._attend(entries, contexts_E)
        return partial(attend_packs, **plain.keywords, packs=packs_3E, pack_splits=PACK_SPLITS)  # type: ignore[attr-defined]

    def _attend_batch_invariant(self, entries: Entries, contexts_E: Tensor) -> Callable[..., Tensor]:
        """Each entry as prefill and the trainer attend it, bit for bit: one new token at the end of a context."""
        numbers_E1 = torch.arange(len(entries) + 1, dtype=torch.int32, device=self.device)
        return partial(
            attend_chunks,
            tables_SP=self.table.pages_SP,
            slots_C=entries.slots_E,
            starts_C1=numbers_E1,
            contexts_C=contexts_E,
            tiles=torch.stack((numbers_E1[:-1], torch.zeros_like(numbers_E1[:-1]))),
        )

    def _sample(self, logits_EV: Tensor, slots_E: Tensor, positions_E: Tensor) -> tuple[Tensor, Tensor]:
        return sample_untruncated(
            logits_EV, slots_E, self.table.temperature_S, self.table.keys_S, positions_E
        )

    def _sample_truncated(
        self, logits_EV: Tensor, slots_E: Tensor, positions_E: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Top-k, top-p and min-p need sorted logits; rows without them sample as without truncation."""
        table = self.table
        settings = SamplingRows(
            temperature_B=table.temperature_S[slots_E],
            top_p_B=table.top_p_S[slots_E],
            top_k_B=table.top_k_S[slots_E],
            min_p_B=table.min_p_S[slots_E],
        )
        noise_E = uniforms(table.keys_S[slots_E], positions_E + 1)
        cut = sample(logits_EV, settings, noise_E, truncate=True)
        plain = self._sample(logits_EV, slots_E, positions_E)
        tokens_E, logprobs_E = (
            torch.where(settings.truncates_B, *pair) for pair in zip(cut, plain, strict=True)
        )
        return tokens_E, logprobs_E


class WriteAndAttend:
    """What the model calls in each layer: write the new keys and values, then attend over the cache."""

    def __init__(self, cache: CudaKVCache, places_T: Tensor, attend: Callable[..., Tensor]) -> None:
        self.cache, self.places_T, self.attend = cache, places_T, attend

    def write(self, layer: int, k_TKd: Tensor, v_TKd: Tensor) -> None:
        self.cache.write(layer, self.places_T, k_TKd, v_TKd)

    def __call__(self, layer: int, q_THd: Tensor, k_TKd: Tensor, v_TKd: Tensor) -> Tensor:
        self.write(layer, k_TKd, v_TKd)
        return self.attend(q_THd, self.cache.keys[layer], self.cache.values[layer])
