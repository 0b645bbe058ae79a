"""A step of pretraining at real shapes: seconds, share of the card's arithmetic, memory; beside transformers.

    dense     Qwen2.5-1.5B's shape
    compass   layers of Compass-v2: 24 heads and 6 key/value heads of 128, 48 routed experts of 2048, of which 4 are
              active, and 2 shared ones; hidden size 24 x 128, with which 30 layers have its 30B parameters and 5B
              active ones; its 180,000 words
    tiny      the second one's layout, small enough for a CPU

Rows of random tokens, each one document, through the learner and `train_step` that `foresail pretrain` has. Weights
are random. FLOPs are those of `foresail.train.update.flops`: 6 for every active weight and token, and causal
attention; nothing that is computed anew counts. Their share is of 989 TFLOP/s, the dense bf16 rate of the H100 and
H200 by their datasheet.

    python benchmarks/training/pretrain_mfu.py --shape dense
    python benchmarks/training/pretrain_mfu.py --shape compass --layers 8
    python benchmarks/training/pretrain_mfu.py --shape compass --layers 4 --peer    # beside transformers
    python benchmarks/training/pretrain_mfu.py --shape tiny --rows 4 --length 64 --micro-batch 128 --peer
The last line is JSON.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

sys.path.append(str(Path(__file__).parents[1] / "shared"))

import torch
from pretrain_peer import measure_peer
from shapes import SHAPES, compass_v2

from foresail.algorithms.aggregation import token_weights
from foresail.algorithms.batch_losses import sft_loss
from foresail.data.packing import pack
from foresail.model.decoder import Decoder
from foresail.model.hf import empty_model
from foresail.model.router import RouterLosses, set_router_losses
from foresail.recipe.shape.model_shape import Experts, ModelShape
from foresail.recipe.tables.parts import Optimizer
from foresail.records import PackedBatch, TrainSequence
from foresail.train.learner import Learner
from foresail.train.optim.optimizer import build_optimizer
from foresail.train.update.flops import count_flops
from foresail.train.update.step import token_loss, train_step

PEAK = 989e12
RATE = 1e-6
Figures = dict[str, Any]
Result = TypeVar("Result")


def tiny(layers: int) -> ModelShape:
    return ModelShape(
        family="ernie4_5_moe",
        vocab_size=256,
        hidden_size=64,
        intermediate_size=96,
        num_layers=layers,
        num_heads=4,
        num_kv_heads=2,
        head_dim=16,
        max_context=128,
        tied=False,
        experts=Experts(routed=8, active=2, inner_size=32, shared=1, correction=True),
    )


def main() -> None:
    options = read_options()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    shape = {"dense": lambda _: SHAPES["1.5B"], "compass": compass_v2, "tiny": tiny}[options.shape](
        options.layers
    )
    result: Figures = {
        "device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
        "torch": torch.__version__,
        "shape": options.shape,
        "layers": shape.num_layers,
        "parameters": shape.num_parameters,
        "active_parameters": shape.active_parameters,
        "length": options.length,
        "tokens": options.rows * options.length,
        "foresail": measure(shape, options, device),
    }
    collect(device)
    if options.peer:
        ids_BT = make_rows(shape, options).to(device)
        flops = result["foresail"]["tflop"] * 1e12
        result["transformers"] = measure_peer(
            partial(random_model, shape, device), ids_BT, options, partial(describe, flops, options)
        )
        ours, theirs = result["foresail"], result["transformers"]
        result["times_faster"] = round(theirs["seconds"] / ours["seconds"], 3)
        result["loss_difference"] = abs(theirs["loss"] - ours["loss"])
    print(json.dumps(result))


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shape", choices=["dense", "compass", "tiny"], default="dense")
    parser.add_argument("--layers", type=int, default=8, help="of compass and tiny")
    parser.add_argument("--rows", type=int, default=32, help="of an update")
    parser.add_argument("--length", type=int, default=4096, help="tokens of a row")
    parser.add_argument("--micro-batch", type=int, default=16_384, help="tokens")
    parser.add_argument("--states", choices=["float32", "8bit"], default="8bit")
    parser.add_argument("--recompute", action="store_true")
    parser.add_argument("--updates", type=int, default=3, help="that are timed, after two that are not")
    parser.add_argument("--balance", type=float, default=0.01, help="weight of the routers' balance loss")
    parser.add_argument("--z", type=float, default=0.001, help="weight of the routers' z loss")
    parser.add_argument("--profile", action="store_true", help="print the kernels of one update")
    parser.add_argument("--peer", action="store_true", help="transformers as well")
    parser.add_argument(
        "--peer-experts", nargs="+", default=["grouped_mm"], help="its kernels to try; the fastest counts"
    )
    parser.add_argument("--peer-attention", default="sdpa", help="sdpa, flash_attention_2, …")
    parser.add_argument("--peer-recompute", action="store_true", help="its gradient checkpointing")
    return parser.parse_args()


def measure(shape: ModelShape, options: argparse.Namespace, device: torch.device) -> Figures:
    model = random_model(shape, device)
    if options.recompute:
        model.recompute_blocks()
    set_router_losses(model, RouterLosses(balance=options.balance, z=options.z))
    learner = Learner(
        name="policy", model=model, optimizer=build_optimizer(model, Optimizer(states=options.states))
    )
    batches = make_batches(make_rows(shape, options), options, device)
    flops = sum(count_flops(shape, batch) for batch in batches)

    def update() -> dict[str, float]:
        return train_step(learner, batches, partial(token_loss, loss=sft_loss), learning_rate=RATE)

    reset_peak(device)
    first = update()  # its loss is that of the weights as they were made
    update()
    if options.profile:
        profile(update)
    seconds = min(timed(update, device)[1] for _ in range(options.updates))
    return describe(flops, options, first["sft/nll"], seconds, peak_bytes(device))


def describe(flops: float, options: argparse.Namespace, loss: float, seconds: float, peak: int) -> Figures:
    return {
        "seconds": round(seconds, 4),
        "tokens_per_second": round(options.rows * options.length / seconds),
        "tflop": flops / 1e12,
        "mfu": round(flops / seconds / PEAK, 4),
        "peak_gb": round(peak / 1e9, 3),
        "loss": loss,
    }


@torch.no_grad()
def random_model(shape: ModelShape, device: torch.device) -> Decoder:
    """The same weights at each call; bfloat16 on a card, float32 on a CPU. Nothing corrects the router's choice."""
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    model = empty_model(shape, dtype=dtype, device=device)
    torch.manual_seed(0)
    for name, parameter in model.named_parameters():
        if "norm" in name:
            parameter.fill_(1.0)
        elif name.endswith("correction"):
            parameter.zero_()
        else:
            parameter.normal_(0.0, 0.02)
    return model


def make_rows(shape: ModelShape, options: argparse.Namespace) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randint(shape.vocab_size, (options.rows, options.length), generator=generator)


def make_batches(
    ids_BT: torch.Tensor, options: argparse.Namespace, device: torch.device
) -> list[PackedBatch]:
    mask = [0] + [1] * (options.length - 1)
    sequences = [TrainSequence(ids=ids, loss_mask=mask) for ids in ids_BT.tolist()]
    weights = token_weights([options.length - 1] * len(sequences), "token-mean", options.length)
    return pack(sequences, weights, max_tokens=options.micro_batch, device=device)


# The clock and the memory, on whatever there is.


def timed(work: Callable[[], Result], device: torch.device) -> tuple[Result, float]:
    wait(device)
    start = time.perf_counter()
    result = work()
    wait(device)
    return result, time.perf_counter() - start


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def reset_peak(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()


def peak_bytes(device: torch.device) -> int:
    return torch.cuda.max_memory_allocated() if device.type == "cuda" else 0


def collect(device: torch.device) -> None:
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


def profile(update: Callable[[], object]) -> None:
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as record

    with record(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as profiler:
        update()
        torch.cuda.synchronize()
    print(
        profiler.key_averages().table(sort_by="self_cuda_time_total", row_limit=32, max_name_column_width=60)
    )


if __name__ == "__main__":
    main()
