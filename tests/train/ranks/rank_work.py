"""What each rank does in a process of its own: all cases, and what only ranks have."""

from __future__ import annotations

import random
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from rank_cases import CPU, Found, KeptGradients, cases, make_model, shared_cases
from small_training import SHAPE, VOCABULARY, small_model, small_sequences
from torch import Tensor

from foresail.algorithms.batch_losses import sft_loss
from foresail.data.packing import Segment, pack_batch
from foresail.model.attention import PackedAttention
from foresail.model.context import ExchangedAttention, gather_over_group
from foresail.model.decoder import Decoder
from foresail.model.device import choose_library
from foresail.model.hf import load_model, save_model
from foresail.model.output import Output
from foresail.model.packed import run_packed
from foresail.model.router import routers_of
from foresail.model.shards import first_row, gather_whole, local, own_rows, put_rows, shard
from foresail.recipe.tables.cluster import head_mistakes
from foresail.recipe.tables.parts import Optimizer
from foresail.records import TrainSequence
from foresail.train.auxiliary.expert_load import ExpertLoad
from foresail.train.learner import TRAINER, Learner, arrangement, load_exact_weights, save_exact_weights
from foresail.train.optim.optimizer import build_optimizer
from foresail.train.ranks.process_world import ProcessWorld, joined
from foresail.train.update.split import pack_share
from foresail.train.update.step import token_loss, train_step
from foresail.world import ContextGroup, World


def work(rank: int, size: int, folder: Path) -> None:
    """All cases with context groups of every size, and what only ranks have; rank 0 writes what was found."""
    torch.set_num_threads(1)
    choose_library(torch.float32)
    with joined(rank, size, dist.FileStore(str(folder / "store"), size), CPU) as world:
        named, shared = dict(cases()), shared_cases(size)
        # what holds for two ranks, and for one case of each kind, holds for one rank and for four
        plain = named if size == 2 else shared
        found: Found = {"cases": {1: {name: named[name](world) for name in plain}}}
        found["world"] = totals(world)
        found["expert load"] = {1: expert_load(world)}
        for context in (2, 4):
            if size % context == 0:
                grouped = ProcessWorld(world.mesh, context)
                found["cases"][context] = {name: named[name](grouped) for name in shared}
                found["expert load"][context] = expert_load(grouped)
                members(grouped)
        rows(world)
        saved(world, folder / "saved")
        saved(world, folder / "saved with experts", experts=True)
        found["states"] = states(world, folder / "states")
        if rank == 0:
            torch.save(found, folder / "found.pt")


def expert_load(world: World) -> tuple[Tensor, Tensor]:
    """Tokens of every expert in an update, and where its correction is afterwards; slices are full, none is padded.

    Five sequences are too many for some ranks, and too few for others: those have idle micro-batches.
    """
    numbers = random.Random(3)
    sequences = [
        TrainSequence(ids=[numbers.randrange(VOCABULARY) for _ in range(8)], loss_mask=[0] * 3 + [1] * 5)
        for _ in range(5)
    ]
    model = make_model.__wrapped__(world, experts=True)
    load, kept = ExpertLoad(model, rate=0.01), KeptGradients(model, world, 1.0)
    learner: Any = Learner(name="policy", model=model, optimizer=kept, expert_load=load)  # type: ignore[arg-type]
    batches = [*pack_share(sequences, [0.04] * 5, world, max_tokens=8, device=CPU)]
    train_step(learner, batches, partial(token_loss, loss=sft_loss), learning_rate=1)
    taken = load.take()
    assert taken is not None and load.take() is None
    return taken, torch.cat([router.correction.detach() for router in routers_of(model)])


def totals(world: World) -> Found:
    """Sums and maxima of numbers and tensors; NaN stays NaN; rank 0's word; everybody's word."""
    mine = torch.tensor([1.0 + world.rank, float("nan") if world.rank == 1 else 0.0])
    return {
        "sum": world.sum(mine),
        "max": world.max(mine),
        "int": world.sum(world.rank + 1),
        "float": world.max(0.5 * world.rank),
        "shared": world.broadcast(f"of {world.rank}"),
        "gathered": world.all_gather(world.rank),
    }


def members(world: ProcessWorld) -> None:
    """Of the world of context groups: totals over groups, what each member has; heads that cannot be divided."""
    data, context = world.data, world.context
    assert context is not None
    assert (data.size, data.rank) == (world.size // context.size, world.rank // context.size)
    assert data.sum(1.0) == data.sum(torch.ones(())) == data.size
    assert data.sum(float("inf")) == float("inf"), "no 0 x inf of those who are silent"
    assert data.max(data.rank) == data.size - 1
    assert data.all_gather(world.rank) == [*range(0, world.size, context.size)]
    value = torch.tensor(float(context.rank), requires_grad=True)
    seen = gather_over_group(value, context.group)
    assert seen.tolist() == [*range(context.size)]
    seen.mean().backward()
    assert value.grad == 1 / context.size
    sequence, whole = TrainSequence(ids=[*range(8)], loss_mask=[0] * 8), Segment(number=0, start=0, end=8)
    batch = pack_batch([sequence], [0.0], [whole], CPU, context)
    side = run_packed(layer_with_side_losses, batch, lambda hidden, head: hidden)  # type: ignore[arg-type]
    assert (side.losses["balance"], side.statistics["load_max"]) == (3.5, 7)
    attend = ExchangedAttention(lambda layer, q, k, v: q, context.group)
    with pytest.raises(ValueError, match="does not divide the model's 3 attention heads"):
        attend(0, *(torch.zeros(2, heads, 4) for heads in (3, 3, 3)))
    numbers = random.Random(context.size)
    for _ in range(20):
        exchanged(context, numbers)


def layer_with_side_losses(ids_L: Tensor, *_: object) -> Output[Tensor]:
    return Output(ids_L, {"balance": ids_L.float().mean()}, {"load_max": ids_L.max()})


def exchanged(context: ContextGroup, numbers: random.Random) -> None:
    """Random heads and segments: this rank's slice is that of whole attention, and so are its gradients."""
    kv_heads = numbers.choice([1, 2, 3, 4, 8])
    heads = kv_heads * numbers.choice([1, 2, 3, 4, 8])
    if [*head_mistakes(context.size, heads, kv_heads)]:
        return
    lengths = [numbers.randint(1, 7) for _ in range(numbers.randint(1, 5))]
    lengths[-1] += -sum(lengths) % context.size
    parents = [-1, *([0] * (len(lengths) - 1))] if len(lengths) > 1 and numbers.random() < 0.5 else None
    starts_S1 = torch.tensor([0, *accumulate(lengths)])
    attend = PackedAttention(starts_S1, None if parents is None else torch.tensor(parents))
    generator = torch.Generator().manual_seed(numbers.randrange(999))
    size, each = sum(lengths), sum(lengths) // context.size
    own = slice(context.rank * each, (context.rank + 1) * each)
    whole = [torch.randn(size, h, 4, generator=generator) for h in (heads, kv_heads, kv_heads, heads)]
    found = [x[own].clone().requires_grad_() for x in whole[:3]]
    expected = [x.clone().requires_grad_() for x in whole[:3]]
    ours, theirs = ExchangedAttention(attend, context.group)(0, *found), attend(0, *expected)
    torch.testing.assert_close(ours, theirs[own], rtol=1e-5, atol=1e-6)
    ours.backward(whole[3][own])
    theirs.backward(whole[3])
    for mine, all_of_them in zip(found, expected, strict=True):
        torch.testing.assert_close(mine.grad, all_of_them.grad[own], rtol=1e-5, atol=2e-6)  # type: ignore[index]


def rows(world: World) -> None:
    """Weights of random sizes: what is put there by rows is what is gathered, on every rank."""
    numbers = random.Random(1)
    for _ in range(10):
        sizes = [numbers.randint(1, 9) for _ in range(numbers.randint(1, 3))]
        module = torch.nn.Module()
        module.weight = torch.nn.Parameter(torch.zeros(sizes))
        shard_alone(module, world)
        weight: Any = module.weight
        whole = torch.randn(sizes, generator=torch.Generator().manual_seed(numbers.randrange(99)))
        cut = numbers.randint(0, sizes[0])
        put_rows(weight, cut, whole[cut:])
        put_rows(weight, 0, whole[:cut])
        own = own_rows(weight, 0, sizes[0])
        assert (own.start, len(own)) == (first_row(weight), len(local(weight))) or not own
        for rank in range(world.size):
            gathered = gather_whole(weight, to=rank)
            assert gathered is None if rank != world.rank else torch.equal(gathered, whole)  # type: ignore[arg-type]


def shard_alone(module: torch.nn.Module, world: World) -> None:
    from foresail.model.shards import shard_module

    shard_module(module, world.mesh)


def saved(world: World, folder: Path, *, experts: bool = False) -> None:
    """A model that ranks have saved together is read by them, each its rows; so are the weights for going on."""
    model = make_model(world, experts=experts)
    save_model(model, folder, world=world)
    (folder / TRAINER).mkdir(exist_ok=True)
    save_exact_weights(model, folder, world)
    world.all_gather(None)
    again = load_model(folder, dtype=torch.float32, device=CPU, arrange=arrangement(None, world))
    for forget in (False, True):
        if forget:
            for weight in again.parameters():
                torch.nn.init.zeros_(local(weight))
            load_exact_weights(again, folder)
        for ours, theirs in zip(model.parameters(), again.parameters(), strict=True):
            assert torch.equal(local(ours), local(theirs))


STATES = (
    ("float32", torch.float32),
    ("float32", torch.bfloat16),
    ("8bit", torch.bfloat16),
    ("muon", torch.float32),
    ("muon", torch.bfloat16),
)
SETTINGS: dict[str, Optimizer] = {
    "float32": Optimizer(lr=1e-2),
    "8bit": Optimizer(lr=1e-2, states="8bit"),
    "muon": Optimizer(lr=1e-2, name="muon", embedding_rate=0.5),
}


def states(world: World, folder: Path) -> Found:
    """Optimisers after two updates, saved; as many ranks go on bit for bit."""
    folder.mkdir(exist_ok=True)
    found: Found = {}
    for kind, dtype in STATES:
        name = f"{kind}-{dtype}".replace("torch.", "")
        learner = trained(world, kind, dtype)
        learner.save(folder / name)
        world.all_gather(None)
        again = trained(world, kind, dtype, updates=0)
        again.load(folder / name)
        ours, theirs = learner.optimizer.state(), again.optimizer.state()  # type: ignore[union-attr]
        assert ours.keys() == theirs.keys()
        assert all(torch.equal(ours[key], theirs[key]) for key in ours), name
        weights = {f"weight:{key}": local(weight) for key, weight in learner.model.named_parameters()}
        gathered = world.all_gather(ours | weights)
        found[name] = {key: [of_rank[key] for of_rank in gathered] for key in gathered[0]}
    return found


def trained(world: World, kind: str, dtype: torch.dtype, updates: int = 2) -> Learner[Decoder]:
    model = small_model(dtype=dtype)
    if world.mesh is not None:
        shard(model, world.mesh)
    optimizer = build_optimizer(model, SETTINGS[kind], 5, world)
    learner = Learner(name="policy", model=model, optimizer=optimizer)
    for seed in range(updates):
        batches = [*pack_share(small_sequences(seed), [0.02] * 6, world, max_tokens=16, device=CPU)]
        train_step(learner, batches, partial(token_loss, loss=sft_loss), learning_rate=1e-2)
    return learner


assert SHAPE.tied, "the head's gradient comes to the embedding as well"
