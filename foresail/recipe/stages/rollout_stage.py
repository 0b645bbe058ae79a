"""The base of recipes of stages that sample answers to problems: reinforcement learning, distillation, online DPO.

A stage adds the keys of its loss, and overrides what differs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self, TypeVar

from pydantic import Field

from foresail.recipe.estimates.batches import Batches, count_batches, grouped, join_batches
from foresail.recipe.estimates.engines import cache_refusals, engine_refusals, num_shares
from foresail.recipe.estimates.machine import guess_device
from foresail.recipe.estimates.memory import VALUE_BYTES, Dtype, ExtraMemory, kv_bytes, kv_pages
from foresail.recipe.estimates.placement import grading_lines
from foresail.recipe.reward_function import Function, check_function
from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.stages.learned_reward import reward_model_memory, reward_model_refusals
from foresail.recipe.stages.rl_checks import (
    determinism_mistakes,
    grader_host_mistakes,
    level_mistakes,
    mode_mistakes,
    sampling_mistakes,
    split_mistakes,
    ungraded_mistakes,
)
from foresail.recipe.stages.stage import Stage
from foresail.recipe.tables import parts
from foresail.recipe.tables.backend import backend_mistakes, backend_refusals
from foresail.recipe.tables.cluster import Cluster, cluster_mistakes, have_copies, on_ray, rank_mistakes
from foresail.recipe.tables.curriculum import CurriculumStage, changes, mix_in_words, stage_at
from foresail.recipe.tables.dynamic_sampling import DynamicSampling
from foresail.recipe.tables.environment import Environment
from foresail.recipe.tables.levels import level_refusals
from foresail.recipe.tables.reward import ENVIRONMENT, NAMED, NO_GRADER, Reward
from foresail.recipe.tables.router import OptionalRouter, replay_refusals
from foresail.recipe.tables.sources import (
    HeldOuts,
    Sources,
    count_all,
    grader_mistakes,
    name_mistakes,
    named,
    paths,
    supply_warnings,
    weight_mistakes,
)
from foresail.recipe.tables.stage_lengths import length_mistakes, stage_lengths
from foresail.recipe.tables.staleness import staleness_mistakes
from foresail.recipe.tables.values import Mix


class RolloutStage(Stage):
    """A stage whose step is a rollout followed by updates on its samples."""

    # In the order in which recipe.toml shows them; a key that a stage declares again keeps its place.
    stage: str
    run: parts.Run
    model: parts.Model
    lora: parts.OptionalLora = None
    router: OptionalRouter = None
    mtp: parts.OptionalMtp = None
    data: Sources = Field(description="training problems; [[data]] tables: a mixture")
    eval: HeldOuts = Field((), description="held-out problems")
    eval_every: int = Field(0, ge=0, description="steps between evaluations; 0: never")
    show_samples: int = Field(
        10, ge=0, description="steps between prints of two responses to the terminal; 0: never"
    )
    steps: int = Field(gt=0, description="rollout-and-update rounds")
    prompts_per_step: int = Field(64, gt=0, description="problems per step")
    samples_per_prompt: int = Field(8, gt=0, description="responses per problem")
    updates_per_step: int = Field(
        1, gt=0, description="optimiser updates per step, on disjoint parts of its samples"
    )
    max_prompt_tokens: int = Field(
        1024, gt=0, description="longest prompt; longer ones are an error, unless data.too_long drops them"
    )
    micro_batch_tokens: parts.MicroBatchTokens = 8192
    recompute: parts.Recompute = False
    mix: Mix | None = Field(
        None, description="sampling weights of difficulty levels 1 to 5; none: the data's own order"
    )
    curriculum: tuple[CurriculumStage, ...] = Field(
        (),
        strict=False,
        description="stages in order, tables [[curriculum]]; none: the same settings for all steps",
    )
    sampling: parts.Sampling = parts.Sampling()
    environment: Environment | None = Field(
        None, description="environment that answers the model's turns; none: one response per problem"
    )
    reward: Reward = Reward()
    dynamic_sampling: DynamicSampling = DynamicSampling()
    rollout: parts.Rollout = parts.Rollout()
    engine: parts.Engine = parts.Engine()
    optimizer: parts.Optimizer = parts.Optimizer()
    checkpoints: parts.Checkpoints = parts.Checkpoints(best=parts.HELD_OUT_MEAN)
    cluster: Cluster = Cluster()

    @property
    def mtp_settings(self) -> parts.Mtp | None:
        return self.mtp

    @property
    def samples_per_step(self) -> int:
        return self.prompts_per_step * self.samples_per_prompt

    @property
    def engines(self) -> parts.Rollout:
        return self.rollout

    @property
    def num_passes(self) -> int:
        """Passes of a step's updates over its samples."""
        return 1

    @property
    def parts_per_pass(self) -> int:
        """The disjoint parts of a step's samples, one update each: 16 updates in 4 passes have 4."""
        return self.updates_per_step // self.num_passes

    @property
    def critic_only_steps(self) -> int:
        """The first steps, in which only the critic learns."""
        return 0

    @property
    def num_updates(self) -> int:
        return (self.steps - self.critic_only_steps) * self.updates_per_step

    @property
    def max_length(self) -> int:
        """The longest sample of any stage, and of held-out problems, which always use `sampling`."""
        longest = max(phase.sampling.max_new_tokens for phase in (self, *self.phases))
        return self.max_prompt_tokens + longest

    @property
    def phases(self) -> tuple[Self, ...]:
        """The recipe as it holds in each stage of the curriculum; itself where there is none."""
        staged = (self.model_copy(update=changes(stage, self.sampling)) for stage in self.curriculum)
        return tuple(staged) or (self,)

    def at(self, step: int) -> Self:
        return self.phases[stage_at(self.curriculum, step)]

    @property
    def engine_settings(self) -> parts.Engine:
        """The engine's settings with no more rows than a step has samples: its cache is sized by them.

        Which rows share a batch depends on how fast verdicts come; a deterministic run's numbers must not.
        """
        max_running = min(self.engine.max_running, max(phase.samples_per_step for phase in self.phases))
        alike = self.engine.batch_invariant or self.run.deterministic
        return self.engine.model_copy(update={"max_running": max_running, "batch_invariant": alike})

    @property
    def draws_stale_tokens(self) -> bool:
        """Whether samples may come from older weights."""
        return self.dynamic_sampling.carry or self.rollout.staleness > 0

    @property
    def engines_beside(self) -> int:
        here = self.cluster.address is None
        return self.rollout.workers if self.rollout.staleness and here else 0

    def for_followers(self) -> Self:
        """The recipe without rewards, which may be functions of rank 0's process, and without data."""
        return self.model_copy(update={"reward": Reward(), "data": (), "eval": (), "environment": None})

    def mistakes(self) -> Iterator[str]:
        """With a curriculum: checks of its stages' lengths, and of the recipe in each stage."""
        if not self.curriculum:
            yield from self.plain_mistakes()
            return
        own = list(self.model_copy(update={"curriculum": ()}).mistakes())
        yield from own
        yield from length_mistakes("curriculum", self.curriculum, self.steps)
        if self.dynamic_sampling.carry:
            yield (
                "dynamic_sampling.carry continues samples of the step before, which another stage of the "
                "curriculum may sample differently; set it to false"
            )
        for number, phase in enumerate(self.phases, start=1):
            yield from (f"curriculum stage {number}: {line}" for line in phase.mistakes() if line not in own)

    @property
    def keeps_best(self) -> bool:
        return super().keeps_best and (self.checkpoints.best != parts.HELD_OUT_MEAN or self.eval_every > 0)

    def plain_mistakes(self) -> Iterator[str]:
        """Checks of a recipe without a curriculum."""
        dynamic_sampling = self.dynamic_sampling
        yield from self.learner_mistakes()
        if not self.eval_every and "val-core" in (self.checkpoints.best or ""):
            yield f'checkpoints.best = "{self.checkpoints.best}" is measured on [eval]; set eval_every'
        if not self.eval_every and self.checkpoints.best == parts.HELD_OUT_MEAN and self.checkpoints.patience:
            yield "checkpoints.patience waits for a metric; set eval_every, or name one with checkpoints.best"
        yield from determinism_mistakes(self.run, self.sampling, carry=dynamic_sampling.carry)
        yield from backend_mistakes(self.rollout, self.run, self.engine, self.sampling)
        yield from split_mistakes(self.prompts_per_step, self.updates_per_step, self.num_passes)
        yield from rank_mistakes(
            self.cluster, self.samples_per_step // max(1, self.parts_per_pass), "prompts_per_step"
        )
        if self.max_length > self.packed_tokens:
            yield (
                f"max_prompt_tokens {self.max_prompt_tokens} + sampling.max_new_tokens "
                f"{self.sampling.max_new_tokens} = {self.max_length} tokens do not {self.larger_batches()}"
            )
        yield from sampling_mistakes(self.sampling, self.reward)
        yield from cluster_mistakes(self.cluster, self.rollout)
        source_graders = [source.grader for source in (*self.data, *self.eval)]
        yield from grader_host_mistakes(self.cluster, self.reward, source_graders)
        yield from staleness_mistakes(self.rollout, self.cluster, carry=dynamic_sampling.carry)
        if self.environment is not None:
            yield from self.environment.mistakes()
            yield from mode_mistakes(self.problem_tables)
            if dynamic_sampling.carry:
                yield "dynamic_sampling.carry cannot carry episodes of several turns over; set it to false"
        graders = [self.reward.grader, *source_graders]
        rewarded = self.environment is not None and self.environment.may_give_rewards
        if not rewarded and (ENVIRONMENT in graders or self.reward.asks_environment):
            yield (
                'the grader "environment" adds up the environment\'s rewards for the turns; set '
                "environment.name to one that gives rewards, or name another grader"
            )
        yield from ungraded_mistakes(self.reward, dynamic_sampling)
        if self.eval_every and not self.eval:
            yield "eval_every is set but there is no [eval] table; add one with source = …"
        if not self.data:
            yield "data names no problems; add a table [data] with source = …"
        yield from level_mistakes(self.data, self.mix)
        yield from weight_mistakes(self.data)
        for key, problems in self.problem_tables.items():
            yield from name_mistakes(key, problems)
            yield from grader_mistakes(key, problems, self.reward)

    def count_batches(self) -> Batches:
        if self.curriculum:
            lengths = stage_lengths(self.curriculum, self.steps)
            stages = [
                phase.model_copy(update={"steps": length}).count_batches()
                for phase, length in zip(self.phases, lengths, strict=True)
            ]
            return join_batches(stages, self.steps)
        return count_batches(
            steps=self.steps,
            prompts=self.prompts_per_step,
            samples=self.samples_per_step,
            updates=self.updates_per_step,
            parts=self.parts_per_pass,
            max_length=self.max_length,
            micro_batch_tokens=self.packed_tokens,
        )

    @property
    def num_copies(self) -> int:
        """Copies of the weights for engines: where the trained ones are sharded or change, and for vLLM."""
        shards = self.cluster.ranks > 1 and not have_copies(self.cluster, self.rollout)
        vllm = self.rollout.backend == "vllm" and not on_ray(self.cluster, self.rollout)
        return (shards or self.rollout.staleness > 0) + vllm

    def extra_memory(self, shape: ModelShape, dtype: Dtype) -> ExtraMemory:
        value_bytes = VALUE_BYTES[dtype]
        return ExtraMemory(
            kv_cache=kv_bytes(shape, self.engine_settings, self.max_length, value_bytes),
            reward_model=0
            if self.reward.model is None
            else reward_model_memory(self.reward.model, shape, dtype),
            engine_weights=shape.num_parameters * value_bytes * self.num_copies,
            lends=self.rollout.backend == "native",
        )

    def sources(self) -> dict[str, str]:
        return paths(self.problem_tables)

    @property
    def problem_tables(self) -> dict[str, tuple[parts.Problems, ...]]:
        return {"data": self.data, "eval": self.eval}

    def reward_functions(self) -> dict[str, Function]:
        """The user's reward functions, by the first key that names each."""
        sources = {
            place: source for key, table in self.problem_tables.items() for place, source in named(key, table)
        }
        used = any(source.grader is None for source in sources.values())
        functions = self.reward.functions if used else {}
        for place, source in sources.items():
            if source.grader not in (None, NO_GRADER, *NAMED, *functions.values()):
                functions[f"{place}.grader"] = source.grader
        return functions

    def count_records(self) -> int | None:
        return count_all(self.data)

    def refusals(self, num_records: int | None) -> Iterator[str]:
        yield from super().refusals(num_records)
        yield from backend_refusals(self.rollout)
        if self.reward.model is not None:
            yield from reward_model_refusals(self.reward.model, self.max_length)
        where = "curriculum stage {}: " if self.curriculum else ""
        mixes = {
            where.format(number): (phase.mix, phase.prompts_per_step)
            for number, phase in enumerate(self.phases, start=1)
            if phase.mix is not None
        }
        yield from level_refusals(self.data, mixes)
        if self.environment is not None:
            yield from self.environment.refusals()
        for key, function in self.reward_functions().items():
            if isinstance(function, str):
                yield from check_function(key, function)
        device = guess_device(self.run.device)
        yield from engine_refusals(self.engine, self.rollout, self.cluster, device)
        shares = num_shares(self.cluster, self.rollout, device)
        yield from cache_refusals(self.engine_settings, shares, self.max_length)
        # Noise is keyed by problem: a problem drawn twice in a step would get the same responses twice.
        largest = max(phase.prompts_per_step for phase in self.phases)
        if num_records and num_records < largest:
            where = " and ".join(source.source for source in self.data)
            yield (
                f"prompts_per_step {largest} (prompts) exceeds the {num_records} problems of {where}; "
                f"set prompts_per_step = {num_records} or less"
            )

    def shape_refusals(self, shape: ModelShape) -> Iterator[str]:
        yield from super().shape_refusals(shape)
        yield from replay_refusals(self.engine.replay_routing, shape)

    def context_refusal(self, context: int) -> str:
        left, longest = context - self.max_prompt_tokens, self.max_length - self.max_prompt_tokens
        own = longest == self.sampling.max_new_tokens
        key = "sampling.max_new_tokens" if own else "curriculum's max_new_tokens"
        remedy = f"{key} = {left}" if left > 0 else f"max_prompt_tokens below {context}"
        return (
            f"max_prompt_tokens {self.max_prompt_tokens} + {key} {longest} = {self.max_length} exceed the model's "
            f"context of {context} tokens; set {remedy}"
        )

    def warnings(self) -> Iterator[str]:
        yield from super().warnings()
        if self.eval and not self.eval_every:
            yield (
                "there is an [eval] table, but eval_every is 0: never; set eval_every = 10, for example, or "
                "remove [eval]"
            )
        drawn = self.count_batches().run.prompts or 0
        yield from supply_warnings(self.data, drawn, "prompts")

    def batch_notes(self) -> Iterator[str]:
        """curriculum stage 2: 30 steps of 64 prompts, up to 512 tokens, temperature 1, levels 2 (60 %), 3 (40 %)"""
        rounds = self.dynamic_sampling.max_rounds
        if self.dynamic_sampling.enabled and rounds > 1:
            prompts = rounds * (self.count_batches().step.prompts or 0)
            yield f"dynamic sampling may try up to {grouped(prompts)} prompts a step"
        lengths = stage_lengths(self.curriculum, self.steps)
        for number, (phase, steps) in enumerate(zip(self.phases, lengths, strict=False), start=1):
            yield (
                f"curriculum stage {number}: {steps} steps of {grouped(phase.prompts_per_step)} prompts, up to "
                f"{grouped(phase.sampling.max_new_tokens)} tokens, temperature {phase.sampling.temperature:g}, "
                f"{mix_in_words(phase.mix)}"
            )

    def placement_lines(self) -> Iterator[str]:
        yield from super().placement_lines()
        if self.cluster.kind == "ray":
            yield from grading_lines(self.cluster)

    def memory_notes(self) -> dict[str, str]:
        pages = kv_pages(self.engine_settings, self.max_length)
        return {"kv_cache": f"{grouped(pages)} pages of {self.engine.page_size} tokens"}

    def files(self) -> dict[str, str]:
        prints = {"reward.log": "what reward functions print"} if self.reward.functions else {}
        logs = {"logs/": "what each Ray actor prints"} if self.cluster.kind == "ray" else {}
        return {"rollouts/": "every sample of every step, compressed", **prints, **logs}


Sampled = TypeVar("Sampled", bound=RolloutStage)  # the recipe of one such stage
