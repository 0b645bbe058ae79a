"""A decode step as a CUDA graph: captured once for a number of entries, replayed for every step of that size.

Legend: E entries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from foresail.engine.advance import SampledTokens
from foresail.engine.entries import NUM_COLUMNS, Entries, plain_entries
from foresail.engine.packs import NUM_LINES


@dataclass(frozen=True, kw_only=True)
class GraphKind:
    """The kind of a graph; plain ones are captured at the start, others when first needed."""

    size: int
    packed: bool = False  # reads shared prefixes once
    truncates: bool = False  # some row uses top-k, top-p or min-p
    rows: int = 0  # at most, if MTP layers follow
    propose: bool = False  # MTP layers draft


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The input of a step, as the host plans it."""

    kind: GraphKind
    block: np.ndarray
    packs: np.ndarray


class Graph:
    """A captured step and the entries it reads, which are the scratch row's at first."""

    def __init__(self, size: int, scratch: int, device: torch.device) -> None:
        self.padding = np.concatenate(
            (plain_entries(np.full(size, scratch)), np.zeros((NUM_LINES, size), np.int32))
        )
        self.lines = torch.from_numpy(self.padding).to(device)
        self.entries = Entries(*self.lines[:NUM_COLUMNS])
        self.packs_3E = self.lines[NUM_COLUMNS:]
        self.staging = torch.from_numpy(self.padding).pin_memory()
        self.uploaded = torch.cuda.Event()
        self.shown: Plan | None = None
        self.cuda = torch.cuda.CUDAGraph()
        self.sampled_4E: Tensor

    def capture(self, step: Callable[[], Tensor], memory: tuple[int, int], stream: torch.cuda.Stream) -> None:
        """Run once on scratch rows to load all kernels, then once more to capture."""
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            step()
            stream.synchronize()
            # thread_local: other threads, such as a reward model's, may use the device
            self.cuda.capture_begin(memory, capture_error_mode="thread_local")  # type: ignore[arg-type]
            self.sampled_4E = step()
            self.cuda.capture_end()
        torch.cuda.current_stream().wait_stream(stream)

    def replay(self, plan: Plan) -> None:
        if plan is not self.shown:
            self._upload(plan)
        self.cuda.replay()

    def _upload(self, plan: Plan) -> None:
        count = plan.block.shape[1]
        self.uploaded.synchronize()  # the staging buffer is free after the last upload
        staged = self.staging.numpy()
        staged[:NUM_COLUMNS, :count], staged[NUM_COLUMNS:, :count] = plan.block, plan.packs
        staged[:, count:] = self.padding[:, count:]
        self.lines.copy_(self.staging, non_blocking=True)
        self.uploaded.record()
        self.shown = plan


class Readback:
    """Copies a step's sampled tokens to the host."""

    def __init__(self) -> None:
        self.host = torch.empty(0, dtype=torch.int32)
        self.arrived = torch.cuda.Event()

    def begin(self, sampled_4E: Tensor) -> None:
        if self.host.numel() < sampled_4E.numel():
            self.host = torch.empty(sampled_4E.numel(), dtype=torch.int32, pin_memory=True)
        self.block_4E = self.host[: sampled_4E.numel()].view_as(sampled_4E)
        self.block_4E.copy_(sampled_4E, non_blocking=True)
        self.arrived.record()

    def end(self, count: int) -> SampledTokens:
        self.arrived.synchronize()
        return SampledTokens.of(self.block_4E.numpy()[:, :count])


def bucket_of(count: int) -> int:
    """bucket_of(5) -> 8, bucket_of(65) -> 80: from 64 on at most a quarter of the entries are padding."""
    if count <= 8:
        return 1 << (count - 1).bit_length()
    step = max(8, 1 << ((count - 1).bit_length() - 3))
    return -(-count // step) * step


def buckets(largest: int) -> list[int]:
    """All sizes up to the one that holds `largest`: buckets(20) -> [1, 2, 4, 8, 16, 24]."""
    sizes = [bucket_of(1)]
    while sizes[-1] < largest:
        sizes.append(bucket_of(sizes[-1] + 1))
    return sizes
