"""The base of all stages' recipes, with the methods that each may override.

A new stage declares the keys below, says how many samples a step has, and overrides methods where it differs: its
data, more memory, checks and lines of its own. `stages/sft.py` is the plainest stage, `stages/rl.py` overrides all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar, Self

from foresail.recipe.estimates.batches import Batches, count_batches
from foresail.recipe.estimates.disk import CheckpointSize
from foresail.recipe.estimates.machine import guess_device
from foresail.recipe.estimates.memory import (
    FLOAT32,
    VALUE_BYTES,
    Device,
    Dtype,
    ExtraMemory,
    Memory,
    dtype_of,
    logits_bytes,
    state_bytes,
    token_bytes,
    trained_body,
    trained_parameters,
)
from foresail.recipe.estimates.placement import Placement, lines_for, place, placement_refusals
from foresail.recipe.shape.hf_config import check_family
from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.shape.projections import count_adapters
from foresail.recipe.tables import parts
from foresail.recipe.tables.cluster import Cluster
from foresail.recipe.tables.inputs import count_records
from foresail.recipe.tables.mtp import mtp_mistakes, mtp_refusals
from foresail.recipe.tables.part import CheckedPart
from foresail.recipe.tables.router import OptionalRouter, router_mistakes, router_refusals


class Stage(CheckedPart):
    """A stage's recipe: the tables of `parts` put together, with the checks across them."""

    unit: ClassVar[str] = "samples"  # what batches are made of, in words
    chats: ClassVar[bool] = True  # whether it needs a chat template
    scores: ClassVar[bool] = False  # whether it trains a reward model
    lengthens: ClassVar[bool] = False  # whether it may make the model's context longer

    if TYPE_CHECKING:
        # Declared by each stage, or kind of stage, in the order in which its recipe.toml shows them.
        stage: str
        run: parts.Run
        model: parts.Model
        lora: parts.OptionalLora
        router: OptionalRouter
        cluster: Cluster
        micro_batch_tokens: parts.MicroBatchTokens
        recompute: parts.Recompute
        optimizer: parts.Optimizer
        checkpoints: parts.Checkpoints

        @property
        def steps(self) -> int:
            """Rounds of the stage's loop."""

        @property
        def max_length(self) -> int:
            """Tokens of the longest sample."""

    @property
    def packed_tokens(self) -> int:
        """Tokens of a full micro-batch: every rank of a context group computes micro_batch_tokens of them."""
        return self.micro_batch_tokens * self.cluster.context

    @property
    def tokens_at_once(self) -> int:
        """The most tokens that a rank computes: its slice of the largest micro-batch."""
        return -(-self.count_batches().micro_batch.tokens // self.cluster.context)

    @property
    def samples_per_step(self) -> int:
        raise NotImplementedError

    @property
    def num_updates(self) -> int:
        """Updates of the model in the whole run."""
        return self.steps

    @property
    def mtp_settings(self) -> parts.Mtp | None:
        """How MTP layers are trained; a stage without that key leaves them as they are."""
        return None

    @property
    def engines(self) -> parts.Rollout:
        """The rollout workers that have to be placed, where the stage has any."""
        return parts.Rollout()

    def place(self) -> Placement:
        """The placement of its processes on a Ray cluster."""
        return place(self.cluster, self.engines, guess_device(self.run.device))

    @property
    def engines_beside(self) -> int:
        """Processes of this machine that generate while the model is trained."""
        return 0

    def for_followers(self) -> Self:
        """The recipe for followers: the models' keys, without what only rank 0's process has."""
        return self

    def mistakes(self) -> Iterator[str]:
        """Mistakes of the recipe itself, on any machine."""
        yield from self.learner_mistakes()
        if self.max_length > self.packed_tokens:
            yield f"max_length {self.max_length} does not {self.larger_batches()}"

    def learner_mistakes(self) -> Iterator[str]:
        """Checks of the model, its training and its checkpoints."""
        yield from model_mistakes(self.model)
        yield from optimizer_mistakes(self.model, self.optimizer, "optimizer", self.lora)
        yield from router_mistakes(self.router, self.lora)
        yield from self.checkpoint_mistakes()
        yield from mtp_mistakes(
            self.mtp_settings, self.model, self.lora, self.router, context=self.cluster.context
        )

    def larger_batches(self) -> str:
        """End of the message that the longest sample does not "fit a micro-batch of …", with what to do."""
        context, tokens = self.cluster.context, -(-self.max_length // self.cluster.context)
        who = "" if context == 1 else f" on {context} ranks"
        more = "" if self.cluster.ranks == context else ", or raise cluster.context: more ranks share it then"
        return (
            f"fit a micro-batch of {self.packed_tokens} tokens{who}; "
            f"set micro_batch_tokens = {tokens} or more{more}"
        )

    @property
    def keeps_best(self) -> bool:
        """Whether a best checkpoint is kept beside the newest ones."""
        return self.checkpoints.best is not None

    def checkpoint_mistakes(self) -> Iterator[str]:
        settings = self.checkpoints
        if settings.patience is not None and settings.best is None:
            yield "checkpoints.patience waits for a metric; name it with checkpoints.best"

    def count_batches(self) -> Batches:
        return count_batches(
            steps=self.steps,
            samples=self.samples_per_step,
            max_length=self.max_length,
            micro_batch_tokens=self.packed_tokens,
        )

    def estimate_memory(self, shape: ModelShape, device: Device) -> Memory:
        """For SmolLM2-135M in bfloat16: 0.27 GB of weights, 0.54 GB of gradients, 1.61 GB of optimiser.

        Of models that learn in turn, the larger one's gradients and activations count.
        """
        dtype, tokens = dtype_of(self.model.dtype, device), self.tokens_at_once
        value_bytes, extra = VALUE_BYTES[dtype], self.extra_memory(shape, dtype)
        pairs = 0 if self.lora is None else count_adapters(shape, self.lora.rank, self.lora.targets)
        trained = pairs or trained_parameters(shape, self.mtp_settings)
        body = trained_body(shape, self.mtp_settings)
        gradients = FLOAT32 * max([trained, *(learner.num_parameters for learner in extra.learners)])
        activations = tokens * max(
            token_bytes(learner, value_bytes, device, recompute=self.recompute)
            for learner in (shape, *extra.learners)
        )
        logits = logits_bytes(shape, tokens, value_bytes, device)
        memory = Memory(
            weights=(shape.num_parameters + pairs) * value_bytes,
            gradients=gradients,
            optimizer=round(trained * state_bytes(self.optimizer.states, dtype))
            - (FLOAT32 * min(trained, body) if self.optimizer.name == "muon" else 0),
            activations=activations,
            logits=logits,
            kv_cache=extra.kv_cache,
            reference=extra.reference,
            teacher=extra.teacher,
            critic=extra.critic,
            reward_model=extra.reward_model,
            engine_weights=extra.engine_weights,
            shared=min(extra.kv_cache, gradients + activations + logits)
            if device == "cuda" and extra.lends
            else 0,
        )
        return memory.on_ranks(self.cluster.ranks, device)

    def measure_checkpoint(self, shape: ModelShape, device: Device) -> CheckpointSize:
        """If checkpoints.dtype rounds the weights, the exact ones are saved, too."""
        # whatever shares ranks have
        whole = self.model_copy(update={"cluster": Cluster(), "micro_batch_tokens": self.packed_tokens})
        memory, dtype = whole.estimate_memory(shape, device), dtype_of(self.model.dtype, device)
        saved = dtype if self.checkpoints.dtype == "auto" else self.checkpoints.dtype
        exact = self.lora is None and saved not in (dtype, "float32")
        wider = shape.num_parameters * (VALUE_BYTES[saved] - VALUE_BYTES[dtype])
        return CheckpointSize(
            weights=memory.weights + wider,
            state=memory.optimizer + memory.critic + (memory.weights if exact else 0),
        )

    def extra_memory(self, shape: ModelShape, dtype: Dtype) -> ExtraMemory:
        """Memory besides the model, its gradients and its optimiser."""
        return ExtraMemory()

    # For the preflight: checks, and lines of the report.

    def sources(self) -> Mapping[str, str]:
        """Data by key, files or generators; what the run draws from comes first."""
        return {}

    def count_records(self) -> int | None:
        """Number of records that the run draws from; None if it cannot be counted quickly."""
        return next(map(count_records, self.sources().values()), None)

    def refusals(self, num_records: int | None) -> Iterator[str]:
        """Reasons why this stage cannot run here."""
        yield from placement_refusals(self.cluster, self.engines, guess_device(self.run.device))

    def shape_refusals(self, shape: ModelShape) -> Iterator[str]:
        """Reasons why this stage cannot run with a model of this shape."""
        yield from router_refusals(self.router, shape)
        yield from mtp_refusals(self.mtp_settings, shape)
        if shape.scores and not self.scores:
            yield (
                f"model.path {self.model.path} is a reward model, which cannot generate text; name a "
                "language model, or train it further with foresail reward-model"
            )

    def context_refusal(self, context: int) -> str:
        """The message for samples longer than the model's context."""
        return (
            f"max_length {self.max_length} exceeds the model's context of {context} tokens; "
            f"set max_length = {context} or less"
        )

    def warnings(self) -> Iterator[str]:
        """Settings that run, but are probably mistakes."""
        settings = self.checkpoints
        if settings.best is not None and "loss" in settings.best and settings.best_is == "max":
            yield f'checkpoints.best = "{settings.best}" keeps the highest value; set checkpoints.best_is = "min"'

    def batch_notes(self) -> Iterator[str]:
        """Lines below the table of batches."""
        yield from ()

    def placement_lines(self) -> Iterator[str]:
        """The placement of processes, if there is more than this one."""
        if self.cluster.kind == "ray":
            yield from lines_for(self.cluster, self.engines, guess_device(self.run.device))

    def memory_notes(self) -> Mapping[str, str]:
        """Notes beside the sizes in the table of memory, by part."""
        return {}

    def files(self) -> Mapping[str, str]:
        """Files that this stage writes besides metrics, timeline and checkpoints."""
        return {}


def model_mistakes(model: parts.Model) -> Iterator[str]:
    if (model.path is None) == (model.shape is None):
        yield "set one of model.path (a checkpoint) and [model.shape] (fresh weights)"
    if model.shape is not None:
        if model.tokenizer is None:
            yield "fresh weights come without a tokenizer; set model.tokenizer to its directory"
        try:
            check_family(model.shape)
        except ValueError as error:
            yield f"model.shape: {error}"


def optimizer_mistakes(
    model: parts.Model, optimizer: parts.Optimizer, place: str, lora: parts.Lora | None = None
) -> Iterator[str]:
    if model.dtype == "float16" and optimizer.states == "8bit":
        yield f'{place}.states = "8bit" does not go with float16; set model.dtype = "bfloat16"'
    if optimizer.name == "muon" and optimizer.states == "8bit":
        yield f'{place}.states = "8bit" is AdamW\'s; Muon keeps one float32 momentum: leave it out'
    if optimizer.name == "muon" and lora is not None:
        yield f'{place}.name = "muon" is for whole matrices, and [lora] trains adapters; remove one of them'
