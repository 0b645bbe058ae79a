"""The recipe of reinforcement learning."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from pydantic import Field

from foresail.recipe.estimates.memory import VALUE_BYTES, Dtype, ExtraMemory
from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.stages.critic import (
    critic_memory,
    critic_mistakes,
    critic_warnings,
    second_model_refusals,
)
from foresail.recipe.stages.rl_checks import group_mistakes, part_mistakes, reward_mistakes
from foresail.recipe.stages.rollout_stage import RolloutStage
from foresail.recipe.stages.stage import optimizer_mistakes
from foresail.recipe.stages.teacher import WeighedTeacher, teacher_bytes, teacher_mistakes, teacher_refusals
from foresail.recipe.tables import parts
from foresail.recipe.tables.credit import Credit, credit_mistakes
from foresail.recipe.tables.policy_loss import (
    Loss,
    echo_mistakes,
    loss_mistakes,
    loss_warnings,
    old_logprob_mistakes,
    reference_mistakes,
    stale_loss_mistakes,
)


class Rl(RolloutStage):
    """Reinforcement learning with verifiable rewards."""

    stage: Literal["rl"] = Field("rl", description="reinforcement learning")
    run: parts.Run = parts.Run(name="rl")
    passes_per_step: int = Field(
        1, gt=0, description="passes of a step's updates over its samples (PPO epochs)"
    )
    advantage: parts.Advantage = parts.Advantage()
    credit: Credit = Credit()
    critic: parts.Critic | None = Field(None, description="for advantage.kind = gae")
    loss: Loss = Loss()
    teacher: WeighedTeacher | None = Field(
        None, description="a model to distill from beside the rewards; none: rewards only"
    )

    @property
    def num_passes(self) -> int:
        return self.passes_per_step

    @property
    def critic_only_steps(self) -> int:
        return 0 if self.critic is None else self.critic.warmup_steps

    def plain_mistakes(self) -> Iterator[str]:
        yield from super().plain_mistakes()
        advantage, dynamic_sampling = self.advantage.kind, self.dynamic_sampling
        if self.critic is not None:
            yield from optimizer_mistakes(self.model, self.critic.optimizer, "critic.optimizer")
        yield from reward_mistakes(self.reward, [source.grader for source in self.data])
        yield from part_mistakes(advantage, self.reward)
        yield from loss_mistakes(self.loss)
        yield from echo_mistakes(self.loss, has_environment=self.environment is not None)
        if self.teacher is not None:
            yield from teacher_mistakes(self.teacher)
        yield from critic_mistakes(self.critic, advantage, self.steps)
        yield from credit_mistakes(self.credit, advantage, self.steps)
        yield from group_mistakes(
            self.samples_per_prompt, advantage, dynamic_sampling=dynamic_sampling.enabled
        )
        yield from reference_mistakes(self.loss, self.model, self.lora, self.cluster)
        yield from old_logprob_mistakes(self.sampling, self.loss)
        yield from stale_loss_mistakes(self.rollout, self.loss)
        program = None if self.environment is None else self.environment.program
        if program is not None and self.credit.kind != "uniform":
            yield (
                f'credit.kind "{self.credit.kind}" weighs the turns of one record, and an episode of '
                'environment.program may have several; set credit.kind = "uniform"'
            )

    def extra_memory(self, shape: ModelShape, dtype: Dtype) -> ExtraMemory:
        critic, learners = 0, tuple[ModelShape, ...]()
        if self.critic is not None:
            critic, learners = critic_memory(self.critic, shape, dtype, self.max_length)
        # with LoRA the frozen model itself is the reference, unless another is named
        pulled = self.loss.kl_weight > 0 and (self.lora is None or self.loss.reference is not None)
        reference = shape.without_mtp().num_parameters * VALUE_BYTES[dtype] if pulled else 0
        more = super().extra_memory(shape, dtype)
        teacher = teacher_bytes(self.teacher, dtype, self.max_length)
        return replace(more, reference=reference, teacher=teacher, critic=critic, learners=learners)

    def refusals(self, num_records: int | None) -> Iterator[str]:
        yield from super().refusals(num_records)
        if self.critic is not None:
            yield from second_model_refusals("critic.path", self.critic.path, self.max_length)
        yield from second_model_refusals("loss.reference", self.loss.reference, self.max_length)
        yield from teacher_refusals(self.teacher, self.max_length)

    def warnings(self) -> Iterator[str]:
        yield from super().warnings()
        if self.critic is not None:
            yield from critic_warnings(self.critic, dynamic_sampling=self.dynamic_sampling.enabled)
        yield from loss_warnings(self.loss)
