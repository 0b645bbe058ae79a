"""One update of a real shape on a GPU: seconds by part, share of the arithmetic, memory against the estimate.

Responses of unequal lengths after one prompt length, packed; GRPO's loss; gradients of all micro-batches, clipping
and AdamW. Model FLOPs: 6 for every weight of a product and every token, and for causal attention 6 x layers x width
x length squared of every sequence; nothing that is computed anew is counted. Their share is of 989 TFLOP/s, the
H100's and H200's dense bf16 rate by their datasheet; the rate of a large product on this card is beside it.

    python benchmarks/training/train_gpu.py --shapes 135M 1.5B 7B
    python benchmarks/training/train_gpu.py --shapes 7B --lora 16    # FLOPs as if all weights were trained
The last line is JSON.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import sys
from functools import partial
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "shared"))

import torch
from gpu_clock import measure_matmul, timed
from shapes import SHAPES

from foresail.algorithms.aggregation import token_weights
from foresail.algorithms.batch_losses import policy_loss
from foresail.data.packing import pack
from foresail.model.decoder import Decoder
from foresail.model.hf import empty_model
from foresail.model.lora import attach
from foresail.model.packed import token_logprobs
from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.stages.rl import Rl
from foresail.recipe.tables.parts import Lora, Optimizer
from foresail.recipe.tables.policy_loss import Loss
from foresail.records import PackedBatch, TrainSequence
from foresail.train.learner import Learner
from foresail.train.optim.optimizer import build_optimizer
from foresail.train.update.flops import count_flops
from foresail.train.update.step import token_loss, train_step

PEAK = 989e12
PROMPT = 128
Figures = dict[str, Any]


def main() -> None:
    options = read_options()
    result: Figures = {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "matmul_tflops": round(measure_matmul() / 1e12),
        "shapes": {},
    }
    for name in options.shapes:
        result["shapes"][name] = measure(name, options)
        gc.collect()
        torch.cuda.empty_cache()
    print(json.dumps(result))


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shapes", nargs="+", choices=list(SHAPES), default=list(SHAPES))
    parser.add_argument("--samples", type=int, default=256, help="of an update")
    parser.add_argument(
        "--longest", type=int, default=1024, help="response in tokens; lengths are even up to it"
    )
    parser.add_argument("--micro-batch", type=int, default=12_288, help="tokens")
    parser.add_argument("--states", choices=["float32", "8bit"], default="8bit")
    parser.add_argument("--recompute", action="store_true")
    parser.add_argument("--lora", type=int, help="train low-rank pairs of this rank instead")
    parser.add_argument("--updates", type=int, default=2, help="that are timed, after one that is not")
    parser.add_argument("--profile", action="store_true", help="print the kernels of one update")
    return parser.parse_args()


def measure(name: str, options: argparse.Namespace) -> Figures:
    shape = SHAPES[name]
    model = random_model(shape)
    if options.recompute:
        model.recompute_blocks()
    if options.lora:
        attach(model, Lora(rank=options.lora), seed=0)
    optimizer = build_optimizer(model, Optimizer(states=options.states))
    learner = Learner(name="policy", model=model, optimizer=optimizer)
    batches = make_batches(shape, options)
    torch.cuda.reset_peak_memory_stats()

    def update() -> dict[str, float]:
        return train_step(learner, batches, partial(token_loss, loss=loss), learning_rate=1e-6)

    update()
    if options.profile:
        profile(update)
    seconds = min(timed(update)[1] for _ in range(options.updates))
    peak = torch.cuda.max_memory_allocated()
    forward, backward = time_passes(model, batches[0])
    optimizer.zero_grad()
    tokens = sum(batch.ids_T.numel() for batch in batches)
    flops = sum(count_flops(shape, batch) for batch in batches)
    first = count_flops(shape, batches[0])
    figures = {
        "tokens": tokens,
        "micro_batches": len(batches),
        "fill": round(tokens / len(batches) / options.micro_batch, 4),
        "seconds": round(seconds, 4),
        "tokens_per_second": round(tokens / seconds),
        "mfu": round(flops / seconds / PEAK, 4),
        "forward_ms": round(1e3 * forward, 2),
        "backward_ms": round(1e3 * backward, 2),
        "micro_batch_mfu": round(first / (forward + backward) / PEAK, 4),
        "optimizer_ms": round(1e3 * (seconds - (forward + backward) * flops / first), 2),
        "peak_gb": round(peak / 1e9, 3),
        "estimate_gb": round(estimate_bytes(shape, options) / 1e9, 3),
    }
    print(name, figures, flush=True)
    return figures


@torch.no_grad()
def random_model(shape: ModelShape, dtype: torch.dtype = torch.bfloat16, device: str = "cuda") -> Decoder:
    model = empty_model(shape, dtype=dtype, device=device)
    torch.manual_seed(0)
    for name, parameter in model.named_parameters():
        parameter.fill_(1.0) if "norm" in name else parameter.normal_(0.0, 0.02)
    return model


def make_batches(shape: ModelShape, options: argparse.Namespace) -> list[PackedBatch]:
    sequences = make_sequences(shape, options)
    lengths = [sum(sequence.loss_mask) for sequence in sequences]
    weights = token_weights(lengths, "token-mean", options.longest)
    return pack(sequences, weights, max_tokens=options.micro_batch, device="cuda")


def make_sequences(shape: ModelShape, options: argparse.Namespace) -> list[TrainSequence]:
    numbers, sequences = random.Random(0), []
    for _ in range(options.samples):
        response = numbers.randint(1, options.longest)
        length = PROMPT + response
        sequences.append(
            TrainSequence(
                ids=[numbers.randrange(shape.vocab_size) for _ in range(length)],
                loss_mask=[0] * PROMPT + [1] * response,
                advantages=[numbers.gauss(0, 1)] * length,
                old_logprobs=[-12.0] * length,
                rollout_logprobs=[-12.0] * length,
            )
        )
    return sequences


def loss(logprobs_M: torch.Tensor, batch: PackedBatch) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    return policy_loss(logprobs_M, batch, Loss())


def time_passes(model: Decoder, batch: PackedBatch) -> tuple[float, float]:
    """The second of two micro-batches."""
    for _ in range(2):
        logprobs_M, forward = timed(lambda: token_logprobs(model, batch)[0])
        _, backward = timed(loss(logprobs_M, batch)[0].backward)
    return forward, backward


def estimate_bytes(shape: ModelShape, options: argparse.Namespace) -> int:
    """What the preflight says of such a recipe's updates."""
    recipe = Rl.model_validate(
        {
            "stage": "rl",
            "steps": 1,
            "model": {"path": "model"},
            "data": {"source": "problems.jsonl"},
            "micro_batch_tokens": options.micro_batch,
            "max_prompt_tokens": PROMPT,
            "sampling": {"max_new_tokens": options.longest},
            "optimizer": {"states": options.states},
            "recompute": options.recompute,
            **({"lora": {"rank": options.lora}} if options.lora else {}),
        }
    )
    memory = recipe.estimate_memory(shape, "cuda")
    return memory.weights + memory.optimizer + memory.gradients + memory.activations + memory.logits


def profile(update: Any) -> None:
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as record

    with record(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as profiler:
        update()
        torch.cuda.synchronize()
    print(
        profiler.key_averages().table(sort_by="self_cuda_time_total", row_limit=28, max_name_column_width=60)
    )


if __name__ == "__main__":
    main()
