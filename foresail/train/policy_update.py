"""From judged groups to better weights: the policy's share of a step of RL.

    metrics, credits = session.everywhere(update_policy, groups, step)

Advantages, packed micro-batches, log-probabilities to measure against, optimiser updates. A critic, where there is
one, learns here too, from the same batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from foresail.algorithms.batch_losses import policy_loss
from foresail.algorithms.mismatch import mismatch, split_by_age
from foresail.model.decoder import Decoder
from foresail.recipe import parts
from foresail.recipe.rl import Rl
from foresail.records import Group, PackedBatch
from foresail.train.critic import Critic, join
from foresail.train.dealing import describe_shares
from foresail.train.mtp import MtpLoss, mtp_at
from foresail.train.rl_metrics import describe_advantages, describe_lag, mean_over_updates
from foresail.train.scoring import score_sequences
from foresail.train.step import BatchLoss, named, replayed, score_tokens, token_logprobs, train_step
from foresail.train.step_updates import describe_work, in_turn
from foresail.train.teacher import TeacherTerm, teacher_term
from foresail.train.trainer import Trainer
from foresail.train.turn_credit import Credits, describe_credit, share_credit
from foresail.train.updates import compute_advantages, pack_groups, split


def update_policy(
    trainer: Trainer[Rl], groups: Sequence[Group], step: int
) -> tuple[dict[str, float], Credits]:
    """The step's optimiser updates, each over its own share of the groups. Metrics are means over updates.

    `step` is the curriculum's. Every rank has all groups, and computes its share of the sequences.
    """
    recipe = trainer.recipe.at(step)
    policy, temperature = trainer.policy, recipe.sampling.temperature
    built = build_updates(trainer, groups, recipe, trainer.critic)
    updates, metrics, credits = built.batches, built.metrics, built.credits
    metrics |= describe_shares(updates, trainer.world)
    metrics |= describe_lag(groups, trainer.progress.step) if recipe.draws_stale_tokens else {}
    if trainer.progress.step < recipe.critic_only_steps:
        return metrics, credits
    metrics |= describe_work(trainer, updates * recipe.passes_per_step)
    asks_trainer = recipe.loss.old_logprobs == "trainer" and not built.by_trainer
    old = policy.model if asks_trainer else None
    updates = [
        [add_logprobs(batch, temperature, old=old, reference=trainer.reference) for batch in batches]
        for batches in updates
    ]
    taught = teacher_term(trainer.teacher, recipe.teacher, temperature)
    if taught is not None and taught.is_sampled:
        updates = [[taught.add_to_advantages(batch) for batch in batches] for batches in updates]
    mtp, results = mtp_at(recipe.mtp, trainer.progress.step / recipe.steps), list[dict[str, float]]()
    for batches, rate in in_turn(trainer, updates * recipe.passes_per_step):
        first = not results
        loss = partial(batch_loss, settings=recipe.loss, temperature=temperature, on_policy=first, mtp=mtp)
        if taught is not None and not taught.is_sampled:
            loss = partial(taught_loss, taught=taught, settings=recipe.loss, on_policy=first, mtp=mtp)
        found = train_step(policy, batches, loss, learning_rate=rate)
        results.append(named("actor", {"pg_loss": found.pop("loss"), **found, "lr": rate}))
    metrics |= split_by_age(mean_over_updates(results)) | {"actor/updates": len(results)}
    return metrics, credits


@dataclass(frozen=True, kw_only=True)
class Updates:
    """Those of one pass as packed micro-batches; `by_trainer`: their old log-probabilities are its own already."""

    batches: list[list[PackedBatch]]
    metrics: dict[str, float]
    credits: Credits = ()
    by_trainer: bool = False


def build_updates(
    trainer: Trainer[Rl], groups: Sequence[Group], recipe: Rl, critic: Critic | None
) -> Updates:
    """Every token with its advantage: what its sample did better than its siblings, or than a critic expected of
    it, which then learns from the same batches.
    """
    pack_part = partial(
        pack_groups,
        version=trainer.progress.step if recipe.draws_stale_tokens else None,
        aggregation=recipe.loss.aggregation,
        max_new_tokens=recipe.sampling.max_new_tokens,
        micro_batch_tokens=recipe.micro_batch_tokens,
        device=trainer.device,
        by_turn=recipe.credit.kind == "turn_gae",
        world=trainer.world,
    )
    rows = split(len(groups), recipe.parts_per_pass)
    shares = [[groups[i] for i in row] for row in rows]
    if critic is None:
        advantages_GN = compute_advantages(groups, recipe.advantage.kind)
        shared = share_credit(
            groups,
            advantages_GN,
            recipe.credit,
            step=trainer.progress.step + 1,
            tokenizer=trainer.tokenizer,
            max_length=trainer.policy.model.shape.max_context,
            score=partial(
                score_sequences,
                trainer.policy.model,
                temperature=recipe.sampling.temperature,
                micro_batch_tokens=recipe.micro_batch_tokens,
                device=trainer.device,
                world=trainer.world,
            ),
        )
        # a student has read the samples without the engine's experts
        by_student = recipe.loss.old_logprobs == "trainer" and not recipe.engine.replay_routing
        old = shared.logprobs if by_student else None
        return Updates(
            batches=[
                pack_part(
                    share,
                    [shared.advantages[i] for i in row],
                    old_logprobs=None if old is None else [old[i] for i in row],
                )
                for share, row in zip(shares, rows, strict=True)
            ],
            metrics=describe_advantages(advantages_GN) | describe_credit(shared.credits),
            credits=shared.credits,
            by_trainer=old is not None,
        )
    updates, metrics = critic.appraise([pack_part(share, None) for share in shares])
    metrics |= describe_advantages(join(updates, "advantages_M"), trainer.world.data)
    metrics |= critic.learn(
        updates * recipe.passes_per_step,
        before=trainer.progress.step * recipe.updates_per_step,
        total=recipe.steps * recipe.updates_per_step,
    )
    return Updates(batches=updates, metrics=metrics)


@torch.no_grad()
def add_logprobs(
    batch: PackedBatch, temperature: float, *, old: Decoder | None, reference: Decoder | None
) -> PackedBatch:
    """The micro-batch with what the loss measures the policy against, before any update changes it."""
    if old is not None:
        found = token_logprobs(old, batch, temperature, replayed(old, batch))
        batch = replace(batch, old_logprobs_M=found[0])
    if reference is not None:
        batch = replace(batch, ref_logprobs_M=token_logprobs(reference, batch, temperature)[0])
    return batch


def batch_loss(
    model: Decoder,
    batch: PackedBatch,
    *,
    settings: parts.Loss,
    temperature: float,
    on_policy: bool,
    mtp: MtpLoss | None = None,
) -> BatchLoss:
    """The recipe's loss; before the first update it also measures how far engine and trainer are apart."""
    route = replayed(model, batch)
    (logprobs_M, entropy_M), *side = score_tokens(model, batch, temperature, route, mtp)
    loss, terms = policy_terms(logprobs_M, batch, settings, on_policy=on_policy)
    return BatchLoss(loss, {"entropy": entropy_M.sum(), **terms}, *side)


def taught_loss(
    model: Decoder,
    batch: PackedBatch,
    *,
    taught: TeacherTerm,
    settings: parts.Loss,
    on_policy: bool,
    mtp: MtpLoss | None = None,
) -> BatchLoss:
    """The same, and by its weight the divergence from a teacher."""
    compared, *side = taught.compare(model, batch, route=replayed(model, batch), mtp=mtp)
    loss, terms = policy_terms(compared.logprobs_M, batch, settings, on_policy=on_policy)
    loss = loss + taught.settings.weight * (batch.weights_M * compared.divergence_M).sum()
    terms[f"distill/{taught.settings.divergence}"] = compared.divergence_M.detach().sum()
    return BatchLoss(loss, {"entropy": compared.entropy_M.sum(), **terms}, *side)


def policy_terms(
    logprobs_M: Tensor, batch: PackedBatch, settings: parts.Loss, *, on_policy: bool
) -> tuple[Tensor, dict[str, Tensor]]:
    loss, terms = policy_loss(logprobs_M, batch, settings)
    if on_policy and batch.rollout_logprobs_M is not None:
        terms |= mismatch(logprobs_M, batch.rollout_logprobs_M, batch.fresh_M)
    return loss, terms
