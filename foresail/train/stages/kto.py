"""KTO: answers that were judged good become more likely than the reference has them, bad ones less.

What "more likely" is counted from is how far the policy has gone from the reference anyway: the mean log-ratio of
answers that stand behind other prompts of the same update. Answer 1 stands behind prompt 2, …, the last one behind
prompt 1.

    foresail kto recipes/kto-example.toml
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import torch

from foresail.algorithms.unpaired_losses import kl_of, unpaired_loss
from foresail.data.mixtures.reader import Reader
from foresail.data.preferences.mixture import answer_limit, describe_one_label
from foresail.model.decoder import Decoder
from foresail.recipe.stages.kto import Kto
from foresail.records import TrainAnswer, TrainSequence
from foresail.train.auxiliary.expert_load import balance_experts
from foresail.train.auxiliary.mtp import mtp_at
from foresail.train.references.reference import compared, sum_scores
from foresail.train.session import Outcome
from foresail.train.stages.preference_run import Objective, name_update, run_preferences
from foresail.train.trainer import Trainer
from foresail.train.update.split import balance_metrics
from foresail.train.update.split_answers import pack_answer_share
from foresail.train.update.step import token_logprobs, token_loss, train_step
from foresail.world import World

PER_ANSWER = ("rewards/", "logps/", "kto/")  # metrics that are sums over answers; others are over tokens


def run_kto(recipe: Kto, *, resume: bool = False, reader: Reader | None = None) -> Outcome:
    """`reader`: has some of the data already."""
    objective = Objective(
        read=lambda reader: reader.answers,
        limit=answer_limit,
        check=check_labels,
        complete=with_mismatched,
        texts=texts_of,
        update=update,
        measure=measure_answers,
    )
    return run_preferences(recipe, objective, resume=resume, reader=reader)


def check_labels(answers: Sequence[TrainAnswer]) -> None:
    if len(labels := {answer.desirable for answer in answers}) == 1:
        raise ValueError(describe_one_label(good=labels.pop()))


def texts_of(answer: TrainAnswer) -> Iterator[str]:
    yield f"{answer.answer.ids} {answer.answer.loss_mask} {answer.desirable}\n"


# Answers behind other prompts.


def with_mismatched(recipe: Kto, answers: Sequence[TrainAnswer]) -> Sequence[TrainAnswer]:
    """Where the loss asks how far the policy is from the reference anyway."""
    return mismatch_answers(answers, recipe.max_length) if recipe.loss.estimates_kl else answers


def mismatch_answers(answers: Sequence[TrainAnswer], limit: int) -> list[TrainAnswer]:
    """Each with the answer before it behind its own prompt, within the limit."""
    return [
        replace(answer, mismatched=mismatch(answer.answer, answers[number - 1].answer, limit))
        for number, answer in enumerate(answers)
    ]


def mismatch(own: TrainSequence, other: TrainSequence, limit: int) -> TrainSequence:
    """Prompt [1, 2] with the answer [8, 9] of another one -> [1, 2, 8, 9], cut at the limit as TRL cuts it."""
    here, there = own.loss_mask.index(1), other.loss_mask.index(1)
    return TrainSequence(
        name=f"{other.name} behind the prompt of {own.name}",
        ids=[*own.ids[:here], *other.ids[there:]][:limit],
        loss_mask=[*own.loss_mask[:here], *other.loss_mask[there:]][:limit],
    )


def estimate_kl(
    model: Decoder,
    answers: Sequence[TrainAnswer],
    *,
    micro_batch_tokens: int,
    device: torch.device,
    world: World,
) -> float:
    """Over all answers of the update, wherever they are computed; 0 where none stands behind another prompt."""
    mismatched = [answer.mismatched for answer in answers if answer.mismatched is not None]
    if not mismatched:
        return 0.0
    references = [answer.ref_logprobs[1] for answer in answers if answer.ref_logprobs is not None]
    policy = sum_scores(model, mismatched, micro_batch_tokens=micro_batch_tokens, device=device, world=world)
    return kl_of(policy, references)


def own_kl(trainer: Trainer[Kto], answers: Sequence[TrainAnswer]) -> float:
    return estimate_kl(
        trainer.policy.model,
        answers,
        micro_batch_tokens=trainer.recipe.micro_batch_tokens,
        device=trainer.device,
        world=trainer.world,
    )


# One update, and what is measured.


def update(trainer: Trainer[Kto], answers: Sequence[TrainAnswer], rate: float) -> dict[str, float]:
    """One optimiser update, of which this rank computes its share."""
    recipe = trainer.recipe
    answers = compared(trainer, answers)
    kl = own_kl(trainer, answers)
    batches = [
        *pack_answer_share(
            answers, trainer.world, max_tokens=recipe.micro_batch_tokens, device=trainer.device
        )
    ]
    balance_experts(trainer.policy.model, recipe.router, (trainer.progress.updates + 1) / recipe.steps)
    loss = partial(
        token_loss,
        loss=partial(unpaired_loss, settings=recipe.loss, kl=kl),
        mtp=mtp_at(recipe.mtp, trainer.progress.step / recipe.steps),
    )
    found = train_step(trainer.policy, batches, loss, learning_rate=rate)
    return over_answers(found, answers, kl) | balance_metrics([batches], trainer.world)


def over_answers(found: Mapping[str, float], answers: Sequence[TrainAnswer], kl: float) -> dict[str, float]:
    """Sums over answers, which a step divides by all tokens with a loss, as means over those that they are of."""
    num_tokens = sum(sum(answer.answer.loss_mask) for answer in answers)
    sums = {name: value * num_tokens for name, value in found.items() if name.startswith(PER_ANSWER)}
    others = {name: value for name, value in found.items() if name not in sums}
    return name_update(others) | means(sums, answers, kl)


def means(sums: Mapping[str, float], answers: Sequence[TrainAnswer], kl: float) -> dict[str, float]:
    """Of good and of bad answers; nothing of a kind of which the update has none."""
    good = sum(answer.desirable for answer in answers)
    counts = {"kto/loss": len(answers)}
    counts |= {f"{name}/chosen": good for name in ("rewards", "logps")}
    counts |= {f"{name}/rejected": len(answers) - good for name in ("rewards", "logps")}
    found = {name: sums[name] / count for name, count in counts.items() if count}
    if "rewards/chosen" in found and "rewards/rejected" in found:
        found["rewards/margins"] = found["rewards/chosen"] - found["rewards/rejected"]
    return found | {"kl": kl}


@torch.no_grad()
def measure_answers(trainer: Trainer[Kto], answers: Sequence[TrainAnswer]) -> dict[str, float]:
    """Loss, rewards and KL, as if they were one update; ranks compute a share each."""
    recipe, data = trainer.recipe, trainer.world.data
    answers = compared(trainer, answers)
    kl, sums = own_kl(trainer, answers), dict[str, torch.Tensor]()
    for batch in pack_answer_share(
        answers, trainer.world, max_tokens=recipe.micro_batch_tokens, device=trainer.device
    ):
        logprobs_M, _ = token_logprobs(trainer.policy.model, batch)
        loss, terms = unpaired_loss(logprobs_M, batch, recipe.loss, kl)
        for name, term in {"loss": loss, **terms}.items():
            sums[name] = sums.get(name, torch.zeros_like(term)) + term
    totals = {name: float(data.sum(value)) for name, value in sums.items()}
    figures = means(totals, answers, kl)
    chosen = ("rewards/chosen", "rewards/rejected", "rewards/margins")
    found = {f"val/{name}/{{}}": figures[name] for name in chosen if name in figures}
    return {"val/loss/{}": totals["loss"], "val/kl/{}": kl, **found}
