"""The rollout engine on one GPU: tokens per second beside the floor, vLLM's figures and transformers' `generate`.

Qwen2 shapes with random bf16 weights, temperature 1, the log-probability of every token, every sequence to its
set length. A figure is the median over the rounds of the wall time of the whole call, from requests to
completions, after a short warm-up. Ceilings, loads and everything else are measured in the same run; floors and
loads are explained in gpu_loads.py. vLLM's figures are those on record in gpu_rival.py, with date and setting, or
are measured by --vllm. A few rows of every load are compared with a float32 model. A table grows while it runs, the
last line is JSON.

    python benchmarks/engine/engine_gpu.py                          # both shapes, all loads: four to five minutes
    python benchmarks/engine/engine_gpu.py --quick --shapes 7B      # one round of the short loads
    python benchmarks/engine/engine_gpu.py --shapes 7B --startup    # no kernel compiled before: a first start
    python benchmarks/engine/engine_gpu.py --generate --drafts --park --precision
    python benchmarks/engine/engine_gpu.py --vllm                   # vLLM on this card too, where it is installed
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from statistics import median
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "shared"))

import gpu_clock
import gpu_park
import gpu_precision
import gpu_verify
import torch
from gpu_check import check_logprobs, check_tokens, float32_copy
from gpu_clock import Ceilings, measure_ceilings, timed
from gpu_loads import LOADS, WARM_UP_TOKENS, Load, draw_requests, even, floor
from gpu_peer import NEW_TOKENS, load_peer, measure_peer
from gpu_rival import STORED, USUAL, Figures, RivalFigure, measure_rival
from shapes import SHAPES

from foresail.engine.engine import Engine
from foresail.engine.request import Completion, Request
from foresail.model.decoder import Decoder
from foresail.model.hf import empty_model
from foresail.recipe.shape.model_shape import ModelShape
from foresail.simulate.costs import MeasuredStep

QUICK_LOADS = "abef"

Save = Callable[[], None]


def main() -> None:
    options = read_options()
    no_kernels = tempfile.TemporaryDirectory()
    if options.startup:
        os.environ["TRITON_CACHE_DIR"] = no_kernels.name
    report: dict[str, Any] = {"machine": describe_machine(), "results": []}
    say(", ".join(f"{name} {value}" for name, value in report["machine"].items()))

    def save() -> None:
        if options.json is not None:
            options.json.write_text(json.dumps(report, indent=2) + "\n")

    try:
        ceilings = measure_ceilings()
        say(gpu_clock.describe(ceilings))
        report["ceilings"] = asdict(ceilings)
        for name in options.shapes:
            result: dict[str, Any] = {"shape": name}
            report["results"].append(result)
            measure_shape(name, ceilings, options, result, save)
    finally:  # what was measured is worth keeping, whatever stopped the rest
        save()
        say(json.dumps(report))


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shapes", nargs="*", choices=list(SHAPES), default=["1.5B", "7B"])
    parser.add_argument("--loads", nargs="*", choices=list(LOADS), default=list(LOADS))
    parser.add_argument("--rounds", type=int, default=3, help="timed rounds of each load")
    parser.add_argument("--quick", action="store_true", help=f"one round of {', '.join(QUICK_LOADS)}")
    parser.add_argument("--generate", action="store_true", help="transformers beside ours; a minute a shape")
    parser.add_argument(
        "--vllm",
        type=json.loads,
        nargs="?",
        const=USUAL,
        metavar="SETTINGS",
        help=f"run vLLM beside ours, with these settings as JSON; default {json.dumps(USUAL)}",
    )
    parser.add_argument("--startup", action="store_true", help="start without compiled kernels")
    parser.add_argument("--drafts", action="store_true", help="the cost of verifying drafts; 40 s at 7B")
    parser.add_argument("--costs", type=Path, default=Path("draft_costs.json"), help="where --drafts writes")
    parser.add_argument("--park", action="store_true", help="keys and values to the host and back")
    parser.add_argument(
        "--precision", action="store_true", help="engine against trainer, fp8, batch invariance"
    )
    parser.add_argument("--kv-tokens", type=int, default=800_000, help="room of the KV cache")
    parser.add_argument("--page-size", type=int, default=16, help="tokens per KV page")
    parser.add_argument("--max-running", type=int, default=1024, help="rows decoded at once")
    parser.add_argument("--prefill-tokens", type=int, default=16_384, help="prompt tokens a step may take")
    parser.add_argument("--json", type=Path, help="a file that is rewritten after every figure")
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.loads = 1, [load for load in options.loads if load in QUICK_LOADS]
    return options


def describe_machine() -> dict[str, str]:
    return {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "cuda": str(torch.version.cuda),
        "python": platform.python_version(),
    }


def measure_shape(
    name: str, ceilings: Ceilings, options: argparse.Namespace, result: dict[str, Any], save: Save
) -> None:
    say(f"\n{name}: {SHAPES[name].num_parameters / 1e9:.2f} billion parameters")
    rivals = STORED.get(name, {})
    if options.vllm is not None:
        say("vLLM, the best of its rounds:")
        rivals = measure_rival(name, options.loads, rounds=options.rounds, settings=options.vllm)
    measure_engine(name, ceilings, rivals, options, result, save)
    free_device()  # the engine is gone, and the others need its room
    if options.precision:
        result["precision"] = measure_precision(SHAPES[name])
        save()
        free_device()
    if options.generate:
        compare_with_peer(SHAPES[name], options.loads, result["loads"], save)
        free_device()


def measure_engine(
    name: str,
    ceilings: Ceilings,
    rivals: Figures,
    options: argparse.Namespace,
    result: dict[str, Any],
    save: Save,
) -> None:
    shape, model = SHAPES[name], random_model(SHAPES[name])
    (engine, num_graphs), seconds = timed(start_engine, model, options)
    result["startup"] = {"seconds": seconds, "graphs": num_graphs, "cold": options.startup}
    say(f"start-up to the first token {seconds:.1f} s, {num_graphs} CUDA graphs")
    say(HEADER)
    result["loads"], reference = {}, float32_copy(model)
    for load in map(LOADS.__getitem__, options.loads):
        figures = measure_load(engine, reference, load, ceilings, options.rounds)
        add_rival(figures, rivals.get(load.name, {}))
        say(line(load, figures))
        result["loads"][load.name] = figures
        save()
    del reference  # what follows needs its room
    free_device()
    if options.drafts:
        result["draft_costs"] = measure_drafts(engine, name, options.costs)
        save()
    if options.park:
        result["parking"] = measure_parking(engine, shape.vocab_size)
        save()


# Model and engine.


@torch.no_grad()
def random_model(shape: ModelShape) -> Decoder:
    """Made on the device: drawing seven billion numbers on the CPU would take longer than the benchmark."""
    model = empty_model(shape, dtype=torch.bfloat16, device="cuda").requires_grad_(False)
    torch.manual_seed(0)
    for name, parameter in model.named_parameters():
        if "norm" in name:
            parameter.fill_(1.0)
        else:
            parameter.normal_(0.0, 0.02)
    return model


def start_engine(model: Decoder, options: argparse.Namespace) -> tuple[Engine, int]:
    """From nothing to the first token, with the number of CUDA graphs captured on the way."""
    engine = Engine(
        model,
        num_pages=options.kv_tokens // options.page_size,
        page_size=options.page_size,
        max_running=options.max_running,
        prefill_tokens=options.prefill_tokens,
    )
    first = even("start", "first token", groups=1, prompt=16, new=1)
    generate(engine, draw_requests(first, model.shape.vocab_size, number=0))
    return engine, len(getattr(engine.runner, "graphs", ()))


def free_device() -> None:
    gc.collect()
    torch.cuda.empty_cache()


# The loads.

HEADER = (
    f"  {'load':<38}{'tok/s':>9}{'slowest':>9}{'fastest':>9}{'floor':>9}{'share':>7}{'off by':>8}"
    f"{'vLLM':>11}{'ratio':>7}{'+logprobs':>11}{'ratio':>7}"
)


def measure_load(
    engine: Engine, reference: Decoder, load: Load, ceilings: Ceilings, rounds: int
) -> dict[str, Any]:
    """Time the rounds, and look at what they gave."""
    shape = reference.shape
    short = replace(load, lengths=tuple(min(length, WARM_UP_TOKENS) for length in load.lengths))
    generate(engine, draw_requests(short, shape.vocab_size, number=0))
    seconds = []
    for number in range(1, rounds + 1):
        completions, taken = timed(generate, engine, draw_requests(load, shape.vocab_size, number))
        check_tokens(load, completions)
        seconds.append(taken)
    least = floor(shape, load, ceilings)
    return {
        "load": load.title,
        "tokens": load.tokens,
        "seconds": seconds,
        "tokens_per_second": load.tokens / median(seconds),
        "floor": {
            **asdict(least),
            "seconds": least.seconds,
            "tokens_per_second": load.tokens / least.seconds,
        },
        "share_of_floor": least.seconds / median(seconds),
        "against_float32": asdict(check_logprobs(reference, load, completions)),
    }


def generate(engine: Engine, requests: list[Request]) -> list[Completion]:
    return list(engine.generate(requests))


def add_rival(figures: dict[str, Any], rivals: dict[bool, RivalFigure]) -> None:
    """vLLM without and with log-probabilities, where it was measured; ours always has them."""
    figures["vllm"] = [
        {**asdict(rival), "ratio": figures["tokens_per_second"] / rival.tokens_per_second}
        for rival in rivals.values()
    ]


def line(load: Load, figures: dict[str, Any]) -> str:
    speeds = [load.tokens / seconds for seconds in figures["seconds"]]
    rivals = "".join(
        f"{rival['tokens_per_second']:>11,.0f}{rival['ratio']:>7.2f}"
        for rival in sorted(figures["vllm"], key=lambda rival: rival["logprobs"])
    )
    return (
        f"  ({load.name}) {load.title:<34}{figures['tokens_per_second']:>9,.0f}{min(speeds):>9,.0f}"
        f"{max(speeds):>9,.0f}{figures['floor']['tokens_per_second']:>9,.0f}{figures['share_of_floor']:>7.0%}"
        f"{figures['against_float32']['max_abs']:>8.3f}{rivals}"
    )


# The other parts.


def measure_drafts(engine: Engine, name: str, file: Path) -> list[list[float]]:
    """Print a line per batch and write the whole table to its file, which may hold other shapes already."""
    say("verifying drafts, milliseconds of a step by drafted tokens per row:")
    costs: list[gpu_verify.Cost] = []
    for cells in gpu_verify.measure_costs(engine, SHAPES[name].vocab_size):
        say(gpu_verify.describe(cells))
        costs += cells
    known = json.loads(file.read_text()) if file.exists() else {}
    head = {"machine": describe_machine(), "columns": MeasuredStep._fields}
    file.write_text(json.dumps({**known, **head, name: gpu_verify.table(costs)}) + "\n")
    return gpu_verify.table(costs)


def measure_parking(engine: Engine, vocab_size: int) -> dict[str, Any]:
    lengths, bus = gpu_park.measure_parking(engine, vocab_size)
    say(
        f"parking; the bus gives {bus[0] / gpu_clock.GB:.1f} GB/s out and {bus[1] / gpu_clock.GB:.1f} GB/s back:"
    )
    for parking in lengths:
        say(gpu_park.describe(parking, bus))
    return {"bus_bytes_per_second": bus, "lengths": [asdict(parking) for parking in lengths]}


def measure_precision(shape: ModelShape) -> list[dict[str, Any]]:
    say("log-probabilities, trainer's less engine's:")
    agreements = []
    for precision in gpu_precision.measure_precision(random_model(shape)):
        say(gpu_precision.describe(precision))
        agreements.append(asdict(precision))
    return agreements


def compare_with_peer(shape: ModelShape, names: list[str], figures: dict[str, Any], save: Save) -> None:
    say(f"transformers' generate with log-probabilities, reckoned from prefill and {NEW_TOKENS} tokens:")
    peer = load_peer(shape)
    for load in map(LOADS.__getitem__, names):
        peer_time = measure_peer(peer, load, shape.vocab_size)
        speed = load.tokens / peer_time.seconds(load)
        ratio = figures[load.name]["tokens_per_second"] / speed
        figures[load.name]["generate"] = {"tokens_per_second": speed, "ratio": ratio, **asdict(peer_time)}
        say(
            f"  ({load.name}) {speed:>9,.0f} tok/s in batches of {peer_time.batch}: {peer_time.prefill:.2f} s for "
            f"the prompts, {1000 * peer_time.step:.0f} ms a step; ours is {ratio:.1f}x"
        )
        save()


def say(text: str) -> None:
    print(text, flush=True)  # a run that is cut off should leave what it found


if __name__ == "__main__":
    main()
