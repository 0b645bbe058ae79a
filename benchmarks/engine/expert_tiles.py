"""Which tiles are fastest for the experts' products of a decode step on this GPU, at Compass-v2's widths.

Kernels are compiled by several processes first, then timed alone, in a graph. Rows are divided among experts evenly
up to chance, and unevenly, as a router that was never balanced divides them. What is found goes to
`model/kernels/grouped.py`.

    python benchmarks/engine/expert_tiles.py --tokens 256 1024    # a minute or two on an H200
The last line is JSON: for each kernel, number of tokens and division the fastest tiles, and the one in use.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "shared"))

import torch
from gpu_clock import median_seconds
from torch import Tensor

from foresail.model.kernels import grouped
from foresail.model.kernels.matmul import Tile
from foresail.model.kernels.pairs import sort_pairs

HIDDEN, INNER, EXPERTS, ACTIVE = 3072, 2048, 48, 4
KERNELS = ("gated", "down")
MEMORY = 227 * 1024  # shared, of a multiprocessor
SKEW = {"even": 0.0, "uneven": 0.7}  # standard deviation of the experts' logits


def main() -> None:
    options = read_options()
    jobs = [
        (kernel, tokens, tile)
        for kernel in KERNELS
        for tokens in options.tokens
        for tile in tiles(kernel, tokens)
    ]
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        possible = [job for job, works in zip(jobs, pool.map(compiles, jobs), strict=True) if works]
    print(f"{len(possible)} of {len(jobs)} tiles can be compiled", flush=True)
    results: dict[str, Any] = {}
    for kernel, tokens, skew in product(KERNELS, options.tokens, SKEW):
        data = Data(tokens, SKEW[skew])
        used = grouped.choose_tile(
            grouped.GATED_TILES if kernel == "gated" else grouped.TILES,
            tokens * ACTIVE,
            EXPERTS,
            torch.bfloat16,
        )
        times = {
            tile: microseconds(data.work(kernel, tile))
            for name, number, tile in {*possible, (kernel, tokens, used)}
            if (name, number) == (kernel, tokens)
        }
        fastest = sorted(times, key=times.__getitem__)[:4]
        results[f"{kernel} {tokens} {skew}"] = {
            "used": [tuple(used), round(times[used], 1)],
            "fastest": [[tuple(tile), round(times[tile], 1)] for tile in fastest],
        }
        print(f"{kernel} {tokens} {skew}: {results[f'{kernel} {tokens} {skew}']}", flush=True)
    print(json.dumps(results))


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tokens", type=int, nargs="+", default=[256, 1024])
    parser.add_argument("--workers", type=int, default=12)
    return parser.parse_args()


def tiles(kernel: str, tokens: int) -> list[Tile]:
    """All that fit the shared memory, with rows for about the tokens of an expert; the gated kernel has two tiles
    of weights.
    """
    weights = 2 if kernel == "gated" else 1
    columns = (32, 64, 128) if kernel == "gated" else (64, 128, 256)
    rows = [count for count in (16, 32, 64, 128) if 2 * count >= tokens * ACTIVE / EXPERTS][:3]
    every = product(rows, columns, (64, 128), (4, 8), (3, 4, 5))
    return [
        Tile(rows=m, columns=n, depth=k, warps=w, stages=s)
        for m, n, k, w, s in every
        if (m + weights * n) * k * 2 * s <= MEMORY
    ]


class Data:
    """Weights, tokens, and their experts; only the division depends on the skew."""

    def __init__(self, tokens: int, skew: float) -> None:
        numbers = torch.Generator("cuda").manual_seed(0)

        def normal(*size: int) -> Tensor:
            return torch.randn(*size, generator=numbers, device="cuda", dtype=torch.bfloat16) * 0.02

        self.gate_up, self.down = normal(EXPERTS, 2 * INNER, HIDDEN), normal(EXPERTS, HIDDEN, INNER)
        self.x, self.inner = normal(tokens, HIDDEN), normal(tokens * ACTIVE, INNER)
        liked_E = torch.randn(EXPERTS, generator=numbers, device="cuda") * skew
        noise_TE = -torch.empty(tokens, EXPERTS, device="cuda").exponential_(generator=numbers).log()
        self.order, _, self.ends = sort_pairs((liked_E + noise_TE).topk(ACTIVE).indices, EXPERTS)

    def work(self, kernel: str, tile: Tile) -> Callable[[], Tensor]:
        if kernel == "gated":
            return lambda: grouped.gated_products(self.x, self.gate_up, self.order, self.ends, ACTIVE, tile)
        return lambda: grouped.products(self.inner, self.down, self.ends, tile)


def compiles(job: tuple[str, int, Tile]) -> bool:
    """Triton keeps what was compiled on the disk, for the process that times it."""
    kernel, tokens, tile = job
    try:
        with torch.inference_mode():
            Data(tokens, 0.0).work(kernel, tile)()
            torch.cuda.synchronize()
    except Exception as error:  # too many registers, too much shared memory
        print(f"{kernel} {tuple(tile)}: {str(error)[:80]}", flush=True)
        return False
    return True


def microseconds(work: Callable[[], Tensor], times: int = 8) -> float:
    with torch.inference_mode():
        work()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(times):
                work()
        return 1e6 * median_seconds(graph.replay) / times


if __name__ == "__main__":
    main()
