"""The recipe of reinforcement learning."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from pydantic import Field

from foresail.recipe import parts
from foresail.recipe.cluster import Cluster
from foresail.recipe.credit import Credit, credit_mistakes
from foresail.recipe.critic import critic_memory, critic_mistakes, critic_warnings, second_model_refusals
from foresail.recipe.environment import Environment
from foresail.recipe.memory import VALUE_BYTES, Dtype, ExtraMemory
from foresail.recipe.reward import Reward
from foresail.recipe.rl_checks import (
    group_mistakes,
    loss_mistakes,
    loss_warnings,
    old_logprob_mistakes,
    reference_mistakes,
    reward_mistakes,
    split_mistakes,
    stale_loss_mistakes,
)
from foresail.recipe.rollout_stage import RolloutStage
from foresail.recipe.router import OptionalRouter
from foresail.recipe.shape import ModelShape
from foresail.recipe.sources import HeldOuts, Sources
from foresail.recipe.stage import optimizer_mistakes
from foresail.recipe.teacher import WeighedTeacher, teacher_bytes, teacher_mistakes, teacher_refusals
from foresail.recipe.values import Mix


class Rl(RolloutStage):
    """Reinforcement learning with verifiable rewards."""

    stage: Literal["rl"] = Field("rl", description="reinforcement learning")
    run: parts.Run = parts.Run(name="rl")
    model: parts.Model
    lora: parts.OptionalLora = None
    router: OptionalRouter = None
    mtp: parts.OptionalMtp = None
    data: Sources = Field(description="problems to learn from; [[data]] tables: a mixture")
    eval: HeldOuts = Field((), description="held-out problems")
    eval_every: int = Field(0, ge=0, description="steps between evaluations; 0: never")
    show_samples: int = Field(
        10, ge=0, description="steps between looks at two responses in the terminal; 0: never"
    )
    steps: int = Field(gt=0, description="rollout-and-update rounds")
    prompts_per_step: int = Field(64, gt=0, description="problems per step")
    samples_per_prompt: int = Field(8, gt=0, description="responses per problem")
    updates_per_step: int = Field(1, gt=0, description="optimiser updates per step, over disjoint parts")
    passes_per_step: int = Field(1, gt=0, description="times those updates go through the step's samples")
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
    advantage: parts.Advantage = parts.Advantage()
    credit: Credit = Credit()
    critic: parts.Critic | None = Field(None, description="for advantage.kind = gae")
    loss: parts.Loss = parts.Loss()
    teacher: WeighedTeacher | None = Field(
        None, description="a model to come close to beside the rewards; none: rewards alone"
    )
    reward: Reward = Reward()
    dynamic_sampling: parts.DynamicSampling = parts.DynamicSampling()
    rollout: parts.Rollout = parts.Rollout()
    engine: parts.Engine = parts.Engine()
    optimizer: parts.Optimizer = parts.Optimizer()
    checkpoints: parts.Checkpoints = parts.Checkpoints()
    cluster: Cluster = Cluster()

    @property
    def parts_per_pass(self) -> int:
        """Into so many disjoint parts a step's samples are split, one update each: 16 updates in 4 passes: 4."""
        return self.updates_per_step // self.passes_per_step

    @property
    def critic_only_steps(self) -> int:
        return 0 if self.critic is None else self.critic.warmup_steps

    def plain_mistakes(self) -> Iterator[str]:
        yield from super().plain_mistakes()
        advantage, dynamic_sampling = self.advantage.kind, self.dynamic_sampling
        if self.critic is not None:
            yield from optimizer_mistakes(self.model, self.critic.optimizer, "critic.optimizer")
        yield from reward_mistakes(self.reward, [source.grader for source in self.data])
        yield from loss_mistakes(self.loss)
        if self.teacher is not None:
            yield from teacher_mistakes(self.teacher)
        yield from critic_mistakes(self.critic, advantage, self.steps)
        yield from credit_mistakes(self.credit, advantage, self.steps)
        yield from group_mistakes(
            self.samples_per_prompt, advantage, dynamic_sampling=dynamic_sampling.enabled
        )
        yield from reference_mistakes(self.loss, self.model, self.lora, self.cluster)
        yield from split_mistakes(self.prompts_per_step, self.updates_per_step, self.passes_per_step)
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
        # beside low-rank pairs the frozen model itself is the reference, unless another is named
        pulled = self.loss.kl_weight > 0 and (self.lora is None or self.loss.reference is not None)
        reference = shape.num_parameters * VALUE_BYTES[dtype] if pulled else 0
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
