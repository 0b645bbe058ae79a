"""The policy's loss of one micro-batch: the recipe's kind, an entropy bonus, the environment's tokens, a teacher.

    loss = partial(batch_loss, terms=PolicyTerms(settings=recipe.loss, on_policy=True), temperature=1.0)
    train_step(policy, batches, loss, learning_rate=1e-6)

Legend: M tokens with a loss, R tokens of the environment that this rank reads.
"""

from __future__ import annotations

from dataclasses import dataclass

from foresail.algorithms.batch_losses import policy_loss
from foresail.algorithms.mismatch import mismatch
from foresail.model.decoder import Decoder
from foresail.model.output import Output
from foresail.model.packed import gather_losses, own_losses, replayed, run_packed
from foresail.model.readouts import likelihood_at
from foresail.recipe.tables.policy_loss import Loss
from foresail.records import PackedBatch
from foresail.train.auxiliary.mtp import MtpLoss
from foresail.train.auxiliary.observations import echo_loss, with_observed
from foresail.train.references.teacher import Compared, TeacherTerm
from foresail.train.update.step import BatchLoss, ahead_of


@dataclass(frozen=True, kw_only=True)
class PolicyTerms:
    """The terms of an update's loss. `on_policy` holds in the step's first update: engine and trainer have the same
    weights, so the difference of their log-probabilities is logged.
    """

    settings: Loss
    on_policy: bool
    entropy_weight: float = 0.0


def batch_loss(
    model: Decoder,
    batch: PackedBatch,
    *,
    terms: PolicyTerms,
    temperature: float,
    mtp: MtpLoss | None = None,
    taught: TeacherTerm | None = None,
) -> BatchLoss:
    """With `taught`, plus its weight times the divergence from a teacher."""
    (logprobs_M, entropy_M, divergence_M, observed_R), *side = read(model, batch, temperature, mtp, taught)
    loss, metrics = policy_loss(logprobs_M, batch, terms.settings)
    metrics["entropy"] = entropy_M.detach().sum()
    if terms.entropy_weight:
        loss = loss - terms.entropy_weight * (batch.weights_M * entropy_M).sum()
    if observed_R is not None:
        echo, echo_metrics = echo_loss(observed_R, batch)
        loss, metrics = loss + terms.settings.echo_weight * echo, metrics | echo_metrics
    if terms.on_policy and batch.rollout_logprobs_M is not None:
        metrics |= mismatch(logprobs_M, batch.rollout_logprobs_M, batch.fresh_M)
    if taught is not None and divergence_M is not None:
        loss = loss + taught.settings.weight * (batch.weights_M * divergence_M).sum()
        metrics[f"distill/{taught.settings.divergence}"] = divergence_M.detach().sum()
    return BatchLoss(loss, metrics, *side)


def read(
    model: Decoder, batch: PackedBatch, temperature: float, mtp: MtpLoss | None, taught: TeacherTerm | None
) -> Output[Compared]:
    """One forward pass, and the values that the loss needs from it."""
    route = replayed(model, batch)
    if taught is not None:
        return taught.compare(model, batch, route=route, mtp=mtp)
    readout = with_observed(likelihood_at(*own_losses(batch), temperature), batch)
    ahead = ahead_of(batch, mtp, temperature)
    ((logprobs, entropy), observed_R), *side = run_packed(model, batch, readout, route, ahead)
    scores = Compared(gather_losses(logprobs, batch), gather_losses(entropy, batch), None, observed_R)
    return Output(scores, *side)
