"""The teacher of a student: opened once, frozen, and run on the student's own samples.

    trainer.teacher = open_teacher(trainer, recipe.teacher)
    view = view_of(trainer.teacher, batch)                       # without gradients
    compared = compare(model, batch, view, comparison, temperature=1.0).value

Legend: T tokens, M those with a loss.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from foresail.algorithms.divergences import sampled_advantages
from foresail.model.decoder import Decoder
from foresail.model.divergence import DivergenceSettings, TeacherView
from foresail.model.output import Output
from foresail.model.packed import gather_losses, own_losses, run_packed, token_logprobs
from foresail.model.readouts import both, divergence_at, likelihood_at, view_at
from foresail.model.router import Route
from foresail.model.shards import is_sharded
from foresail.recipe.stages.teacher import Teacher, WeighedTeacher
from foresail.records import PackedBatch
from foresail.tokenizer.comparison import vocabulary_difference
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.train.auxiliary.mtp import MtpLoss
from foresail.train.auxiliary.observations import with_observed
from foresail.train.checkpoints.fingerprints import fingerprint_teacher
from foresail.train.learner import Learner
from foresail.train.references.frozen import open_frozen
from foresail.train.trainer import Trainer
from foresail.train.update.step import ahead_of


def open_teacher(trainer: Trainer[Any], settings: Teacher | None) -> Decoder | None:
    """On every rank, sharded as the student is; a resumed run must find the same weights."""
    if settings is None:
        return None
    check_same_tokenizer(trainer.tokenizer, Tokenizer.load(settings.path), settings.path)
    model = open_frozen(trainer, settings.path)
    trainer.progress = fingerprint_teacher(trainer.progress, settings.path, model)
    trainer.learners["teacher"] = Learner(name="teacher", model=model)
    return model


def check_same_tokenizer(student: Tokenizer, teacher: Tokenizer, path: str) -> None:
    if (difference := vocabulary_difference(student, teacher)) is not None:
        raise ValueError(
            f"the teacher {path} has another tokenizer than the student: {difference}. It must score the student's "
            "own ids; choose a teacher of the same family, or train on its answers as text (foresail sft)"
        )


def comparison_of(settings: Teacher) -> DivergenceSettings:
    return DivergenceSettings(kind=settings.divergence, beta=settings.beta, temperature=settings.temperature)


@torch.no_grad()
def view_of(teacher: Decoder, batch: PackedBatch) -> TeacherView:
    """The teacher's hidden states at this rank's tokens, and its head."""
    places, _ = own_losses(batch)
    sharded = any(map(is_sharded, teacher.parameters()))
    return run_packed(teacher, batch, view_at(places, whole=sharded)).value


def teacher_logprobs(teacher: Decoder, batch: PackedBatch, temperature: float) -> Tensor:
    """Of the student's tokens, by the teacher."""
    with torch.no_grad():
        return token_logprobs(teacher, batch, temperature)[0]


class Compared(NamedTuple):
    """Of every token with a loss: the student's log-probability, the entropy of the student's distribution, and its
    divergence from the teacher's, where there is one. `observed_R`: the student's log-probabilities of what an
    environment said.
    """

    logprobs_M: Tensor
    entropy_M: Tensor
    divergence_M: Tensor | None
    observed_R: Tensor | None = None


def compare(
    model: Decoder,
    batch: PackedBatch,
    view: TeacherView,
    comparison: DivergenceSettings,
    *,
    temperature: float,
    route: Route | None = None,
    mtp: MtpLoss | None = None,
) -> Output[Compared]:
    """`temperature` is that of sampling, for the log-probabilities."""
    places, ids = own_losses(batch)
    readout = both(likelihood_at(places, ids, temperature), divergence_at(places, view, comparison))
    ((scores, divergence), observed_R), *side = run_packed(
        model, batch, with_observed(readout, batch), route, ahead_of(batch, mtp, temperature)
    )
    logprobs_M, entropy_M, divergence_M = (gather_losses(values, batch) for values in (*scores, divergence))
    return Output(Compared(logprobs_M, entropy_M, divergence_M, observed_R), *side)


@dataclass(frozen=True, kw_only=True)
class TeacherTerm:
    """A teacher beside rewards; `temperature` is that of sampling."""

    teacher: Decoder
    settings: WeighedTeacher
    temperature: float

    @property
    def is_sampled(self) -> bool:
        return self.settings.divergence == "sampled"

    def add_to_advantages(self, batch: PackedBatch) -> PackedBatch:
        """With the weighed log-ratio of teacher and student at the sampled tokens added to the advantages."""
        assert batch.advantages_M is not None and batch.old_logprobs_M is not None, (
            "a policy's batch has both"
        )
        teacher_M = teacher_logprobs(self.teacher, batch, self.temperature)
        more_M = self.settings.weight * sampled_advantages(teacher_M, batch.old_logprobs_M)
        return replace(batch, advantages_M=batch.advantages_M + more_M)

    def compare(
        self, model: Decoder, batch: PackedBatch, *, route: Route | None, mtp: MtpLoss | None
    ) -> Output[Compared]:
        view = view_of(self.teacher, batch)
        comparison = comparison_of(self.settings)
        return compare(model, batch, view, comparison, temperature=self.temperature, route=route, mtp=mtp)


def teacher_term(
    teacher: Decoder | None, settings: WeighedTeacher | None, temperature: float
) -> TeacherTerm | None:
    if teacher is None or settings is None:
        return None
    return TeacherTerm(teacher=teacher, settings=settings, temperature=temperature)
