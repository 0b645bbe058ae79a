"""On-policy distillation: a student answers, a teacher scores every token of the answers, the student comes closer.

    problems -> samples of the student -> the teacher's view of the same ids -> divergence per token -> updates

No reward is needed; where problems have answers, accuracy is measured as in RL. Samples come from `run.py`.

    foresail distill recipes/distill-example.toml
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from foresail.algorithms.batch_losses import policy_loss
from foresail.algorithms.divergences import sampled_advantages
from foresail.data.mixtures.reader import Reader
from foresail.model.decoder import Decoder
from foresail.model.packed import replayed, score_tokens
from foresail.recipe.stages.distill import Distill
from foresail.recipe.stages.teacher import Teacher
from foresail.recipe.tables.policy_loss import Loss
from foresail.records import Group, PackedBatch
from foresail.train.auxiliary.mtp import MtpLoss, mtp_at
from foresail.train.policy.metrics import mean_over_updates
from foresail.train.references.teacher import compare, comparison_of, open_teacher, teacher_logprobs, view_of
from foresail.train.rollouts.run import open_run
from foresail.train.session import Outcome
from foresail.train.trainer import Trainer
from foresail.train.update.batches import pack_sequences, plain_sequences, split
from foresail.train.update.loop import with_learning_rates, work_metrics
from foresail.train.update.split import balance_metrics
from foresail.train.update.step import BatchLoss, LossOfBatch, ahead_of, prefixed, train_step


def run_distill(
    recipe: Distill, *, resume: bool = False, changed_reward: bool = False, reader: Reader | None = None
) -> Outcome:
    """`changed_reward`, `reader`: as in `run_rl`."""
    with open_run(
        recipe, open_models, any_group, resume=resume, changed_reward=changed_reward, reader=reader
    ) as run:
        for step in run.steps():
            with run.update(step):
                metrics = run.session.on_all_ranks(update_student, step.groups, step.of_curriculum)
            run.end_step(step, metrics)
    return run.outcome


def open_models(trainer: Trainer[Distill]) -> None:
    trainer.teacher = open_teacher(trainer, trainer.recipe.teacher)


def any_group(group: Group) -> bool:
    """The teacher scores every sample, graded or not."""
    return True


def update_student(trainer: Trainer[Distill], groups: Sequence[Group], step: int) -> dict[str, float]:
    """The step's optimiser updates, each over its own share of the groups. Metrics are means over updates."""
    recipe, teacher = trainer.recipe.at(step), trainer.teacher
    assert teacher is not None, "it was opened with the run"
    updates = [
        pack_sequences(
            plain_sequences([groups[i] for i in row]),
            aggregation="token-mean",
            max_new_tokens=recipe.sampling.max_new_tokens,
            micro_batch_tokens=recipe.micro_batch_tokens,
            device=trainer.device,
            world=trainer.world,
        )
        for row in split(len(groups), recipe.updates_per_step)
    ]
    loss_of = sampled_loss if recipe.teacher.divergence == "sampled" else exact_loss
    loss: LossOfBatch = partial(
        loss_of,
        teacher=teacher,
        settings=recipe.teacher,
        temperature=recipe.sampling.temperature,
        mtp=mtp_at(recipe.mtp, trainer.progress.step / recipe.steps),
    )
    metrics = balance_metrics(updates, trainer.world) | work_metrics(trainer, updates)
    results = []
    for batches, rate in with_learning_rates(trainer, updates):
        result = train_step(trainer.policy, batches, loss, learning_rate=rate)
        results.append(prefixed("actor", {"distill_loss": result.pop("loss"), **result, "lr": rate}))
    return metrics | mean_over_updates(results) | {"actor/updates": len(results)}


def exact_loss(
    model: Decoder,
    batch: PackedBatch,
    *,
    teacher: Decoder,
    settings: Teacher,
    temperature: float,
    mtp: MtpLoss | None = None,
) -> BatchLoss:
    """The divergence over the whole vocabulary, at every token of the answers."""
    compared, *side = compare(
        model,
        batch,
        view_of(teacher, batch),
        comparison_of(settings),
        temperature=temperature,
        route=replayed(model, batch),
        mtp=mtp,
    )
    assert compared.divergence_M is not None
    loss = (batch.weights_M * compared.divergence_M).sum()
    terms = {
        "entropy": compared.entropy_M.sum(),
        f"distill/{settings.divergence}": compared.divergence_M.detach().sum(),
    }
    return BatchLoss(loss, terms, *side)


def sampled_loss(
    model: Decoder,
    batch: PackedBatch,
    *,
    teacher: Decoder,
    settings: Teacher,
    temperature: float,
    mtp: MtpLoss | None = None,
) -> BatchLoss:
    """The policy gradient with log teacher - log student of the sampled tokens as advantages, clipped as in RL."""
    assert batch.rollout_logprobs_M is not None, "samples bring the engine's log-probabilities"
    advantages_M = sampled_advantages(teacher_logprobs(teacher, batch, temperature), batch.rollout_logprobs_M)
    (logprobs_M, entropy_M), *side = score_tokens(
        model, batch, temperature, replayed(model, batch), ahead_of(batch, mtp, temperature)
    )
    loss, terms = policy_loss(logprobs_M, replace(batch, advantages_M=advantages_M), Loss())
    return BatchLoss(
        loss, {"entropy": entropy_M.sum(), "distill/sampled": -advantages_M.sum(), **terms}, *side
    )
