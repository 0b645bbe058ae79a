"""The table [teacher]: a model whose distributions a student comes close to, on samples of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Literal

from pydantic import Field

from foresail.recipe.checkpoint_path import CheckpointPath
from foresail.recipe.estimates.memory import VALUE_BYTES, Dtype
from foresail.recipe.shape.hf_config import read_shape
from foresail.recipe.stages.critic import second_model_refusals
from foresail.recipe.tables.part import Part

DivergenceKind = Literal["reverse", "forward", "js", "sampled"]


class Teacher(Part):
    """A model with the same tokenizer, which scores what the student samples."""

    path: CheckpointPath = Field(
        description="Hugging Face directory of the teacher; its tokenizer must be the student's"
    )
    divergence: DivergenceKind = Field(
        "reverse",
        description="per token: reverse KL(student || teacher), forward KL, js (Jensen-Shannon), over the whole "
        "vocabulary; sampled: log teacher - log student of the sampled token, as an advantage",
    )
    beta: float = Field(
        0.5, gt=0, lt=1, description="js: the teacher's weight in the mixture that both are compared with"
    )
    temperature: float = Field(1.0, gt=0, description="both distributions are compared at this temperature")


class WeighedTeacher(Teacher):
    """A teacher beside rewards."""

    weight: float = Field(0.1, gt=0, description="weight of the divergence beside the policy loss")


def teacher_mistakes(teacher: Teacher) -> Iterator[str]:
    if teacher.divergence != "js" and teacher.beta != 0.5:
        yield f'teacher.beta is for teacher.divergence = "js", not "{teacher.divergence}"; remove it'
    if teacher.divergence == "sampled" and teacher.temperature != 1.0:
        yield (
            'teacher.divergence = "sampled" compares the probabilities that the student sampled by; remove '
            "teacher.temperature"
        )


def teacher_refusals(teacher: Teacher | None, max_length: int) -> Iterator[str]:
    if teacher is not None:
        yield from second_model_refusals("teacher.path", teacher.path, max_length)


def teacher_bytes(teacher: Teacher | None, dtype: Dtype, max_length: int) -> int:
    """Bytes of its weights; 0 if it cannot be read, which another check reports."""
    if teacher is not None:
        with suppress(OSError, ValueError):
            shape = read_shape(teacher.path, context=max_length).without_mtp()
            return shape.num_parameters * VALUE_BYTES[dtype]
    return 0
