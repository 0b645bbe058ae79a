"""KTO: good answers become more likely than under the reference, bad ones less.

The baseline is an estimate of the KL divergence: the mean log-ratio of answers put behind other prompts of the same
update. Answer 1 is put behind prompt 2, …, the last one behind prompt 1.

    foresail kto recipes/kto-example.toml
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from foresail.algorithms.unpaired_losses import kl_of, unpaired_loss
from foresail.data.mixtures.reader import Reader
from foresail.data.preferences.mixture import answer_limit, describe_one_label
from foresail.recipe.stages.kto import Kto
from foresail.records import TrainAnswer, TrainSequence
from foresail.train.references.reference import compared, sum_scores
from foresail.train.session import Outcome
from foresail.train.stages.preference_run import Objective, learn_preferences, run_preferences
from foresail.train.trainer import Trainer
from foresail.train.update.held_out import sum_loss
from foresail.train.update.scoring import Score, scorer
from foresail.train.update.split_answers import answer_batches

PER_ANSWER = ("rewards/", "logps/", "kto/")  # metrics that are sums over answers; others are over tokens


def run_kto(recipe: Kto, *, resume: bool = False, reader: Reader | None = None) -> Outcome:
    """`reader` may have read the data already."""
    objective = Objective(
        read=lambda reader: reader.answers,
        limit=answer_limit,
        texts=texts_of,
        update=update,
        measure=measure,
        check=check_labels,
        complete=with_mismatched,
    )
    return run_preferences(recipe, objective, resume=resume, reader=reader)


def check_labels(answers: Sequence[TrainAnswer]) -> None:
    if len(labels := {answer.desirable for answer in answers}) == 1:
        raise ValueError(describe_one_label(good=labels.pop()))


def texts_of(answer: TrainAnswer) -> Iterator[str]:
    yield f"{answer.answer.ids} {answer.answer.loss_mask} {answer.desirable}\n"


# Answers behind other prompts.


def with_mismatched(recipe: Kto, answers: Sequence[TrainAnswer]) -> Sequence[TrainAnswer]:
    """Add mismatched answers if the loss estimates the KL divergence."""
    return mismatch_answers(answers, recipe.max_length) if recipe.loss.estimates_kl else answers


def mismatch_answers(answers: Sequence[TrainAnswer], limit: int) -> list[TrainAnswer]:
    """Each with the answer before it behind its own prompt, within the limit."""
    return [
        replace(answer, mismatched=mismatch(answer.answer, answers[number - 1].answer, limit))
        for number, answer in enumerate(answers)
    ]


def mismatch(prompted: TrainSequence, other: TrainSequence, limit: int) -> TrainSequence:
    """Prompt [1, 2] with the answer [8, 9] of another one -> [1, 2, 8, 9], cut at the limit as TRL cuts it."""
    prompt_end, answer_start = prompted.loss_mask.index(1), other.loss_mask.index(1)
    return TrainSequence(
        name=f"{other.name} behind the prompt of {prompted.name}",
        ids=[*prompted.ids[:prompt_end], *other.ids[answer_start:]][:limit],
        loss_mask=[*prompted.loss_mask[:prompt_end], *other.loss_mask[answer_start:]][:limit],
    )


def estimate_kl(score: Score, answers: Sequence[TrainAnswer]) -> float:
    """The mean over all ranks' answers; 0 where none was put behind another prompt."""
    mismatched = [answer.mismatched for answer in answers if answer.mismatched is not None]
    if not mismatched:
        return 0.0
    references = [answer.ref_logprobs[1] for answer in answers if answer.ref_logprobs is not None]
    return kl_of(sum_scores(score, mismatched), references)


# One update, and what is measured.


def update(trainer: Trainer[Kto], answers: Sequence[TrainAnswer], rate: float) -> dict[str, float]:
    answers = compared(trainer, answers)
    kl = estimate_kl(scorer(trainer, trainer.policy.model), answers)
    loss = partial(unpaired_loss, settings=trainer.recipe.loss, kl=kl)
    return over_answers(learn_preferences(trainer, answers, loss, rate), answers, kl)


def over_answers(metrics: Mapping[str, float], answers: Sequence[TrainAnswer], kl: float) -> dict[str, float]:
    """A step's metrics are sums over answers divided by all tokens with a loss; here they become means over
    answers.
    """
    num_tokens = sum(sum(answer.answer.loss_mask) for answer in answers)
    sums = {name: value * num_tokens for name, value in metrics.items() if name.startswith(PER_ANSWER)}
    others = {name: value for name, value in metrics.items() if name not in sums}
    return others | means(sums, answers, kl)


def means(sums: Mapping[str, float], answers: Sequence[TrainAnswer], kl: float) -> dict[str, float]:
    """Means over good and over bad answers, each only if the update has some."""
    good = sum(answer.desirable for answer in answers)
    counts = {"kto/loss": len(answers)}
    counts |= {f"{name}/chosen": good for name in ("rewards", "logps")}
    counts |= {f"{name}/rejected": len(answers) - good for name in ("rewards", "logps")}
    metrics = {name: sums[name] / count for name, count in counts.items() if count}
    if "rewards/chosen" in metrics and "rewards/rejected" in metrics:
        metrics["rewards/margins"] = metrics["rewards/chosen"] - metrics["rewards/rejected"]
    return metrics | {"kl": kl}


def measure(trainer: Trainer[Kto], answers: Sequence[TrainAnswer]) -> dict[str, float]:
    """Loss, rewards and KL, as if they were one update; ranks compute a share each."""
    answers = compared(trainer, answers)
    kl = estimate_kl(scorer(trainer, trainer.policy.model), answers)
    loss = partial(unpaired_loss, settings=trainer.recipe.loss, kl=kl)
    sums = sum_loss(trainer, answer_batches(trainer, answers), loss)
    figures = means(sums, answers, kl)
    names = ("rewards/chosen", "rewards/rejected", "rewards/margins")
    rewards = {f"val/{name}/{{}}": figures[name] for name in names if name in figures}
    return {"val/loss/{}": sums["loss"], "val/kl/{}": kl, **rewards}
