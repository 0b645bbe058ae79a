"""The recipe of on-policy distillation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from pydantic import Field

from foresail.recipe import parts
from foresail.recipe.cluster import Cluster
from foresail.recipe.environment import Environment
from foresail.recipe.memory import Dtype, ExtraMemory
from foresail.recipe.reward import Reward
from foresail.recipe.rl_checks import split_mistakes
from foresail.recipe.rollout_stage import RolloutStage
from foresail.recipe.router import OptionalRouter
from foresail.recipe.shape import ModelShape
from foresail.recipe.sources import HeldOuts, Sources
from foresail.recipe.teacher import Teacher, teacher_bytes, teacher_mistakes, teacher_refusals
from foresail.recipe.values import Mix


class Distill(RolloutStage):
    """On-policy distillation: the student samples, a teacher scores."""

    stage: Literal["distill"] = Field("distill", description="on-policy distillation")
    run: parts.Run = parts.Run(name="distill")
    model: parts.Model
    lora: parts.OptionalLora = None
    router: OptionalRouter = None
    mtp: parts.OptionalMtp = None
    teacher: Teacher
    data: Sources = Field(description="problems the student answers; [[data]] tables: a mixture")
    eval: HeldOuts = Field((), description="held-out problems")
    eval_every: int = Field(0, ge=0, description="steps between evaluations; 0: never")
    show_samples: int = Field(
        10, ge=0, description="steps between looks at two responses in the terminal; 0: never"
    )
    steps: int = Field(gt=0, description="rollout-and-update rounds")
    prompts_per_step: int = Field(64, gt=0, description="problems per step")
    samples_per_prompt: int = Field(1, gt=0, description="responses per problem")
    updates_per_step: int = Field(1, gt=0, description="optimiser updates per step, over disjoint parts")
    max_prompt_tokens: int = Field(
        1024, gt=0, description="longer prompts are an error, unless data.too_long drops them"
    )
    micro_batch_tokens: parts.MicroBatchTokens = 8192
    recompute: parts.Recompute = False
    mix: Mix | None = Field(
        None, description="weights of difficulty levels 1 to 5 in what is drawn; none: the data's own order"
    )
    curriculum: tuple[parts.CurriculumStage, ...] = Field(
        (), strict=False, description="stages one after the other, [[curriculum]]; none: all steps are alike"
    )
    sampling: parts.Sampling = parts.Sampling()
    environment: Environment | None = Field(
        None, description="what answers the model's turns; none: a problem is answered at once"
    )
    reward: Reward = Field(Reward(), description='for accuracy alone; grader = "none": nothing is graded')
    dynamic_sampling: parts.DynamicSampling = parts.DynamicSampling(enabled=False)
    rollout: parts.Rollout = parts.Rollout()
    engine: parts.Engine = parts.Engine()
    optimizer: parts.Optimizer = parts.Optimizer(lr=1e-5)
    checkpoints: parts.Checkpoints = parts.Checkpoints()
    cluster: Cluster = Cluster()

    def plain_mistakes(self) -> Iterator[str]:
        yield from super().plain_mistakes()
        yield from teacher_mistakes(self.teacher)
        yield from split_mistakes(self.prompts_per_step, self.updates_per_step, 1)
        if self.dynamic_sampling.enabled:
            yield (
                "every group teaches by its teacher, whatever its rewards; set dynamic_sampling.enabled = false"
            )
        if self.teacher.divergence == "sampled" and self.sampling.truncates:
            yield (
                "with top_p, top_k or min_p the engine samples from a cut distribution, which "
                'teacher.divergence = "sampled" takes for the student\'s; remove them, or set another divergence'
            )

    def extra_memory(self, shape: ModelShape, dtype: Dtype) -> ExtraMemory:
        teacher = teacher_bytes(self.teacher, dtype, self.max_length)
        return replace(super().extra_memory(shape, dtype), teacher=teacher)

    def refusals(self, num_records: int | None) -> Iterator[str]:
        yield from super().refusals(num_records)
        yield from teacher_refusals(self.teacher, self.max_length)
