"""One recipe type per stage: the tables of `parts` put together, with the checks across them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, Self

from pydantic import Field, model_validator

from foresail.recipe import parts
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
    data: str = Field(description="conversations: JSONL or parquet with messages, prompt+completion or text")
    steps: int = Field(gt=0, description="optimiser updates")
    batch_size: int = Field(64, gt=0, description="conversations per update")
    max_length: int = Field(2048, gt=1, description="tokens; longer conversations are an error")
    micro_batch_tokens: int = Field(8192, gt=0, description="tokens per packed micro-batch")
    optimizer: parts.Optimizer = parts.Optimizer(lr=1e-5)
    checkpoints: parts.Checkpoints = parts.Checkpoints(every=50)

    def mistakes(self) -> Iterator[str]:
        yield from model_mistakes(self.model)
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
    data: parts.Problems
    eval: parts.Problems | None = Field(None, description="held-out problems")
    eval_every: int = Field(0, ge=0, description="steps between evaluations (greedy); 0: never")
    steps: int = Field(gt=0, description="rollout-and-update rounds")
    prompts_per_step: int = Field(64, gt=0, description="problems per step")
    samples_per_prompt: int = Field(8, gt=1, description="responses per problem")
    updates_per_step: int = Field(1, gt=0, description="optimiser updates per step, over disjoint parts")
    max_prompt_tokens: int = Field(1024, gt=0, description="longer prompts are an error")
    micro_batch_tokens: int = Field(8192, gt=0, description="tokens per packed micro-batch")
    sampling: parts.Sampling = parts.Sampling()
    advantage: parts.Advantage = parts.Advantage()
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
    def max_length(self) -> int:
        return self.max_prompt_tokens + self.sampling.max_new_tokens

    @property
    def engine_room(self) -> parts.Engine:
        """The engine's settings with no more rows than a step has samples: its cache is sized by them."""
        most = min(self.engine.max_running, self.samples_per_step)
        return self.engine.model_copy(update={"max_running": most})

    def mistakes(self) -> Iterator[str]:
        yield from model_mistakes(self.model)
        yield from loss_mistakes(self.loss)
        if self.prompts_per_step % self.updates_per_step:
            near = nearest_multiples(self.prompts_per_step, self.updates_per_step)
            yield (
                f"prompts_per_step {self.prompts_per_step} (prompts) is not divisible by updates_per_step "
                f"{self.updates_per_step}; try prompts_per_step = {near}"
            )
        if self.max_length > self.micro_batch_tokens:
            yield (
                f"max_prompt_tokens {self.max_prompt_tokens} + sampling.max_new_tokens "
                f"{self.sampling.max_new_tokens} = {self.max_length} tokens do not fit a micro-batch of "
                f"{self.micro_batch_tokens} tokens; set micro_batch_tokens = {self.max_length} or more"
            )
        if self.sampling.temperature == 0:
            yield "sampling.temperature 0 gives equal samples, so nothing to learn; try 1.0"
        if self.reward.overlong_buffer >= self.sampling.max_new_tokens:
            yield (
                f"reward.overlong_buffer {self.reward.overlong_buffer} is not below sampling.max_new_tokens "
                f"{self.sampling.max_new_tokens}; try {self.sampling.max_new_tokens // 5}"
            )
        if self.loss.old_logprobs == "engine" and self.sampling.truncates:
            yield (
                "with top_p, top_k or min_p the engine samples from a cut distribution that the loss does "
                'not see; set loss.old_logprobs = "trainer"'
            )
        if self.loss.importance_cap is not None and self.loss.old_logprobs == "engine":
            yield (
                "loss.importance_cap weighs the trainer's log-probabilities against the engine's, so it "
                'needs both; set loss.old_logprobs = "trainer"'
            )
        if self.eval_every and self.eval is None:
            yield "eval_every is set but there is no [eval] table; add one with source = …"


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


def nearest_multiples(number: int, divisor: int) -> str:
    """nearest_multiples(100, 8) -> "96 or 104"."""
    below = number // divisor * divisor
    return f"{below} or {below + divisor}" if below else f"{below + divisor}"
