"""Rollouts on a real engine with real text: whole groups against context-aware scheduling with grouped drafts,
and naive dynamic sampling against the seamless controller with a code judge in the loop.

**Replay.** All compute is real; which token is drawn is dictated by a recorded trace (`replay.py`), so both sides
draw the same text and a draft is accepted exactly when it equals it. The trace is 100 problems x 8 responses of
Qwen2.5-Math, or one that `record_traces.py` made. Each KV budget bounds the tokens that the cache holds; the sides
are: `group`, every group sent whole and undivided, as usual engines take it; `context`, divided and probe first,
then longest first; both without and with drafts. Tail: from the moment nine tenths of the requests have ended.

**Seamless.** A step wants so many groups whose rewards differ. Responses are recorded reasoning followed by a
program for a LeetCode problem: its solution or a mutant of it, as many right in a group as in a group of 8 of a
real run (DeepScaleR, visit 10). `naive`: batches of the wanted size, drawn to the end, then graded, until there
are enough, as verl's dynamic sampling does; graded one by one or by a pool of processes. `seamless`: `collect`.
The reasoning is there for its length. Neither side drafts.

    python benchmarks/rollout/rollout_real.py    # the 7B shape on a GPU, a small one on a CPU
    python benchmarks/rollout/rollout_real.py --parts replay --budgets 16000 64000
The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import platform
import random
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "shared"))

import torch
from replay import DATA, read_scripts
from replay_contest import measure_replay
from seamless_contest import measure_seamless
from shapes import SHAPES
from tokenizers import Tokenizer

from foresail.engine.engine import Engine
from foresail.model.decoder import Decoder
from foresail.model.hf import empty_model
from foresail.recipe.shape.model_shape import ModelShape
from foresail.rollout.drafts.compiled import numba

SMALL = ModelShape(
    hidden_size=256,
    num_layers=4,
    num_heads=4,
    num_kv_heads=2,
    head_dim=64,
    intermediate_size=768,
    vocab_size=16_384,
    max_context=8192,
)
PAGE_SIZE = 16
Figures = dict[str, Any]


def main() -> None:
    options = read_options()
    tokenizer = read_tokenizer()
    model = random_model(options.shape, options.device)
    engine = Engine(
        model,
        num_pages=options.kv_tokens // PAGE_SIZE,
        page_size=PAGE_SIZE,
        max_running=options.max_running,
    )
    result: Figures = {"machine": describe_machine(options), "shape": options.shape_name}
    if "replay" in options.parts:
        result["replay"] = {}
        for trace in options.traces:
            scripts = read_scripts(trace, tokenizer)
            scripts = random.Random(options.order).sample(scripts, min(options.problems, len(scripts)))
            print(trace.name)
            result["replay"][trace.name] = measure_replay(engine, scripts, options.budgets, options.chunk)
    if "seamless" in options.parts:
        result["seamless"] = measure_seamless(engine, tokenizer, options)
    print(json.dumps(result))


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    gpu = torch.cuda.is_available()
    parser.add_argument("--parts", nargs="+", default=["replay", "seamless"], choices=["replay", "seamless"])
    parser.add_argument("--traces", type=Path, nargs="+", default=[DATA / "traces/qwen_math_100x8.jsonl.gz"])
    parser.add_argument("--problems", type=int, default=50 if gpu else 16, help="of the trace")
    parser.add_argument(
        "--budgets",
        type=int,
        nargs="+",
        default=[8_000, 16_000, 64_000] if gpu else [4_000, 64_000],
    )
    parser.add_argument("--order", type=int, default=0, help="seed of the problems' choice and order")
    parser.add_argument("--chunk", type=int, default=64, help="tokens of a chunk")
    parser.add_argument("--max-running", type=int, default=1024 if gpu else 64)
    parser.add_argument("--kv-tokens", type=int, default=800_000 if gpu else 80_000)
    parser.add_argument("--shape", default="7B" if gpu else "small", choices=[*SHAPES, "small"])
    parser.add_argument("--wanted", type=int, default=32 if gpu else 4, help="groups a step wants")
    parser.add_argument("--steps", type=int, default=2, help="of dynamic sampling")
    parser.add_argument("--graders", type=int, default=max(1, (os.cpu_count() or 2) - 2), help="processes")
    options = parser.parse_args()
    options.shape_name, options.device = options.shape, torch.device("cuda" if gpu else "cpu")
    options.shape = (SHAPES | {"small": SMALL})[options.shape]
    return options


def describe_machine(options: argparse.Namespace) -> Figures:
    device = torch.cuda.get_device_name() if options.device.type == "cuda" else platform.machine()
    drafts = f"numba {numba.__version__}" if numba is not None else "no numba: plain Python"
    return {"device": device, "cores": os.cpu_count(), "torch": torch.__version__, "drafts": drafts}


def read_tokenizer() -> Tokenizer:
    packed = DATA / "tokenizers/qwen2_5/tokenizer.json.xz"
    if not packed.exists():
        raise SystemExit(f"{packed} is not there; this benchmark needs the public data beside the repository")
    return Tokenizer.from_str(lzma.decompress(packed.read_bytes()).decode())


@torch.no_grad()
def random_model(shape: ModelShape, device: torch.device) -> Decoder:
    """Random weights: the recorded trace decides which tokens are drawn."""
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    model = empty_model(shape, dtype=dtype, device=str(device)).requires_grad_(False)
    torch.manual_seed(0)
    for name, parameter in model.named_parameters():
        parameter.fill_(1.0) if "norm" in name else parameter.normal_(0.0, 0.02)
    return model


if __name__ == "__main__":
    main()
