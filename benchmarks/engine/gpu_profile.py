"""Where the time of a decode step and of a prefill goes on one GPU, by kind of kernel.

Every load of gpu_loads.py is run to its middle. There a page's worth of steps is timed as it is, and as many
under the profiler, which gives the time of every kernel in the replayed graphs. So in one of the steps each row
takes a new page. What the kernels leave of a step's wall time are the gaps between them, and where a step is
very short the wait for the host. Prefill, which the host launches kernel by kernel, is eight prompts of 1,024
tokens. A table grows while it runs, the last line is JSON, with launches and microseconds of the larger kernels.

    python benchmarks/engine/gpu_profile.py    # both shapes: a minute and a half
    python benchmarks/engine/gpu_profile.py --shapes 7B --loads b c
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

sys.path.append(str(Path(__file__).parents[1] / "shared"))

import gpu_clock
import torch
from engine_gpu import describe_machine, free_device, random_model, say
from gpu_clock import measure_ceilings, median_seconds, timed
from gpu_loads import BF16, LOADS, Load, block_weights, draw_requests, even, head_weights
from shapes import SHAPES
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from foresail.engine.engine import Engine
from foresail.engine.prefill import PrefillChunk
from foresail.recipe.shape.model_shape import ModelShape

KV_TOKENS, PAGE_SIZE, MAX_RUNNING = 800_000, 16, 1024
STEPS = PAGE_SIZE
PREFILL = even("prefill", "prefill of 8 x 1024", groups=8, prompt=1024, new=1)
FILLS = 3  # under the profiler
TINY_KERNELS = 1000
NAMED_FROM, NAME_WIDTH = 0.005, 60  # kernels from that share of a step on; a template's name can fill pages

# By what their names hold; the first kind that fits. Products are cuBLAS's, whose kernels have many names.
KINDS = {
    "products": ("gemm", "gemv", "nvjet", "xmma", "cutlass", "splitk", "cublas", "multiply_kernel"),
    "experts": ("gated_kernel", "product_kernel", "route_kernel", "sort_kernel", "sum_pairs"),
    "attention": ("_attend_", "_merge_parts", "merge_kernel"),
    "swiglu": ("silu_mul",),
    "norms": ("norm_kernel", "turn_kernel", "_write_rows"),  # with rotary and the cache's new keys and values
    # with the bookkeeping of the table and of MTP layers
    "drawing": ("_weigh_blocks", "_pick_tokens", "_locate", "_advance", "_lay_out", "_join_inputs", "_keep"),
}
OTHER = "other"  # the embedding, the rotary table's lines, copies to and from the host


class Kernel(NamedTuple):
    """One kernel of a step: how often it is launched, and how long it takes each time."""

    name: str
    launches: float
    microseconds: float


@dataclass(frozen=True, kw_only=True)
class Profile:
    """One step, or one prefill: its wall time without the profiler, and its kernels."""

    title: str
    tokens: int  # that pass through the matrices: one per running row, or those of the prompts
    context: int
    milliseconds: float
    products: int  # numbers in the matrices that each token is multiplied with
    kernels: list[Kernel]

    @property
    def by_kind(self) -> dict[str, float]:
        """Milliseconds; together with the gaps they are the whole step."""
        sums = dict.fromkeys((*KINDS, OTHER), 0.0)
        for kernel in self.kernels:
            sums[kind_of(kernel.name)] += kernel.launches * kernel.microseconds / 1000
        return sums

    @property
    def gaps(self) -> float:
        return self.milliseconds - sum(self.by_kind.values())

    @property
    def launches(self) -> float:
        return sum(kernel.launches for kernel in self.kernels)

    @property
    def product_rates(self) -> tuple[float, float]:
        """TFLOP/s of the products, and TB/s at which they read their matrices."""
        seconds = max(self.by_kind["products"], 1e-9) / 1000
        return 2 * self.tokens * self.products / seconds / 1e12, BF16 * self.products / seconds / 1e12


def main() -> None:
    options = read_options()
    if not torch.cuda.is_available():
        raise SystemExit(
            "this profiles CUDA kernels, and PyTorch sees no CUDA device: run it where there is one"
        )
    report: dict[str, Any] = {"machine": describe_machine(), "results": []}
    say(", ".join(f"{name} {value}" for name, value in report["machine"].items()))
    with profile(activities=[ProfilerActivity.CUDA]):
        torch.zeros(8, device="cuda")  # so that the profiler has come up before any graph is captured
    try:
        ceilings = measure_ceilings()
        report["ceilings"], report["tiny_kernel_microseconds"] = asdict(ceilings), measure_tiny_kernel()
        say(gpu_clock.describe(ceilings))
        say(f"a tiny kernel in a graph takes {report['tiny_kernel_microseconds']:.2f} us")
        for name in options.shapes:
            result: dict[str, Any] = {"shape": name, "profiles": {}}
            report["results"].append(result)
            profile_shape(name, options.loads, result["profiles"])
            free_device()
    finally:  # what was measured is worth keeping, whatever stopped the rest
        say(json.dumps(report))


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    decoded = [load.name for load in LOADS.values() if not load.prefill_only]
    parser.add_argument("--shapes", nargs="*", choices=list(SHAPES), default=list(SHAPES))
    parser.add_argument("--loads", nargs="*", choices=decoded, default=decoded)
    return parser.parse_args()


def profile_shape(name: str, loads: list[str], profiles: dict[str, Any]) -> None:
    """Print a line for each load and for the prefill, and add them to `profiles` as they come."""
    engine = Engine(
        random_model(SHAPES[name]),
        num_pages=KV_TOKENS // PAGE_SIZE,
        page_size=PAGE_SIZE,
        max_running=MAX_RUNNING,
    )
    say(f"\n{name}, milliseconds:\n{HEADER}")
    works = {load: partial(profile_load, engine, LOADS[load]) for load in loads}
    for key, work in {**works, PREFILL.name: partial(profile_prefill, engine, PREFILL)}.items():
        profile = work()
        profiles[key] = figures(profile)
        say(line(profile))


# A decode step.


def profile_load(engine: Engine, load: Load) -> Profile:
    """Half-way through the load, when some rows of a long tail have ended."""
    shape, half = engine.model.shape, max(load.lengths) // 2
    requests = draw_requests(load, shape.vocab_size, number=0)
    for request in requests:
        engine.add(request)
    take_steps(engine, half - STEPS)
    rows = len(engine.slots)
    _, seconds = timed(take_steps, engine, STEPS)
    kernels = time_kernels(partial(take_steps, engine, STEPS), STEPS)
    for request in requests:
        engine.cancel(request.id)
    return Profile(
        title=f"({load.name}) {load.title}",
        tokens=rows,
        context=load.prompt_length + half,
        milliseconds=1000 * seconds / STEPS,
        products=int(block_weights(shape)) + head_weights(shape),
        kernels=kernels,
    )


def take_steps(engine: Engine, count: int) -> None:
    for _ in range(count):
        engine.step()


# Prefill.


def profile_prefill(engine: Engine, load: Load) -> Profile:
    """The runner's work alone, on pages that are freed afterwards."""
    shape, tokens = engine.model.shape, load.groups * load.prompt_length
    pages_each = -(-load.prompt_length // engine.page_size)
    pages = engine.pool.take(load.groups * pages_each)
    chunks = [
        PrefillChunk(
            tokens=request.prompt, start=0, pages=pages[number * pages_each : (number + 1) * pages_each]
        )
        for number, request in enumerate(draw_requests(load, shape.vocab_size, number=0))
    ]
    seconds = median_seconds(fill, engine, chunks)
    kernels = time_kernels(lambda: [fill(engine, chunks) for _ in range(FILLS)], FILLS)
    engine.pool.release(pages)
    return Profile(
        title=load.title,
        tokens=tokens,
        context=load.prompt_length,
        milliseconds=1000 * seconds,
        products=fill_weights(shape),
        kernels=kernels,
    )


@torch.inference_mode()
def fill(engine: Engine, chunks: list[PrefillChunk]) -> None:
    engine.runner.fill(chunks)


def fill_weights(shape: ModelShape) -> int:
    """Numbers in the matrices of a prefill: of the last block only those that make keys and values."""
    keys_and_values = 2 * shape.num_kv_heads * shape.head_dim * shape.hidden_size
    return int(block_weights(shape)) * (shape.num_layers - 1) // shape.num_layers + keys_and_values


# Kernels.


def time_kernels(work: Callable[[], object], steps: int) -> list[Kernel]:
    """What runs on the device while `work` does so many equal steps, the most time first."""
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        work()
        torch.cuda.synchronize()
    times: dict[str, list[float]] = defaultdict(list)
    for event in profiler.events() or ():
        if event.device_type == DeviceType.CUDA:
            times[event.name].append(event.time_range.elapsed_us())
    if not times:
        raise SystemExit(
            "the profiler saw no kernel: CUPTI is missing, in use by another profiler, or kept to administrators "
            "on this machine (the driver's option NVreg_RestrictProfilingToAdminUsers)"
        )
    return [
        Kernel(name, launches=len(each) / steps, microseconds=sum(each) / len(each))
        for name, each in sorted(times.items(), key=lambda item: -sum(item[1]))
    ]


def kind_of(name: str) -> str:
    """kind_of("nvjet_tst_256x128_64x4_1x2_h_bz_coopA_TNT") -> "products"."""
    lower = name.lower()
    return next((kind for kind, marks in KINDS.items() if any(mark in lower for mark in marks)), OTHER)


def measure_tiny_kernel() -> float:
    """Microseconds from one kernel to the next in a graph, where each has next to nothing to do."""
    number = torch.zeros(8, device="cuda")
    number.add_(1)  # outside the graph once: the kernel is loaded
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(TINY_KERNELS):
            number.add_(1)
    return 1e6 * median_seconds(graph.replay) / TINY_KERNELS


# The table, and its figures for JSON.

HEADER = (
    f"  {'load':<38}{'rows':>6}{'context':>9}{'step':>9}{'products':>10}{'experts':>9}{'attention':>11}"
    f"{'SwiGLU':>8}{'norms+':>8}{'drawing':>9}{'other':>7}{'gaps':>7}{'kernels':>9}{'TFLOP/s':>9}{'TB/s':>6}"
)


def line(profile: Profile) -> str:
    """`norms+` has rotary and the cache's new keys and values; the rates are those of the products."""
    kinds = profile.by_kind
    flops, read = profile.product_rates
    return (
        f"  {profile.title:<38}{profile.tokens:>6}{profile.context:>9}{profile.milliseconds:>9.2f}"
        f"{kinds['products']:>10.2f}{kinds['experts']:>9.2f}{kinds['attention']:>11.2f}{kinds['swiglu']:>8.2f}{kinds['norms']:>8.2f}"
        f"{kinds['drawing']:>9.2f}{kinds[OTHER]:>7.2f}{profile.gaps:>7.2f}{profile.launches:>9.0f}"
        f"{flops:>9.0f}{read:>6.2f}"
    )


def figures(profile: Profile) -> dict[str, Any]:
    """As printed, and the kernels that count: name, launches, microseconds of each."""
    flops, read = profile.product_rates
    large = [
        k for k in profile.kernels if k.launches * k.microseconds > 1000 * NAMED_FROM * profile.milliseconds
    ]
    return {
        "tokens": profile.tokens,
        "context": profile.context,
        "milliseconds": round(profile.milliseconds, 3),
        "by_kind": {kind: round(milliseconds, 3) for kind, milliseconds in profile.by_kind.items()},
        "gaps": round(profile.gaps, 3),
        "launches": round(profile.launches, 1),
        "products": {"tflops_per_second": round(flops, 1), "terabytes_per_second": round(read, 2)},
        "kernels": [(k.name[:NAME_WIDTH], round(k.launches, 1), round(k.microseconds, 2)) for k in large],
    }


if __name__ == "__main__":
    main()
