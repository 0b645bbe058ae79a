"""Updates that a test makes in one process and on several ranks."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from typing import Any, get_args

import numpy as np
import torch
from small_training import SHAPE, VOCABULARY, WITH_EXPERTS, small_model, small_sequences
from torch import Tensor

from foresail.algorithms.advantages import ADVANTAGES
from foresail.algorithms.aggregation import Aggregation, token_weights
from foresail.algorithms.batch_losses import KINDS, sft_loss
from foresail.algorithms.preference_losses import preference_loss
from foresail.algorithms.unpaired_losses import unpaired_loss
from foresail.model.adapters import Adapters
from foresail.model.decoder import Decoder
from foresail.model.lora import add_pairs
from foresail.model.router import CHOSEN_EXPERTS
from foresail.model.shards import local, shard
from foresail.recipe.stages.teacher import DivergenceKind, Teacher
from foresail.recipe.tables.parts import Critic as CriticSettings
from foresail.recipe.tables.parts import Lora, Optimizer
from foresail.recipe.tables.policy_loss import Loss
from foresail.recipe.tables.preferences import PreferenceLoss, UnpairedLoss
from foresail.records import Group, Problem, Sample, TrainAnswer, TrainPair, TrainSequence, Verdict
from foresail.train.auxiliary.mtp import MtpLoss
from foresail.train.learner import Learner
from foresail.train.optim.gradients import GradientSums
from foresail.train.policy.critic import Critic
from foresail.train.policy.loss import PolicyTerms, batch_loss
from foresail.train.policy.policy_update import add_logprobs, choose_top_entropy
from foresail.train.policy.turn_credit import uniform_advantages
from foresail.train.references.reference import with_reference
from foresail.train.stages.distill import exact_loss, sampled_loss
from foresail.train.stages.kto import estimate_kl, mismatch_answers
from foresail.train.update.batches import compute_advantages, pack_groups, pack_sequences, plain_sequences
from foresail.train.update.scoring import score_sequences
from foresail.train.update.split import pack_share
from foresail.train.update.split_answers import pack_answer_share
from foresail.train.update.step import LossOfBatch, NonFiniteLoss, token_loss, train_step
from foresail.world import World

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


def with_environment(group: Group) -> Group:
    """What stands in the middle of a long answer is said by an environment, and another turn follows."""

    def answered(one: Sample) -> Sample:
        first = one.loss_mask.index(1)
        length = len(one.ids) - first
        if length < 4:
            return one
        said = range(first + length // 3, first + 2 * length // 3)
        return replace(
            one,
            loss_mask=[0 if place in said else mask for place, mask in enumerate(one.loss_mask)],
            turns=[int(place >= said.start) for place in range(len(one.ids))],
        )

    return replace(group, samples=tuple(map(answered, group.samples)))


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
    return metrics | gather_whole(world, optimizer.kept)


def gather_whole(world: World, shares: dict[str, Tensor]) -> dict[str, Tensor]:
    """Of every name the whole, from the rows of all ranks. Arrays are quicker to pickle than tensors."""
    found = world.all_gather({name: share.numpy() for name, share in shares.items()})
    return {name: torch.from_numpy(np.concatenate([of_rank[name] for of_rank in found])) for name in shares}


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
    entropy_weight: float = 0.0,
    **model: bool,
) -> Found:
    loss, made = loss or Loss(), make_groups(seed, groups, samples)
    made = [*map(with_experts, made)] if replay else made
    made = [*map(with_environment, made)] if loss.echo_weight else made
    policy = make_model(world, **model)
    batches = pack_groups(
        made,
        uniform_advantages(made, compute_advantages(made, advantage)),
        version=None,
        aggregation=aggregation,
        max_new_tokens=9,
        micro_batch_tokens=micro_batch_tokens,
        device=CPU,
        with_observed=loss.echo_weight > 0,
        world=world,
    )
    old = policy if loss.old_logprobs == "trainer" else None
    reference = make_model(world, seed=1).requires_grad_(False) if loss.kl_weight else None
    batches = [add_logprobs(batch, 0.9, old=old, reference=reference) for batch in batches]
    if loss.ranks_entropy:
        batches = choose_top_entropy(batches, loss.top_entropy_quantile, world.data)
    terms = PolicyTerms(settings=loss, on_policy=True, entropy_weight=entropy_weight)
    measured = partial(batch_loss, terms=terms, temperature=0.9)
    return find(world, policy, batches, measured, clip_norm=clip_norm)


def sft_update(world: World, **model: bool) -> Found:
    sequences = small_sequences()
    weights = token_weights([sum(sequence.loss_mask) for sequence in sequences], "token-mean", 40)
    batches = [*pack_share(sequences, weights, world, max_tokens=16, device=CPU)]
    return find(world, make_model(world, **model), batches, partial(token_loss, loss=sft_loss))


def pair_update(world: World, loss: PreferenceLoss, *, pairs: int = 5, **model: bool) -> Found:
    """Of preference pairs, some answers without a prompt that both share."""
    numbers = random.Random(11)

    def sequence(prompt: list[int]) -> TrainSequence:
        one = sample(numbers, prompt, numbers.randint(1, 9))
        return TrainSequence(ids=one.ids, loss_mask=one.loss_mask)

    made = []
    for number in range(pairs):
        prompt = [numbers.randrange(VOCABULARY) for _ in range(numbers.randint(1, 8))]
        other = [*prompt] if number % 3 else [(prompt[0] + 1) % VOCABULARY, *prompt[1:]]
        refs = (numbers.uniform(-20, -5), numbers.uniform(-20, -5))
        made.append(TrainPair(chosen=sequence(prompt), rejected=sequence(other), ref_logprobs=refs))
    batches = [*pack_answer_share(made, world, max_tokens=40, device=CPU)]
    measured = partial(token_loss, loss=partial(preference_loss, settings=loss))
    return find(world, make_model(world, **model), batches, measured)


def judged_update(world: World, loss: UnpairedLoss, *, count: int = 7, **model: bool) -> Found:
    """Of answers judged alone, with how far the policy is from the reference anyway."""
    numbers = random.Random(12)
    made = []
    for number in range(count):
        one = sample(
            numbers, [numbers.randrange(VOCABULARY) for _ in range(numbers.randint(1, 8))], 1 + number
        )
        sequence = TrainSequence(ids=one.ids, loss_mask=one.loss_mask)
        made.append(TrainAnswer(answer=sequence, desirable=numbers.random() < 0.5))
    made = mismatch_answers(made, 20) if loss.estimates_kl else made
    made = with_reference(made, [(numbers.uniform(-30, -5), numbers.uniform(-60, -40)) for _ in made])
    policy = make_model(world, **model)
    score = partial(score_sequences, policy, temperature=1.0, micro_batch_tokens=30, device=CPU, world=world)
    kl = estimate_kl(score, made)
    assert (kl > 0) == loss.estimates_kl
    batches = [*pack_answer_share(made, world, max_tokens=30, device=CPU)]
    measured = partial(token_loss, loss=partial(unpaired_loss, settings=loss, kl=kl))
    return find(world, policy, batches, measured) | {"kl": kl}


def mtp_update(world: World) -> Found:
    """Of two MTP layers beside the model; without the figures that look at some tokens of a micro-batch."""
    sequences = small_sequences()
    weights = token_weights([sum(sequence.loss_mask) for sequence in sequences], "token-mean", 40)
    batches = [*pack_share(sequences, weights, world, max_tokens=16, device=CPU)]
    loss = partial(token_loss, loss=sft_loss, mtp=MtpLoss(weight=0.3))
    found = find(world, make_model(world, mtp=2, recompute=True), batches, loss)
    return {name: value for name, value in found.items() if not name.startswith("mtp/top1")}


def distill_update(world: World, divergence: str, **model: bool) -> Found:
    """A student with a teacher of another width, whose head has rows that the student's has not."""
    batches = pack_sequences(
        plain_sequences(make_groups(2)),
        aggregation="token-mean",
        max_new_tokens=9,
        micro_batch_tokens=40,
        device=CPU,
        world=world,
    )
    settings = Teacher(path="", divergence=divergence)  # type: ignore[arg-type]
    loss = sampled_loss if divergence == "sampled" else exact_loss
    measured = partial(loss, teacher=make_teacher(world), settings=settings, temperature=0.9)
    return find(world, make_model(world, **model), batches, measured)


@cache
def make_teacher(world: World) -> Decoder:
    shape = SHAPE.model_copy(update={"hidden_size": 20, "vocab_size": VOCABULARY + 2})
    model = small_model(seed=4, shape=shape).requires_grad_(False)
    if world.mesh is not None:
        shard(model, world.mesh)
    return model


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
    measured = partial(batch_loss, terms=PolicyTerms(settings=Loss(), on_policy=False), temperature=1.0)
    learned = {f"critic {name}": local(weight).detach() for name, weight in critic.model.named_parameters()}
    return metrics | gather_whole(world, learned) | find(world, policy, appraised[0], measured)


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
    """One case for every loss, every aggregation, every estimator, each option, and some of all at random."""
    for kind in KINDS:
        yield f"{kind} token-mean", partial(policy_update, loss=Loss(kind=kind))  # type: ignore[arg-type]
    for aggregation in get_args(Aggregation)[1:]:  # whose weights know nothing of the loss
        yield f"clip {aggregation}", partial(policy_update, aggregation=aggregation)
    for advantage in ADVANTAGES:
        yield advantage, partial(policy_update, advantage=advantage, seed=1)
    yield "dual clip", partial(policy_update, loss=Loss(dual_clip=3.0))
    yield "importance", partial(policy_update, loss=Loss(importance_cap=2.0, old_logprobs="trainer"))
    for mask in ("token", "sequence", "sequence_mean"):
        masked = Loss(importance_mask=mask, importance_range=(0.2, 4.0), old_logprobs="trainer")
        yield f"importance mask, {mask}", partial(policy_update, loss=masked)
    product = Loss(importance_cap=2.0, importance_level="sequence", old_logprobs="trainer")
    yield "importance of samples", partial(policy_update, loss=product)
    yield "off-policy mask", partial(policy_update, loss=Loss(off_policy_mask_threshold=0.1))
    yield "top entropy", partial(policy_update, loss=Loss(top_entropy_quantile=0.2, old_logprobs="trainer"))
    yield "entropy bonus", partial(policy_update, entropy_weight=0.3, aggregation="seq-mean-token-mean")
    yield "what an environment says", partial(policy_update, loss=Loss(echo_weight=0.2))
    yield "KL", partial(policy_update, loss=Loss(kl_weight=0.1))
    yield "unbiased KL", partial(policy_update, loss=Loss(kl_weight=0.1, kl="k3_unbiased"))
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
    settings = PreferenceLoss(beta=0.3, label_smoothing=0.1, sft_weight=0.5)
    yield "pairs sigmoid", partial(pair_update, loss=settings)
    yield "pairs ipo", partial(pair_update, loss=PreferenceLoss(kind="ipo"), lora=True)
    yield "one pair, experts", partial(pair_update, loss=PreferenceLoss(), pairs=1, experts=True)
    weighed = UnpairedLoss(beta=0.3, desirable_weight=1.5, undesirable_weight=0.7)
    yield "judged kto", partial(judged_update, loss=weighed)
    yield "judged apo, pairs", partial(judged_update, loss=UnpairedLoss(kind="apo_zero_unpaired"), lora=True)
    yield "two judged, experts", partial(judged_update, loss=UnpairedLoss(), count=2, experts=True)
    yield "MTP", mtp_update
    for divergence in get_args(DivergenceKind):
        yield f"distilled {divergence}", partial(distill_update, divergence=divergence)
    yield "distilled with experts", partial(distill_update, divergence="reverse", experts=True)
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
    """What context groups compute as well: on two ranks all but the other aggregations, else one of a kind."""
    names = [name for name, _ in cases()]
    if size != 2:
        every = [
            *KINDS,
            "KL",
            "top entropy",
            "what an environment says",
            "SFT with pairs",
            "SFT with experts",
            "pairs sigmoid",
            "judged kto",
            "one pair, experts",
            "replayed experts",
            "critic",
            "distilled",
            "one sample",
            "scores",
            "culprit",
            "random",
        ]
        return [next(name for name in names if name.startswith(kind)) for kind in every]
    # MTP layers want whole sequences
    return [name for name in names if not name.endswith(("MTP", *get_args(Aggregation)[1:]))]
