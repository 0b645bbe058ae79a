"""Wall seconds of work on the GPU, and the card's ceilings: memory, matrix products, the bus to the host."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any, TypeVar

import torch

GB = 10**9
BUFFER_BYTES = 4 * 2**30  # many times the cache
BUS_BYTES = 2**30
MATRIX_SIZE = 8192
REPEATS = 10

Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True)
class Ceilings:
    """What the card does when it does nothing else."""

    copy_bytes_per_second: float  # read plus written
    read_bytes_per_second: float
    flops_per_second: float  # bf16 matrix products


def timed(work: Callable[..., Result], *arguments: Any) -> tuple[Result, float]:
    """What it gives and its seconds; the device is idle at both ends."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    result = work(*arguments)
    torch.cuda.synchronize()
    return result, time.perf_counter() - start


def median_seconds(work: Callable[..., object], *arguments: Any) -> float:
    work(*arguments)  # the first time loads kernels
    return median(timed(work, *arguments)[1] for _ in range(REPEATS))


def measure_ceilings() -> Ceilings:
    """About a second. Random data: zeros run faster than anything real."""
    copy, read = measure_memory()
    ceilings = Ceilings(
        copy_bytes_per_second=copy, read_bytes_per_second=read, flops_per_second=measure_matmul()
    )
    torch.cuda.empty_cache()
    return ceilings


def measure_memory() -> tuple[float, float]:
    """Bytes per second of a copy, read plus written, and of reading alone."""
    source = torch.randn(BUFFER_BYTES // 4, device="cuda")
    target = torch.empty_like(source)
    copy = median_seconds(target.copy_, source)
    read = median_seconds(torch.sum, source)
    return 2 * BUFFER_BYTES / copy, BUFFER_BYTES / read


def measure_matmul(products: int = 10) -> float:
    """FLOP/s of bf16 products in a graph, so that launches cost nothing."""
    size = (MATRIX_SIZE, MATRIX_SIZE)
    left, right = (torch.randn(size, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    out = torch.mm(left, right)  # outside the graph once: the library sets itself up
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(products):
            torch.mm(left, right, out=out)
    return products * 2 * MATRIX_SIZE**3 / median_seconds(graph.replay)


def measure_bus() -> tuple[float, float]:
    """Bytes per second to pinned host memory and back."""
    on_device = torch.randint(256, (BUS_BYTES,), dtype=torch.uint8, device="cuda")
    on_host = torch.empty(BUS_BYTES, dtype=torch.uint8, pin_memory=True)
    out = median_seconds(on_host.copy_, on_device, True)  # True: does not block, as the engine's copies
    back = median_seconds(on_device.copy_, on_host, True)
    return BUS_BYTES / out, BUS_BYTES / back


def describe(ceilings: Ceilings) -> str:
    return (
        f"ceilings: copy {ceilings.copy_bytes_per_second / 1e12:.2f} TB/s read plus write, "
        f"read {ceilings.read_bytes_per_second / 1e12:.2f} TB/s, "
        f"bf16 matmul {ceilings.flops_per_second / 1e12:.0f} TFLOP/s"
    )
