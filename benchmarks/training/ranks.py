"""What sharding costs: the same updates by the plain trainer and by FSDP2, on one rank or on several.

One rank has all of every weight, so its time above the plain trainer's is what FSDP2 itself costs. Both take turns,
each made anew; seconds are those of the fastest update of each. Several ranks deal the same update among them.

With `--context N` groups of N ranks share every micro-batch, and one long sequence is passed through the model as
well, by one process and by such a group: the bytes that a forward pass keeps for its backward pass. On a GPU those
are what its allocator says; on a CPU the storages that autograd saves, without weights.

    python benchmarks/training/ranks.py --shape 7B    # on a GPU, one rank
    python benchmarks/training/ranks.py --shape 135M --samples 16 --longest 64 --ranks 2
    python benchmarks/training/ranks.py --shape tiny --device cpu
    python benchmarks/training/ranks.py --device cpu --ranks 2 --context 2 --samples 16 --micro-batch 1024
The last line is JSON.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "shared"))

import torch
import torch.distributed as dist
import torch.multiprocessing as processes
from shapes import SHAPES
from torch.autograd.graph import saved_tensors_hooks
from train_gpu import make_sequences

from foresail.algorithms.aggregation import token_weights
from foresail.algorithms.batch_losses import policy_loss, sft_loss
from foresail.model.decoder import Decoder
from foresail.model.hf import build_model, empty_model
from foresail.model.shards import gather_whole, local
from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.tables.parts import Optimizer
from foresail.recipe.tables.policy_loss import Loss
from foresail.records import PackedBatch, TrainSequence
from foresail.train.learner import Learner, arrangement
from foresail.train.optim.optimizer import build_optimizer
from foresail.train.ranks.follower import own_device
from foresail.train.ranks.process_world import joined
from foresail.train.ranks.rendezvous import on_this_host
from foresail.train.update.split import balance_metrics, pack_share
from foresail.train.update.step import token_loss, train_step
from foresail.world import ONE_PROCESS, World, context_size

TINY = ModelShape(
    vocab_size=1000,
    hidden_size=256,
    intermediate_size=768,
    num_layers=4,
    num_heads=4,
    num_kv_heads=2,
    head_dim=64,
    max_context=4096,
)
Figures = dict[str, Any]


def main() -> None:
    options = read_options()
    with tempfile.TemporaryDirectory() as folder:
        if options.ranks == 1:
            work(0, options, Path(folder))
        else:
            processes.spawn(work, (options, Path(folder)), nprocs=options.ranks)
        print((Path(folder) / "result.json").read_text())


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shape", choices=["tiny", *SHAPES], default="tiny")
    parser.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto")
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--context", type=int, default=1, help="ranks that share a micro-batch")
    parser.add_argument("--long", type=int, default=4096, help="tokens of the one long sequence")
    parser.add_argument("--samples", type=int, default=64, help="of an update")
    parser.add_argument("--longest", type=int, default=1024, help="response in tokens")
    parser.add_argument("--micro-batch", type=int, default=12_288, help="tokens")
    parser.add_argument("--states", choices=["float32", "8bit"], default="8bit")
    parser.add_argument("--recompute", action="store_true")
    parser.add_argument("--updates", type=int, default=3, help="timed in a turn, after one that is not")
    parser.add_argument("--turns", type=int, default=2, help="of each trainer")
    return parser.parse_args()


def work(rank: int, options: argparse.Namespace, folder: Path) -> None:
    device, size = own_device(options.device, rank), options.ranks
    if device.type == "cpu":
        torch.set_num_threads(max(1, torch.get_num_threads() // size))
    store = dist.FileStore(str(folder / "store"), size)
    with on_this_host(), joined(rank, size, store, device, context=options.context) as world:
        plain: list[Figures] = []
        sharded: list[Figures] = []
        for _ in range(options.turns):
            if rank == 0:
                plain.append(measure(ONE_PROCESS, device, options))
            world.all_gather(None)
            sharded.append(measure(world, device, options))
        if rank == 0:
            result = {
                "device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
                "torch": torch.__version__,
                "shape": options.shape,
                "ranks": size,
                "context": options.context,
                "plain": fastest(plain),
                "sharded": fastest(sharded),
            }
            result["cost"] = round(result["sharded"]["seconds"] / result["plain"]["seconds"] - 1, 4)
        if options.context > 1:
            alone = long_pass(ONE_PROCESS, device, options) if rank == 0 else None
            world.all_gather(None)
            shared = world.all_gather(long_pass(world, device, options))
            if rank == 0:
                result["long_sequence"] = {"alone": alone, "shared": shared[: options.context]}
        if rank == 0:
            (folder / "result.json").write_text(json.dumps(result))


def fastest(turns: list[Figures]) -> Figures:
    return min(turns, key=lambda figures: figures["seconds"])


def measure(world: World, device: torch.device, options: argparse.Namespace) -> Figures:
    """Of one trainer, made anew."""
    model = random_model(world, device, options)
    settings = Optimizer(states=options.states)
    learner = Learner(name="policy", model=model, optimizer=build_optimizer(model, settings, 0, world))
    sequences = make_sequences(model.shape, options)
    weights = token_weights([sum(each.loss_mask) for each in sequences], "token-mean", options.longest)
    batches = [*pack_share(sequences, weights, world, max_tokens=options.micro_batch, device=device)]
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    update = partial(train_step, learner, batches, partial(token_loss, loss=loss), learning_rate=1e-6)
    first = update()
    seconds = min(timed(update, world, device) for _ in range(options.updates))
    gathering = timed(partial(gather_all, learner), world, device)
    tokens = world.data.sum(sum(batch.ids_T.numel() for batch in batches))
    figures = {
        "seconds": round(seconds, 5),
        "tokens_per_second": round(tokens / seconds),
        "micro_batches": len(batches),
        "gather_seconds": round(gathering, 5),  # of all weights to rank 0, as for its engines
        "loss": first["loss"],
        "grad_norm": first["grad_norm"],
        **balance_metrics([batches], world),
    }
    if device.type == "cuda":
        figures["peak_gb"] = round(torch.cuda.max_memory_allocated() / 1e9, 3)
    if world.rank == 0:
        print("plain" if world.mesh is None else "sharded", figures, flush=True)
    del model, learner, update, batches
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
    return figures


def random_model(world: World, device: torch.device, options: argparse.Namespace) -> Decoder:
    """On a GPU drawn there: a processor takes a minute for seven billion numbers."""
    shape = TINY if options.shape == "tiny" else SHAPES[options.shape]
    arrange = arrangement(None, world)
    if device.type == "cpu":
        model = build_model(shape, seed=0, device=device, arrange=arrange)
    else:
        model = empty_model(shape, dtype=torch.bfloat16, device=device, arrange=arrange)
        torch.manual_seed(0)
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                local(parameter).fill_(1.0) if "norm" in name else local(parameter).normal_(0.0, 0.02)
    if options.recompute:
        model.recompute_blocks()
    return model


def long_pass(world: World, device: torch.device, options: argparse.Namespace) -> Figures:
    """One sequence, which a context group shares: what each rank keeps of it for the backward pass."""
    model = random_model(world, device, options)
    numbers = torch.randint(
        model.shape.vocab_size, (options.long,), generator=torch.Generator().manual_seed(0)
    )
    sequence = TrainSequence(ids=numbers.tolist(), loss_mask=[0] + [1] * (options.long - 1))
    room = -(-options.long // context_size(world))
    batches = [*pack_share([sequence], [1 / options.long], world, max_tokens=room, device=device)]
    own = batches[0].slice
    saved, total = kept_bytes(model, batches[0])
    total.backward()
    figures = {
        "tokens": options.long if own is None else own.tokens.stop - own.tokens.start,
        "kept_mb": round(saved / 1e6, 2),
        "loss": total.item(),
    }
    if world.rank == 0:
        print("long sequence:", "alone" if world.mesh is None else "shared", figures, flush=True)
    return figures


def kept_bytes(model: Decoder, batch: PackedBatch) -> tuple[int, torch.Tensor]:
    """Of a forward pass, and the loss that it ends in."""
    if batch.ids_T.is_cuda:
        before = torch.cuda.memory_allocated()
        loss = token_loss(model, batch, loss=sft_loss).loss
        return torch.cuda.memory_allocated() - before, loss
    weights = {local(weight).untyped_storage().data_ptr() for weight in model.parameters()}
    saved: dict[int, torch.Tensor] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        saved[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    with saved_tensors_hooks(keep, lambda tensor: tensor):
        loss = token_loss(model, batch, loss=sft_loss).loss
    # gathered weights are let go of by now, and have no bytes
    return sum(
        tensor.untyped_storage().nbytes() for place, tensor in saved.items() if place not in weights
    ), loss


def gather_all(learner: Learner[Any]) -> None:
    for weight in learner.model.parameters():
        gather_whole(weight, to=0)


def timed(act: Any, world: World, device: torch.device) -> float:
    """All ranks begin and end together."""
    world.all_gather(None)
    if device.type == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    act()
    if device.type == "cuda":
        torch.cuda.synchronize()
    world.all_gather(None)
    return time.perf_counter() - start


def loss(logprobs_M: torch.Tensor, batch: PackedBatch) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    return policy_loss(logprobs_M, batch, Loss())


if __name__ == "__main__":
    main()
