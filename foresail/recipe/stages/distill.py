"""The recipe of on-policy distillation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from pydantic import Field

from foresail.recipe.estimates.memory import Dtype, ExtraMemory
from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.stages.rollout_stage import RolloutStage
from foresail.recipe.stages.teacher import Teacher, teacher_bytes, teacher_mistakes, teacher_refusals
from foresail.recipe.tables import parts
from foresail.recipe.tables.dynamic_sampling import DynamicSampling
from foresail.recipe.tables.reward import Reward


class Distill(RolloutStage):
    """On-policy distillation: the student samples, a teacher scores."""

    stage: Literal["distill"] = Field("distill", description="on-policy distillation")
    run: parts.Run = parts.Run(name="distill")
    teacher: Teacher
    samples_per_prompt: int = Field(1, gt=0, description="responses per problem")
    reward: Reward = Field(Reward(), description='for accuracy alone; grader = "none": nothing is graded')
    dynamic_sampling: DynamicSampling = DynamicSampling(enabled=False)
    optimizer: parts.Optimizer = parts.Optimizer(lr=1e-5)

    def plain_mistakes(self) -> Iterator[str]:
        yield from super().plain_mistakes()
        yield from teacher_mistakes(self.teacher)
        if self.dynamic_sampling.enabled:
            yield (
                "with a teacher every group has a learning signal, whatever its rewards; set "
                "dynamic_sampling.enabled = false"
            )
        if self.teacher.divergence == "sampled" and self.sampling.truncates:
            yield (
                "with top_p, top_k or min_p the engine samples from a truncated distribution, which "
                'teacher.divergence = "sampled" takes for the student\'s; remove them, or set another divergence'
            )

    def extra_memory(self, shape: ModelShape, dtype: Dtype) -> ExtraMemory:
        teacher = teacher_bytes(self.teacher, dtype, self.max_length)
        return replace(super().extra_memory(shape, dtype), teacher=teacher)

    def refusals(self, num_records: int | None) -> Iterator[str]:
        yield from super().refusals(num_records)
        yield from teacher_refusals(self.teacher, self.max_length)
