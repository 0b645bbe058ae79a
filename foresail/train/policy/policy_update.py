"""The policy's optimiser updates in a step of RL, from judged groups.

    done = session.on_all_ranks(update_policy, groups, advantages, step)

Packed micro-batches, log-probabilities to measure against, optimiser updates. A critic, where there is
one, learns here too, from the same batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from foresail.algorithms.entropy import EntropyControl, adapt, bonus_weight, entropy_threshold
from foresail.algorithms.mismatch import split_by_age
from foresail.model.decoder import Decoder
from foresail.model.packed import replayed, token_logprobs
from foresail.recipe.stages.rl import Rl
from foresail.records import Group, PackedBatch
from foresail.train.auxiliary.mtp import mtp_at
from foresail.train.policy.critic import join
from foresail.train.policy.loss import PolicyTerms, batch_loss
from foresail.train.policy.metrics import advantage_metrics, lag_metrics, mean_over_updates
from foresail.train.policy.turn_credit import Credits, share_credit
from foresail.train.references.teacher import teacher_term
from foresail.train.trainer import Trainer
from foresail.train.update.batches import pack_groups, split
from foresail.train.update.loop import with_learning_rates, work_metrics
from foresail.train.update.scoring import scorer
from foresail.train.update.split import balance_metrics
from foresail.train.update.step import prefixed, train_step
from foresail.world import World


@dataclass(frozen=True, kw_only=True)
class PolicyUpdate:
    """The result of a step's updates: metrics, the credit of turns, and the state of an entropy bonus."""

    metrics: dict[str, float]
    credits: Credits = ()
    entropy: EntropyControl | None = None


def update_policy(
    trainer: Trainer[Rl], groups: Sequence[Group], advantages_GN: Tensor | None, step: int
) -> PolicyUpdate:
    """The step's optimiser updates, each over its own share of the groups. Metrics are means over updates.

    Without advantages a critic finds them. `step` is the curriculum's. Every rank has all groups, and computes its
    share of the sequences.
    """
    recipe = trainer.recipe.at(step)
    policy, temperature, entropy = trainer.policy, recipe.sampling.temperature, trainer.progress.entropy
    built = build_updates(trainer, groups, advantages_GN, recipe)
    updates, metrics, credits = built.batches, built.metrics, built.credits
    metrics |= balance_metrics(updates, trainer.world)
    metrics |= lag_metrics(groups, trainer.progress.step) if recipe.draws_stale_tokens else {}
    if trainer.progress.step < recipe.critic_only_steps:
        return PolicyUpdate(metrics=metrics, credits=credits, entropy=entropy)
    metrics |= work_metrics(trainer, updates * recipe.passes_per_step)
    # another forward pass, unless the one for the credit of turns has computed all that is needed
    computed = built.by_trainer and not recipe.loss.ranks_entropy
    old = policy.model if recipe.loss.old_logprobs == "trainer" and not computed else None
    updates = [
        [add_logprobs(batch, temperature, old=old, reference=trainer.reference) for batch in batches]
        for batches in updates
    ]
    if recipe.loss.ranks_entropy:
        share, data = recipe.loss.top_entropy_quantile, trainer.world.data
        updates = [choose_top_entropy(batches, share, data) for batches in updates]
    taught = teacher_term(trainer.teacher, recipe.teacher, temperature)
    if taught is not None and taught.is_sampled:
        updates = [[taught.add_to_advantages(batch) for batch in batches] for batches in updates]
        taught = None  # its whole term is in the advantages
    mtp, results = mtp_at(recipe.mtp, trainer.progress.step / recipe.steps), list[dict[str, float]]()
    for batches, rate in with_learning_rates(trainer, updates * recipe.passes_per_step):
        terms = PolicyTerms(
            settings=recipe.loss, on_policy=not results, entropy_weight=bonus_weight(entropy, recipe.loss)
        )
        loss = partial(batch_loss, terms=terms, temperature=temperature, mtp=mtp, taught=taught)
        result = train_step(policy, batches, loss, learning_rate=rate)
        entropy = adapt(entropy, result["entropy"], recipe.loss)
        result |= {} if entropy is None else {"entropy_coef": entropy.weight}
        results.append(prefixed("actor", {"pg_loss": result.pop("loss"), **result, "lr": rate}))
    metrics |= split_by_age(mean_over_updates(results)) | {"actor/updates": len(results)}
    return PolicyUpdate(metrics=metrics, credits=credits, entropy=entropy)


@dataclass(frozen=True, kw_only=True)
class Updates:
    """Those of one pass as packed micro-batches; `by_trainer`: their old log-probabilities are its own already."""

    batches: list[list[PackedBatch]]
    metrics: dict[str, float]
    credits: Credits = ()
    by_trainer: bool = False


def build_updates(
    trainer: Trainer[Rl], groups: Sequence[Group], advantages_GN: Tensor | None, recipe: Rl
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
        with_observed=recipe.loss.echo_weight > 0,
        world=trainer.world,
    )
    rows = split(len(groups), recipe.parts_per_pass)
    shares = [[groups[i] for i in row] for row in rows]
    if advantages_GN is not None:
        shared = share_credit(
            groups,
            advantages_GN,
            recipe.credit,
            step=trainer.progress.step + 1,
            tokenizer=trainer.tokenizer,
            max_length=trainer.policy.model.shape.max_context,
            score=scorer(trainer, trainer.policy.model, recipe.sampling.temperature),
        )
        # The log-probabilities that credit is computed from are the trainer's. They are not used where the update
        # replays the experts that the engine chose: this pass has chosen its own.
        use_again = recipe.loss.old_logprobs == "trainer" and not recipe.engine.replay_routing
        old = shared.logprobs if use_again else None
        return Updates(
            batches=[
                pack_part(
                    share,
                    [shared.advantages[i] for i in row],
                    old_logprobs=None if old is None else [old[i] for i in row],
                )
                for share, row in zip(shares, rows, strict=True)
            ],
            metrics={**advantage_metrics(advantages_GN), **shared.metrics},
            credits=shared.credits,
            by_trainer=old is not None,
        )
    critic = trainer.critic
    assert critic is not None, "without a critic samples have advantages of their own"
    updates, metrics = critic.appraise([pack_part(share, None) for share in shares])
    metrics |= advantage_metrics(join(updates, "advantages_M"), trainer.world.data)
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
    """The micro-batch with old and reference log-probabilities, computed before any update."""
    if old is not None:
        old_logprobs_M, entropy_M = token_logprobs(old, batch, temperature, replayed(old, batch))
        batch = replace(batch, old_logprobs_M=old_logprobs_M, entropy_M=entropy_M)
    if reference is not None:
        batch = replace(batch, ref_logprobs_M=token_logprobs(reference, batch, temperature)[0])
    return batch


def choose_top_entropy(batches: Sequence[PackedBatch], share: float, world: World) -> list[PackedBatch]:
    """Mark the tokens that learn: over all ranks, the `share` of tokens with the highest entropy."""
    entropies = [batch.entropy_M for batch in batches if batch.entropy_M is not None]
    assert len(entropies) == len(batches), "the pass for the old log-probabilities brings entropies"
    gathered = world.all_gather(
        torch.cat(entropies).float().cpu().numpy() if entropies else np.zeros(0, np.float32)
    )
    threshold = entropy_threshold(np.concatenate(gathered), share)
    return [
        replace(batch, top_entropy_M=entropy_M >= threshold)
        for batch, entropy_M in zip(batches, entropies, strict=True)
    ]
