"""One recipe type per stage: the tables of `parts` put together, with the checks across them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, Self

from pydantic import Field, model_validator

from foresail.recipe import parts
from foresail.recipe.curriculum import changes, length_mistakes, stage_at
from foresail.recipe.hf_config import check_family
from foresail.recipe.parts import Part


class Stage(Part):
    """What every stage shares: the checks across its tables, all reported at once."""

    @model_validator(mode="after")
    def check(self) -> Self:
        if mistakes := list(self.mistakes()):
            raise ValueError("\n".join(mistakes))
        return self

    def mistakes(self) -> Iterator[str]:
        raise NotImplementedError


class Sft(Stage):
    """Supervised fine-tuning on conversations."""

    stage: Literal["sft"] = Field("sft", description="supervised fine-tuning")
    run: parts.Run = parts.Run(name="sft")
    model: parts.Model
    lora: parts.Lora | None = Field(None, description="train low-rank pairs only; none: every weight")
    data: str = Field(description="conversations: JSONL or parquet with messages, prompt+completion or text")
    steps: int = Field(gt=0, description="optimiser updates")
    batch_size: int = Field(64, gt=0, description="conversations per update")
    max_length: int = Field(2048, gt=1, description="tokens; longer conversations are an error")
    micro_batch_tokens: int = Field(8192, gt=0, description="tokens per packed micro-batch")
    recompute: bool = Field(
        False,
        description="compute a block's activations anew in the backward pass: less memory, one more forward pass",
    )
    optimizer: parts.Optimizer = parts.Optimizer(lr=1e-5)
    checkpoints: parts.Checkpoints = parts.Checkpoints(every=50)

    def mistakes(self) -> Iterator[str]:
        yield from model_mistakes(self.model)
        yield from optimizer_mistakes(self.model, self.optimizer, "optimizer")
        if self.max_length > self.micro_batch_tokens:
            yield (
                f"max_length {self.max_length} does not fit a micro-batch of {self.micro_batch_tokens} "
                f"tokens; set micro_batch_tokens = {self.max_length} or more"
            )


class Rl(Stage):
    """Reinforcement learning with verifiable rewards."""

    stage: Literal["rl"] = Field("rl", description="reinforcement learning")
    run: parts.Run = parts.Run(name="rl")
    model: parts.Model
    lora: parts.Lora | None = Field(None, description="train low-rank pairs only; none: every weight")
    data: parts.Problems
    eval: parts.Problems | None = Field(None, description="held-out problems")
    eval_every: int = Field(0, ge=0, description="steps between evaluations (greedy); 0: never")
    show_samples: int = Field(
        10, ge=0, description="steps between looks at two responses in the terminal; 0: never"
    )
    steps: int = Field(gt=0, description="rollout-and-update rounds")
    prompts_per_step: int = Field(64, gt=0, description="problems per step")
    samples_per_prompt: int = Field(8, gt=0, description="responses per problem")
    updates_per_step: int = Field(1, gt=0, description="optimiser updates per step, over disjoint parts")
    passes_per_step: int = Field(1, gt=0, description="times those updates go through the step's samples")
    max_prompt_tokens: int = Field(1024, gt=0, description="longer prompts are an error")
    micro_batch_tokens: int = Field(8192, gt=0, description="tokens per packed micro-batch")
    recompute: bool = Field(
        False,
        description="compute a block's activations anew in the backward pass: less memory, one more forward pass",
    )
    mix: parts.Mix | None = Field(
        None, description="weights of difficulty levels 1 to 5 in what is drawn; none: the data's own order"
    )
    curriculum: tuple[parts.CurriculumStage, ...] = Field(
        (), strict=False, description="stages one after the other, [[curriculum]]; none: all steps are alike"
    )
    sampling: parts.Sampling = parts.Sampling()
    advantage: parts.Advantage = parts.Advantage()
    critic: parts.Critic | None = Field(None, description="for advantage.kind = gae")
    loss: parts.Loss = parts.Loss()
    reward: parts.Reward = parts.Reward()
    dynamic_sampling: parts.DynamicSampling = parts.DynamicSampling()
    rollout: parts.Rollout = parts.Rollout()
    engine: parts.Engine = parts.Engine()
    optimizer: parts.Optimizer = parts.Optimizer()
    checkpoints: parts.Checkpoints = parts.Checkpoints()

    @property
    def samples_per_step(self) -> int:
        return self.prompts_per_step * self.samples_per_prompt

    @property
    def parts_per_pass(self) -> int:
        """Into so many disjoint parts a step's samples are split, one update each: 16 updates in 4 passes: 4."""
        return self.updates_per_step // self.passes_per_step

    @property
    def critic_only_steps(self) -> int:
        return 0 if self.critic is None else self.critic.warmup_steps

    @property
    def max_length(self) -> int:
        """Of any sample in any stage, and of answers to held-out problems, which follow `sampling` throughout."""
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
    def engine_room(self) -> parts.Engine:
        """The engine's settings with no more rows than a step has samples: its cache is sized by them.

        Which rows share a batch depends on how fast verdicts come; a deterministic run's numbers must not.
        """
        most = min(self.engine.max_running, max(phase.samples_per_step for phase in self.phases))
        alike = self.engine.batch_invariant or self.run.deterministic
        return self.engine.model_copy(update={"max_running": most, "batch_invariant": alike})

    def mistakes(self) -> Iterator[str]:
        if self.curriculum:
            yield from curriculum_mistakes(self)
            return
        yield from model_mistakes(self.model)
        yield from optimizer_mistakes(self.model, self.optimizer, "optimizer")
        if self.critic is not None:
            yield from optimizer_mistakes(self.model, self.critic.optimizer, "critic.optimizer")
        yield from loss_mistakes(self.loss)
        yield from critic_mistakes(self)
        yield from chance_mistakes(self)
        yield from group_mistakes(self)
        yield from split_mistakes(self)
        if self.max_length > self.micro_batch_tokens:
            yield (
                f"max_prompt_tokens {self.max_prompt_tokens} + sampling.max_new_tokens "
                f"{self.sampling.max_new_tokens} = {self.max_length} tokens do not fit a micro-batch of "
                f"{self.micro_batch_tokens} tokens; set micro_batch_tokens = {self.max_length} or more"
            )
        yield from sampling_mistakes(self)
        if self.eval_every and self.eval is None:
            yield "eval_every is set but there is no [eval] table; add one with source = …"
        yield from level_mistakes(self)


Recipe = Sft | Rl
STAGES: dict[str, type[Sft] | type[Rl]] = {"sft": Sft, "rl": Rl}


def model_mistakes(model: parts.Model) -> Iterator[str]:
    if (model.path is None) == (model.shape is None):
        yield "set one of model.path (a checkpoint) and [model.shape] (fresh weights)"
    if model.shape is not None:
        if model.tokenizer is None:
            yield "fresh weights bring no tokenizer; set model.tokenizer to its directory"
        try:
            check_family(model.shape)
        except ValueError as error:
            yield f"model.shape: {error}"


def optimizer_mistakes(model: parts.Model, optimizer: parts.Optimizer, place: str) -> Iterator[str]:
    if model.dtype == "float16" and optimizer.states == "8bit":
        yield f'{place}.states = "8bit" does not go with float16; set model.dtype = "bfloat16"'


def loss_mistakes(loss: parts.Loss) -> Iterator[str]:
    if loss.dual_clip is not None and loss.kind != "clip":
        yield (
            f'loss.dual_clip bounds the loss of kind "clip" only, and loss.kind is "{loss.kind}"; '
            "remove loss.dual_clip"
        )
    if loss.kind == "gspo" and loss.aggregation != "seq-mean-token-mean":
        yield (
            f'with loss.aggregation "{loss.aggregation}" the gradient is not GSPO\'s; '
            'set loss.aggregation = "seq-mean-token-mean"'
        )


def chance_mistakes(recipe: Rl) -> Iterator[str]:
    """What lets the clock into a run that is to be deterministic."""
    if not recipe.run.deterministic:
        return
    if recipe.dynamic_sampling.carry:
        yield (
            "how far the samples are that dynamic_sampling.carry goes on with depends on the machine's speed, and "
            "run.deterministic is set; set dynamic_sampling.carry = false"
        )
    if recipe.sampling.truncates and recipe.run.device != "cpu":
        yield (
            "top_p, top_k and min_p add up probabilities, which PyTorch does in any order on a GPU, and "
            'run.deterministic is set; remove them, or set run.device = "cpu"'
        )


def critic_mistakes(recipe: Rl) -> Iterator[str]:
    critic = recipe.critic
    if (critic is None) != (recipe.advantage.kind != "gae"):
        yield (
            'advantage.kind = "gae" needs a critic; add a table [critic]'
            if critic is None
            else f'[critic] is for advantage.kind = "gae", and advantage.kind is "{recipe.advantage.kind}"; '
            'set advantage.kind = "gae", or remove [critic]'
        )
    if critic is None:
        return
    if critic.kind == "head" and critic.path is not None:
        yield 'critic.path is for a model of its own, and critic.kind is "head"; remove critic.path'
    if critic.warmup_steps >= recipe.steps:
        yield (
            f"critic.warmup_steps {critic.warmup_steps} leaves the policy none of the {recipe.steps} steps; "
            f"set critic.warmup_steps = {recipe.steps // 10}"
        )


def split_mistakes(recipe: Rl) -> Iterator[str]:
    if recipe.updates_per_step % recipe.passes_per_step:
        near = nearest_multiples(recipe.updates_per_step, recipe.passes_per_step)
        yield (
            f"updates_per_step {recipe.updates_per_step} is not divisible by passes_per_step "
            f"{recipe.passes_per_step}; try updates_per_step = {near}"
        )
    elif recipe.prompts_per_step % recipe.parts_per_pass:
        near = nearest_multiples(recipe.prompts_per_step, recipe.parts_per_pass)
        each = f" in {recipe.passes_per_step} passes" if recipe.passes_per_step > 1 else ""
        yield (
            f"prompts_per_step {recipe.prompts_per_step} (prompts) is not divisible by updates_per_step "
            f"{recipe.updates_per_step}{each}; try prompts_per_step = {near}"
        )


def sampling_mistakes(recipe: Rl) -> Iterator[str]:
    if recipe.sampling.temperature == 0:
        yield "sampling.temperature 0 gives equal samples, so nothing to learn; try 1.0"
    if recipe.reward.overlong_buffer >= recipe.sampling.max_new_tokens:
        yield (
            f"reward.overlong_buffer {recipe.reward.overlong_buffer} is not below sampling.max_new_tokens "
            f"{recipe.sampling.max_new_tokens}; try {recipe.sampling.max_new_tokens // 5}"
        )
    if recipe.loss.old_logprobs == "engine" and recipe.sampling.truncates:
        yield (
            "with top_p, top_k or min_p the engine samples from a cut distribution that the loss does "
            'not see; set loss.old_logprobs = "trainer"'
        )
    if recipe.loss.importance_cap is not None and recipe.loss.old_logprobs == "engine":
        yield (
            "loss.importance_cap weighs the trainer's log-probabilities against the engine's, so it "
            'needs both; set loss.old_logprobs = "trainer"'
        )


def group_mistakes(recipe: Rl) -> Iterator[str]:
    """A sample without siblings."""
    if recipe.samples_per_prompt > 1:
        return
    if recipe.advantage.kind not in ("gae", "reinforce++"):
        yield (
            f'advantage.kind "{recipe.advantage.kind}" compares the samples of a problem; '
            "set samples_per_prompt = 2 or more"
        )
    elif recipe.dynamic_sampling.enabled:
        yield (
            "with samples_per_prompt = 1 no group has two different rewards, so dynamic sampling would drop all; "
            "set dynamic_sampling.enabled = false"
        )


def level_mistakes(recipe: Rl) -> Iterator[str]:
    data = recipe.data
    if data.difficulty is not None and data.difficulty_key is not None:
        yield "data.difficulty and data.difficulty_key both say how hard problems are; remove one"
    if recipe.mix is not None and data.difficulty is None and data.difficulty_key is None:
        yield (
            "a mix of levels needs problems with levels; set data.difficulty to a file that `foresail data "
            "grade-difficulty` wrote, or data.difficulty_key to a column"
        )


def curriculum_mistakes(recipe: Rl) -> Iterator[str]:
    """Of the stages' lengths, and whatever is wrong with the recipe as it holds in each of them."""
    told = list(recipe.model_copy(update={"curriculum": ()}).mistakes())
    yield from told
    yield from length_mistakes(recipe.curriculum, recipe.steps)
    if recipe.dynamic_sampling.carry:
        yield (
            "dynamic_sampling.carry goes on with samples of the step before, which another stage of the "
            "curriculum may draw otherwise; set it to false"
        )
    for number, phase in enumerate(recipe.phases, start=1):
        yield from (f"curriculum stage {number}: {line}" for line in phase.mistakes() if line not in told)


def nearest_multiples(number: int, divisor: int) -> str:
    """nearest_multiples(100, 8) -> "96 or 104"."""
    below = number // divisor * divisor
    return f"{below} or {below + divisor}" if below else f"{below + divisor}"
