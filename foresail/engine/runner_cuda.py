"""Forward passes on CUDA: decode steps as graphs, one step ahead of the host; prefill as it comes.

A step that the host launches by hand takes longer to launch than to run, so each is captured once per bucket
of entries and replayed. A graph reads its rows from the device's table, draws, and moves the rows on; the
host reads what was drawn while the next step runs. Padding entries belong to the table's scratch row.

Legend: E entries, T tokens, C chunks, V vocabulary, D hidden size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor

from foresail.engine.advance import Drawn
from foresail.engine.cache_cuda import CudaKVCache
from foresail.engine.chunk import Chunk, pack_chunks
from foresail.engine.entries import Entries, root_entries
from foresail.engine.kernels.attention import attend_entries, choose_splits
from foresail.engine.kernels.chunks import attend_chunks, cut_tiles
from foresail.engine.kernels.drawing import draw
from foresail.engine.kernels.rows import advance, locate
from foresail.engine.noise import uniforms
from foresail.engine.sampling import SamplingRows, sample
from foresail.engine.table import Table
from foresail.engine.table_cuda import DeviceTable
from foresail.model.decoder import Decoder

READINGS = 4  # buffers for outcomes on their way to the host; at most two are in use


class CudaRunner:
    """What the engine asks of a device; see `runner.Runner`."""

    steps_ahead = 1

    def __init__(self, model: Decoder, table: Table, *, num_pages: int, page_size: int) -> None:
        self.model, self.host_table, self.page_size = model, table, page_size
        self.device = model.device
        self.cache = CudaKVCache(model.shape, num_pages + 1, page_size, model.dtype, model.device)
        self.table = DeviceTable(table, scratch_page=num_pages, device=model.device)
        self.seat, self.add_pages = self.table.seat, self.table.add_pages
        self.give_back_memory, self.take_memory = self.cache.give_back_memory, self.cache.take_memory
        self.multiprocessors = torch.cuda.get_device_properties(self.device).multi_processor_count
        self.graphs: dict[tuple[int, bool], Graph] = {}
        self.graph_memory = torch.cuda.graph_pool_handle()
        self.stream = torch.cuda.Stream(self.device)
        self.readings = [Reading() for _ in range(READINGS)]

    # Prefill.

    def fill(self, chunks: Sequence[Chunk]) -> None:
        """Compute and keep the keys and values of these tokens."""
        packed = pack_chunks(chunks, self.page_size)
        ids_T, positions_T, places_T = self._upload(
            np.stack((packed.ids_T, packed.positions_T, packed.places_T))
        )
        starts_C1 = np.concatenate(([0], packed.lengths_C.cumsum()))
        shape = self.model.shape
        attend = ChunkAttention(
            self.cache,
            places_T,
            self._upload(packed.tables_CP),
            self._upload(starts_C1.astype(np.int32)),
            self._upload(packed.contexts_C.astype(np.int32)),
            self._upload(cut_tiles(packed.lengths_C, shape.num_heads // shape.num_kv_heads)),
        )
        self.model(ids_T, positions_T, attend)

    # Decoding.

    def decode(self, block: np.ndarray) -> Callable[[], Drawn]:
        """Launch a step. The reading, when asked for, waits for it to end."""
        if not self.graphs:
            self.capture_all()
        count = block.shape[1]
        graph = self._graph(bucket_of(count), self.host_table.truncates(block[0]))
        graph.replay(block)
        reading = self.readings[0]
        self.readings = [*self.readings[1:], reading]
        reading.begin(graph.drawn_5E)
        return partial(reading.end, count)

    def capture_all(self) -> None:
        """Capture the plain steps of all buckets, the largest first, whose memory the others then share."""
        for size in reversed(buckets(self.table.scratch)):
            self._graph(size, truncates=False)

    def _graph(self, size: int, truncates: bool) -> Graph:
        if (size, truncates) not in self.graphs:
            self.graphs[size, truncates] = self._capture(size, truncates)
        return self.graphs[size, truncates]

    def _capture(self, size: int, truncates: bool) -> Graph:
        """Run once on scratch rows, so that all kernels are loaded, and once more while being captured."""
        graph = Graph(size, self.table.scratch, self.device)
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            step = partial(self._step, Entries(*graph.block_6E), truncates)
            step()
            torch.cuda.synchronize(self.device)
            graph.cuda.capture_begin(self.graph_memory)
            graph.drawn_5E = step()
            graph.cuda.capture_end()
        torch.cuda.current_stream().wait_stream(self.stream)
        return graph

    def _step(self, entries: Entries, truncates: bool) -> Tensor:
        """From the table's lines to tokens, and the table moved on: int32 of 5 x E, see `advance`."""
        table = self.table
        ids_E, positions_E, places_E, bases_E = locate(
            table.last_S, table.lengths_S, table.pages_SP, entries, page_size=self.page_size
        )
        attend = EntryAttention(
            self.cache, table.pages_SP, entries, places_E, bases_E, self._splits(len(entries))
        )
        logits_EV = self.model.logits(self.model(ids_E, positions_E, attend))
        draw_tokens = self._draw_truncated if truncates else self._draw
        tokens_E, logprobs_E = draw_tokens(logits_EV, entries.slots_E, positions_E)
        rows = (table.last_S, table.lengths_S, table.left_S, table.stops_SX)
        return advance(*rows, entries, tokens_E, logprobs_E)

    def _splits(self, entries: int) -> int:
        return choose_splits(entries, self.model.shape.num_kv_heads, self.multiprocessors)

    def _draw(self, logits_EV: Tensor, slots_E: Tensor, positions_E: Tensor) -> tuple[Tensor, Tensor]:
        return draw(logits_EV, slots_E, self.table.temperature_S, self.table.keys_S, positions_E)

    def _draw_truncated(
        self, logits_EV: Tensor, slots_E: Tensor, positions_E: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Top-k, top-p and min-p need the logits sorted."""
        table = self.table
        settings = SamplingRows(
            temperature_B=table.temperature_S[slots_E],
            top_p_B=table.top_p_S[slots_E],
            top_k_B=table.top_k_S[slots_E],
            min_p_B=table.min_p_S[slots_E],
        )
        noise_E = uniforms(table.keys_S[slots_E], positions_E + 1)
        return sample(logits_EV, settings, noise_E, truncate=True)

    def _upload(self, array: np.ndarray) -> Tensor:
        # From pinned memory, or the copy would wait for all work before it.
        return torch.from_numpy(np.ascontiguousarray(array)).pin_memory().to(self.device, non_blocking=True)


class EntryAttention:
    """A decode step's attention: write each entry's key and value, then look back over its row."""

    def __init__(
        self,
        cache: CudaKVCache,
        pages_SP: Tensor,
        entries: Entries,
        places_E: Tensor,
        bases_E: Tensor,
        splits: int,
    ) -> None:
        self.cache, self.places_E, self.splits = cache, places_E, splits
        self.rows = (pages_SP, entries.slots_E, bases_E, entries.nodes_E, entries.sights_E)

    def __call__(self, layer: int, q_EHd: Tensor, k_EKd: Tensor, v_EKd: Tensor) -> Tensor:
        self.cache.write(layer, self.places_E, k_EKd, v_EKd)
        keys, values = self.cache.keys[layer], self.cache.values[layer]
        return attend_entries(q_EHd, keys, values, *self.rows, splits=self.splits)


class ChunkAttention:
    """Prefill's attention: write the chunks' keys and values, then look back over their contexts."""

    def __init__(
        self,
        cache: CudaKVCache,
        places_T: Tensor,
        tables_CP: Tensor,
        starts_C1: Tensor,
        contexts_C: Tensor,
        tiles: Tensor,
    ) -> None:
        self.cache, self.places_T = cache, places_T
        self.chunks = (tables_CP, starts_C1, contexts_C, tiles)

    def __call__(self, layer: int, q_THd: Tensor, k_TKd: Tensor, v_TKd: Tensor) -> Tensor:
        self.cache.write(layer, self.places_T, k_TKd, v_TKd)
        return attend_chunks(q_THd, self.cache.keys[layer], self.cache.values[layer], *self.chunks)


class Graph:
    """A captured decode step and the entries it reads, which are the scratch row's until told otherwise."""

    def __init__(self, size: int, scratch: int, device: torch.device) -> None:
        self.padding = root_entries(np.full(size, scratch))
        self.block_6E = torch.from_numpy(self.padding).to(device)
        self.staging = torch.from_numpy(self.padding).pin_memory()
        self.uploaded = torch.cuda.Event()
        self.cuda = torch.cuda.CUDAGraph()
        self.drawn_5E: Tensor

    def replay(self, block: np.ndarray) -> None:
        self._upload(block)
        self.cuda.replay()

    def _upload(self, block: np.ndarray) -> None:
        """Mostly the entries are those of the step before, and stay."""
        staged, count = self.staging.numpy(), block.shape[1]
        if np.array_equal(staged[:, :count], block) and (staged[0, count:] == self.padding[0, 0]).all():
            return
        self.uploaded.synchronize()  # the last upload must have left the staging buffer
        staged[:, :count], staged[:, count:] = block, self.padding[:, count:]
        self.block_6E.copy_(self.staging, non_blocking=True)
        self.uploaded.record()


class Reading:
    """What a step drew, on its way to the host."""

    def __init__(self) -> None:
        self.host = torch.empty(0, dtype=torch.int32)
        self.arrived = torch.cuda.Event()

    def begin(self, drawn_5E: Tensor) -> None:
        if self.host.numel() < drawn_5E.numel():
            self.host = torch.empty(drawn_5E.numel(), dtype=torch.int32, pin_memory=True)
        self.block_5E = self.host[: drawn_5E.numel()].view_as(drawn_5E)
        self.block_5E.copy_(drawn_5E, non_blocking=True)
        self.arrived.record()

    def end(self, count: int) -> Drawn:
        self.arrived.synchronize()
        return Drawn.of(self.block_5E.numpy()[:, :count])


def bucket_of(count: int) -> int:
    """bucket_of(5) -> 8, bucket_of(65) -> 80: an eighth to a quarter too large at most, beyond the smallest."""
    if count <= 8:
        return 1 << (count - 1).bit_length()
    step = max(8, 1 << ((count - 1).bit_length() - 3))
    return -(-count // step) * step


def buckets(most: int) -> list[int]:
    """All sizes up to the one that holds `most`: buckets(20) -> [1, 2, 4, 8, 16, 24]."""
    sizes = [bucket_of(1)]
    while sizes[-1] < most:
        sizes.append(bucket_of(sizes[-1] + 1))
    return sizes
