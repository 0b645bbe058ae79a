"""Updates that a test makes in one process and on several ranks, each of which runs `work` in its own process."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from itertools import accumulate
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
import torch.distributed as dist
from small_training import SHAPE, VOCABULARY, WITH_EXPERTS, small_model, small_sequences
from torch import Tensor

from foresail.algorithms.advantages import ADVANTAGES
from foresail.algorithms.aggregation import Aggregation, token_weights
from foresail.algorithms.batch_losses import KINDS, sft_loss
from foresail.data.packing import Segment, pack_batch
from foresail.model.adapters import Adapters
from foresail.model.attention import PackedAttention
from foresail.model.context import ExchangedAttention, of_members
from foresail.model.decoder import Decoder
from foresail.model.device import choose_library
from foresail.model.hf import load_model, save_model
from foresail.model.lora import add_pairs
from foresail.model.output import Output
from foresail.model.router import CHOSEN_EXPERTS, routers_of
from foresail.model.shards import first_row, gather_whole, local, own_rows, put_rows, shard
from foresail.recipe.cluster import head_mistakes
from foresail.recipe.parts import Critic as CriticSettings
from foresail.recipe.parts import Lora, Loss, Optimizer
from foresail.records import Group, Problem, Sample, TrainSequence, Verdict
from foresail.train.critic import Critic
from foresail.train.dealing import pack_share
from foresail.train.expert_load import ExpertLoad
from foresail.train.gradients import GradientSums
from foresail.train.learner import Learner, arrangement
from foresail.train.mtp import MtpLoss
from foresail.train.optimizer import build_optimizer
from foresail.train.policy_update import add_logprobs, batch_loss
from foresail.train.ranks import ProcessWorld, joined
from foresail.train.scoring import score_sequences
from foresail.train.step import LossOfBatch, NonFiniteLoss, run_packed, token_loss, train_step
from foresail.train.turn_credit import uniform_advantages
from foresail.train.updates import compute_advantages, pack_groups
from foresail.world import ContextGroup, World

CPU = torch.device("cpu")
LORA = Lora(rank=2, alpha=8.0)
Found = dict[str, Any]  # figures, and the whole gradients by the name of their weight


def sample(numbers: random.Random, prompt: list[int], length: int) -> Sample:
    ids = prompt + [numbers.randrange(VOCABULARY) for _ in range(length)]
    mask = [0] * len(prompt) + [1] * length
    return Sample(
        ids=ids,
        loss_mask=mask,
        logprobs=[-3 + numbers.gauss(0, 0.5) if inside else 0.0 for inside in mask],
        versions=[0] * len(ids),
        turns=[0] * len(ids),
        finish="stop",
    )


def with_experts(group: Group) -> Group:
    """Each token with two of five experts in each of two layers, as an engine would have recorded them; the last
    token's are not known. Siblings have the same for their prompt.
    """

    def recorded(one: Sample) -> Sample:
        rows: list[Any] = []
        for place in range(len(one.ids) - 1):
            numbers = random.Random(str(one.ids[: place + 1]))
            rows.append(np.array([*numbers.sample(range(5), 2), *numbers.sample(range(5), 2)], np.int16))
        return replace(one, side={CHOSEN_EXPERTS: [*rows, None]})

    return replace(group, samples=tuple(map(recorded, group.samples)))


def make_groups(seed: int, count: int = 4, samples: int = 3) -> list[Group]:
    """Prompts of 1 to 6 tokens, answers of 1 to 9, rewards of all sizes."""
    numbers = random.Random(seed)
    groups = []
    for number in range(count):
        prompt = [numbers.randrange(VOCABULARY) for _ in range(numbers.randint(1, 6))]
        groups.append(
            Group(
                problem=Problem(id=f"problem {number}", prompt=(), answer=""),
                samples=tuple(sample(numbers, prompt, numbers.randint(1, 9)) for _ in range(samples)),
                verdicts=(Verdict(status="wrong", score=0.0),) * samples,
                rewards=tuple(numbers.gauss(0, 1) for _ in range(samples)),
            )
        )
    return groups


@cache
def make_model(
    world: World,
    *,
    lora: bool = False,
    recompute: bool = False,
    experts: bool = False,
    mtp: int = 0,
    seed: int = 0,
) -> Decoder:
    """Cases share it: gradients are looked at, and weights stay as they are."""
    shape = WITH_EXPERTS if experts else SHAPE
    model = small_model(seed=seed, shape=shape.model_copy(update={"mtp": mtp}))
    if lora:
        add_pairs(model, LORA)
    if world.mesh is not None:
        shard(model, world.mesh)
    if lora:
        Adapters(model, LORA, base=None, seed=3)
    if recompute:
        model.recompute_blocks()
    return model


class KeptGradients:
    """In the place of an optimiser: clips, and keeps the gradients instead of using them."""

    def __init__(self, model: torch.nn.Module, world: World, clip_norm: float) -> None:
        trained = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
        self.names, self.limit = [*trained], clip_norm
        self.gradients = GradientSums([*trained.values()], world)
        self.kept: dict[str, Tensor] = {}

    def clip(self) -> float:
        return self.gradients.clip(self.limit)

    def update(self, learning_rate: float) -> None:
        for number, name in enumerate(self.names):
            if (gradient := self.gradients[number]) is not None:
                self.kept[name] = gradient.clone()
        self.zero_grad()

    def zero_grad(self) -> None:
        self.gradients.zero_grad()


def find(world: World, model: Any, batches: list[Any], loss: LossOfBatch, *, clip_norm: float = 1e9) -> Found:
    """The update's figures and gradients."""
    optimizer: Any = KeptGradients(model, world, clip_norm)
    metrics = train_step(
        Learner(name="policy", model=model, optimizer=optimizer), batches, loss, learning_rate=1
    )
    shares = world.gather(optimizer.kept)
    return metrics | {name: torch.cat([share[name] for share in shares]) for name in optimizer.kept}


def policy_update(
    world: World,
    *,
    seed: int = 0,
    advantage: str = "grpo",
    aggregation: Aggregation = "token-mean",
    loss: Loss | None = None,
    groups: int = 4,
    samples: int = 3,
    micro_batch_tokens: int = 40,
    clip_norm: float = 1e9,
    replay: bool = False,
    **model: bool,
) -> Found:
    loss, made = loss or Loss(), make_groups(seed, groups, samples)
    made = [*map(with_experts, made)] if replay else made
    policy = make_model(world, **model)
    batches = pack_groups(
        made,
        uniform_advantages(made, compute_advantages(made, advantage)),
        version=None,
        aggregation=aggregation,
        max_new_tokens=9,
        micro_batch_tokens=micro_batch_tokens,
        device=CPU,
        world=world,
    )
    old = policy if loss.old_logprobs == "trainer" else None
    reference = make_model(world, seed=1).requires_grad_(False) if loss.kl_weight else None
    batches = [add_logprobs(batch, 0.9, old=old, reference=reference) for batch in batches]
    measured = partial(batch_loss, settings=loss, temperature=0.9, on_policy=True)
    return find(world, policy, batches, measured, clip_norm=clip_norm)


def sft_update(world: World, **model: bool) -> Found:
    sequences = small_sequences()
    weights = token_weights([sum(sequence.loss_mask) for sequence in sequences], "token-mean", 40)
    batches = [*pack_share(sequences, weights, world, max_tokens=16, device=CPU)]
    return find(world, make_model(world, **model), batches, partial(token_loss, loss=sft_loss))


def mtp_update(world: World) -> Found:
    """Of two MTP layers beside the model; without the figures that look at some tokens of a micro-batch."""
    sequences = small_sequences()
    weights = token_weights([sum(sequence.loss_mask) for sequence in sequences], "token-mean", 40)
    batches = [*pack_share(sequences, weights, world, max_tokens=16, device=CPU)]
    loss = partial(token_loss, loss=sft_loss, mtp=MtpLoss(weight=0.3))
    found = find(world, make_model(world, mtp=2, recompute=True), batches, loss)
    return {name: value for name, value in found.items() if not name.startswith("mtp/top1")}


def critic_update(world: World, kind: str, groups: int = 4) -> Found:
    """Two updates of a critic, for the first one's values are all 0; and the advantages that it found."""
    policy = make_model(world)
    trunk = policy if kind == "head" else make_model.__wrapped__(world, seed=1)  # one that learns
    settings = CriticSettings(kind=kind, lam=0.9, optimizer=Optimizer(lr=1e-3))  # type: ignore[arg-type]
    critic = Critic(trunk, settings, world=world)
    batches = pack_groups(
        make_groups(5, groups),
        None,
        version=None,
        aggregation="token-mean",
        max_new_tokens=9,
        micro_batch_tokens=24,
        device=CPU,
        world=world,
    )
    critic.learn(critic.appraise([batches])[0], before=0, total=2)
    appraised, metrics = critic.appraise([batches])
    metrics |= critic.learn(appraised, before=1, total=2)
    measured = partial(batch_loss, settings=Loss(), temperature=1.0, on_policy=False)
    learned = {
        f"critic {name}": torch.cat(world.gather(local(weight).detach().clone()))
        for name, weight in critic.model.named_parameters()
    }
    return metrics | learned | find(world, policy, appraised[0], measured)


def scored(world: World) -> Found:
    """Log-probabilities of sequences, one of them without a loss."""
    groups = make_groups(7, 3)
    sequences = [
        TrainSequence(ids=each.ids, loss_mask=each.loss_mask) for group in groups for each in group.samples
    ]
    sequences.append(TrainSequence(ids=[1, 2], loss_mask=[0, 0]))
    found = score_sequences(
        make_model(world), sequences, temperature=0.7, micro_batch_tokens=20, device=CPU, world=world
    )
    return {str(number): scores.nan_to_num(7.0) for number, scores in enumerate(found)}


def culprit(world: World) -> Found:
    """What is told of an update with one sequence that has no finite loss."""
    sequences = small_sequences()
    batches = [
        *pack_share(sequences, [0.1, 0.1, 0.1, float("inf"), 0.1, 0.1], world, max_tokens=16, device=CPU)
    ]
    try:
        find(world, make_model(world), batches, partial(token_loss, loss=sft_loss))
    except NonFiniteLoss as error:
        return {"finite": 0.0, "blamed": float("sequence 3" in str(error))}
    return {"finite": 1.0}


def cases() -> Iterator[tuple[str, Callable[[World], Found]]]:
    """One case for every loss with every aggregation, every estimator, each option, and some of all at random."""
    for kind in KINDS:
        for aggregation in get_args(Aggregation):
            name = f"{kind} {aggregation}"
            yield name, partial(policy_update, loss=Loss(kind=kind), aggregation=aggregation)  # type: ignore[arg-type]
    for advantage in ADVANTAGES:
        yield advantage, partial(policy_update, advantage=advantage, seed=1)
    yield "dual clip", partial(policy_update, loss=Loss(dual_clip=3.0))
    yield "importance", partial(policy_update, loss=Loss(importance_cap=2.0, old_logprobs="trainer"))
    yield "KL", partial(policy_update, loss=Loss(kl_weight=0.1))
    yield "recomputed", partial(policy_update, recompute=True)
    yield "low-rank pairs", partial(policy_update, lora=True)
    yield "clipped", partial(policy_update, clip_norm=0.01)
    yield "one sample", partial(policy_update, groups=1, samples=1, advantage="reinforce++")
    yield "SFT", sft_update
    yield "SFT with pairs", partial(sft_update, lora=True, recompute=True)
    yield "SFT with experts", partial(sft_update, experts=True)
    yield (
        "replayed experts",
        partial(policy_update, groups=2, samples=2, experts=True, replay=True, recompute=True),
    )
    yield "MTP", mtp_update
    yield "critic", partial(critic_update, kind="model")
    yield "critic's head", partial(critic_update, kind="head")
    yield "critic of few", partial(critic_update, kind="model", groups=1)
    yield "scores", scored
    yield "culprit", culprit
    numbers = random.Random(0)
    for seed in range(8):
        yield (
            f"random {seed}",
            partial(
                policy_update,
                seed=seed,
                advantage=numbers.choice([*ADVANTAGES]),
                aggregation=numbers.choice(get_args(Aggregation)),
                loss=Loss(kind=numbers.choice([*KINDS]), kl_weight=numbers.choice([0.0, 0.1])),  # type: ignore[arg-type]
                groups=numbers.randint(1, 6),
                samples=numbers.randint(2, 5),
                micro_batch_tokens=numbers.choice([15, 24, 50, 200]),
                recompute=numbers.random() < 0.3,
                lora=numbers.random() < 0.3,
            ),
        )


def shared_cases(size: int) -> list[str]:
    """Those that context groups compute as well: all but the other aggregations; on many ranks one of each kind."""
    names = [name for name, _ in cases()]
    if size > 2:
        every = [
            *KINDS,
            "KL",
            "SFT with pairs",
            "SFT with experts",
            "replayed experts",
            "critic",
            "one sample",
            "scores",
            "culprit",
            "random",
        ]
        return [next(name for name in names if name.startswith(kind)) for kind in every]
    # MTP layers want whole sequences
    return [name for name in names if not name.endswith(("MTP", *get_args(Aggregation)[1:]))]


# In the ranks' processes.


def work(rank: int, size: int, folder: Path) -> None:
    """All cases with context groups of every size, and what only ranks have; rank 0 writes what was found."""
    torch.set_num_threads(1)
    choose_library(torch.float32)
    with joined(rank, size, dist.FileStore(str(folder / "store"), size), CPU) as world:
        found: Found = {"cases": {1: {name: case(world) for name, case in cases()}}}
        found["world"] = totals(world)
        found["expert load"] = {1: expert_load(world)}
        for context in (2, 4):
            if size % context == 0:
                grouped = ProcessWorld(world.mesh, context)
                named = dict(cases())
                found["cases"][context] = {name: named[name](grouped) for name in shared_cases(size)}
                found["expert load"][context] = expert_load(grouped)
                members(grouped)
        rows(world)
        saved(world, folder / "saved")
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
        "shared": world.share(f"of {world.rank}"),
        "gathered": world.gather(world.rank),
    }


def members(world: ProcessWorld) -> None:
    """Of the world of context groups: totals over groups, what each member has; heads that cannot be divided."""
    data, context = world.data, world.context
    assert context is not None
    assert (data.size, data.rank) == (world.size // context.size, world.rank // context.size)
    assert data.sum(1.0) == data.sum(torch.ones(())) == data.size
    assert data.sum(float("inf")) == float("inf"), "no 0 x inf of those who are silent"
    assert data.max(data.rank) == data.size - 1
    assert data.gather(world.rank) == [*range(0, world.size, context.size)]
    value = torch.tensor(float(context.rank), requires_grad=True)
    seen = of_members(value, context.group)
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


def saved(world: World, folder: Path) -> None:
    """A model that ranks have saved together is read by them, each its rows."""
    model = make_model(world)
    save_model(model, folder, world=world)
    world.gather(None)
    again = load_model(folder, dtype=torch.float32, device=CPU, arrange=arrangement(None, world))
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
        world.gather(None)
        again = trained(world, kind, dtype, updates=0)
        again.load(folder / name)
        ours, theirs = learner.optimizer.state(), again.optimizer.state()  # type: ignore[union-attr]
        assert ours.keys() == theirs.keys()
        assert all(torch.equal(ours[key], theirs[key]) for key in ours), name
        found[name] = {key: world.gather(tensor) for key, tensor in ours.items()}
        found[name] |= {
            f"weight:{name}": world.gather(local(weight)) for name, weight in learner.model.named_parameters()
        }
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
