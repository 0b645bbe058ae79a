"""The recipe of supervised fine-tuning: on one mixture, or in stages with a mixture each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal, Self

from pydantic import Field

from foresail.recipe.estimates.batches import Batches, grouped, join_batches
from foresail.recipe.stages.sft_stage import (
    Resample,
    SftStages,
    resample_mistakes,
    stage_changes,
)
from foresail.recipe.stages.stage import Stage
from foresail.recipe.tables import parts
from foresail.recipe.tables.cluster import Cluster, rank_mistakes, training_mistakes
from foresail.recipe.tables.router import OptionalRouter
from foresail.recipe.tables.sources import (
    Chatlog,
    Chats,
    Conversations,
    HeldOutChats,
    count_all,
    name_mistakes,
    named,
    supply_warnings,
    weight_mistakes,
    window_mistakes,
)
from foresail.recipe.tables.stage_lengths import length_mistakes, stage_lengths


class Sft(Stage):
    """Supervised fine-tuning on conversations."""

    unit: ClassVar[str] = "conversations"

    stage: Literal["sft"] = Field("sft", description="supervised fine-tuning")
    run: parts.Run = parts.Run(name="sft")
    model: parts.Model
    lora: parts.OptionalLora = None
    router: OptionalRouter = None
    mtp: parts.OptionalMtp = None
    data: Chats = Field(
        (),
        description="conversations: JSONL or parquet with messages, prompt+completion, conversations, "
        "instruction+output or text; or tables [[data]], a mixture",
    )
    held_out: HeldOutChats = Field(
        (), description="held-out conversations in files of their own, to measure the loss on"
    )
    eval_every: int = Field(0, ge=0, description="steps between evaluations; 0: at the end only")
    steps: int = Field(gt=0, description="optimiser updates")
    batch_size: int = Field(64, gt=0, description="conversations per update")
    max_length: int = Field(
        2048,
        gt=1,
        description="longest conversation, in tokens; longer ones are an error, unless data.too_long says "
        "otherwise",
    )
    stages: SftStages = Field(
        (), description="training stages in order, tables [[stages]]; none: the same settings for all steps"
    )
    neftune_alpha: float | None = Field(
        None,
        gt=0,
        description="NEFTune: scale of the noise on embeddings during training, 5 to 15; none: no noise",
    )
    micro_batch_tokens: parts.MicroBatchTokens = 8192
    recompute: parts.Recompute = False
    optimizer: parts.Optimizer = parts.Optimizer(lr=1e-5)
    checkpoints: parts.Checkpoints = parts.Checkpoints(every=50)
    cluster: Cluster = Cluster()

    @property
    def phases(self) -> tuple[Self, ...]:
        """The recipe as it holds in each stage; itself where there is none."""
        lengths = stage_lengths(self.stages, self.steps) if self.stages else []
        staged = (
            self.model_copy(update=stage_changes(stage, self.optimizer, steps))
            for stage, steps in zip(self.stages, lengths, strict=True)
        )
        return tuple(staged) or (self,)

    def resampled(self, number: int) -> tuple[Resample, int] | None:
        """The resampling of a stage, and the number of the earlier stage; both count from 0."""
        resample = self.stages[number].resample if self.stages else None
        return (
            None
            if resample is None
            else (resample, (number if resample.stage is None else resample.stage) - 1)
        )

    def stage_label(self, number: int) -> str:
        return self.stages[number].name or f"stage {number + 1}"

    def logs(self) -> Iterator[tuple[str, Chatlog]]:
        """All conversations with their place in the recipe; those of several stages once."""
        yielded: set[Chatlog] = set()
        for number, phase in enumerate(self.phases, start=1):
            own = bool(self.stages) and bool(self.stages[number - 1].data)
            for place, source in named(f"stages#{number}.data" if own else "data", phase.data):
                if source not in yielded:
                    yielded.add(source)
                    yield place, source
        yield from named("held_out", self.held_out)

    @property
    def measures(self) -> bool:
        """Whether some conversations are held out to measure the loss."""
        return bool(self.held_out) or any(source.held_out for phase in self.phases for source in phase.data)

    @property
    def mtp_settings(self) -> parts.Mtp | None:
        return self.mtp

    @property
    def samples_per_step(self) -> int:
        return max(phase.batch_size for phase in self.phases)

    def mistakes(self) -> Iterator[str]:
        yield from super().mistakes()
        if self.stages:
            mistakes = [
                *length_mistakes("stages", self.stages, self.steps),
                *resample_mistakes(self.stages),
            ]
            yield from mistakes
            if mistakes:
                return
            yield from self.stage_mistakes()
        elif not self.data:
            yield "data names no conversations; set data to a file, or add a table [[data]]"
        yield from rank_mistakes(self.cluster, min(phase.batch_size for phase in self.phases), "batch_size")
        yield from training_mistakes(self.cluster, "sft")
        yield from name_mistakes("data", self.data)
        yield from weight_mistakes(self.data)
        yield from window_mistakes(self.logs())
        yield from self.held_out_mistakes()
        yield from self.neftune_mistakes()

    def stage_mistakes(self) -> Iterator[str]:
        for number, phase in enumerate(self.phases, start=1):
            place = f"stages#{number}"
            if not phase.data and self.resampled(number - 1) is None:
                yield f"{place} has no data, nor has the recipe; set {place}.data"
            if phase.max_length > self.max_length:
                yield (
                    f"{place}.max_length {phase.max_length} exceeds max_length {self.max_length}, which is that of "
                    f"the whole run; set max_length = {phase.max_length}"
                )
            yield from (f"{place}: {mistake}" for mistake in name_mistakes("data", phase.data))
            yield from (f"{place}: {mistake}" for mistake in weight_mistakes(phase.data))

    def held_out_mistakes(self) -> Iterator[str]:
        """A name must mean one held-out set; conversations held out of one stage are held out of all."""
        names: dict[str, str] = {}
        amounts: dict[str, tuple[int | None, float]] = {}
        for source in (source for phase in self.phases for source in phase.data):
            if names.setdefault(source.label, source.source) != source.source and self.stages:
                yield f"{source.label} is another source than in a stage before; give it another name"
            amount = (source.limit, source.held_out)
            if (first := amounts.setdefault(source.source, amount)) != amount and max(first[1], amount[1]):
                yield (
                    f"{source.source} has another limit or held_out in one place than in another, so that "
                    "one would train on what another holds out; set the same in all"
                )
        yield from name_mistakes("held_out", self.held_out)
        measured = {source.label for phase in self.phases for source in phase.data if source.held_out}
        for log in self.held_out:
            if log.label in measured:
                yield (
                    f'held_out has the name "{log.label}", and so has a held-out part of data; give it '
                    "another name"
                )
        if self.eval_every and not self.measures:
            yield "eval_every measures the loss on held-out conversations; set data.held_out, or add [[held_out]]"

    def neftune_mistakes(self) -> Iterator[str]:
        if self.neftune_alpha is not None and self.mtp is not None:
            yield "neftune_alpha does not go with [mtp], whose layers read embeddings of their own; remove one"
        if self.neftune_alpha is not None and self.cluster.context > 1:
            yield "neftune_alpha needs whole sequences on every rank; set cluster.context = 1, or remove it"

    def count_batches(self) -> Batches:
        every = [super(Sft, phase).count_batches() for phase in self.phases]
        return join_batches(every, self.steps) if len(every) > 1 else every[0]

    def sources(self) -> dict[str, str]:
        return {place: log.source for place, log in self.logs()}

    def count_records(self) -> int | None:
        return count_all([log for _, log in self.logs() if isinstance(log, Conversations)])

    def warnings(self) -> Iterator[str]:
        yield from super().warnings()
        for number, phase in enumerate(self.phases):
            if self.resampled(number) is None and phase.data:
                yield from supply_warnings(phase.data, phase.steps * phase.batch_size, self.unit)

    def batch_notes(self) -> Iterator[str]:
        """stage 2: 500 steps of 64 conversations, up to 32,768 tokens, rate 5e-06 (cosine)"""
        for number, phase in enumerate(self.phases if self.stages else ()):
            again = self.resampled(number)
            yield (
                f"{self.stage_label(number)}: {grouped(phase.steps)} steps of {grouped(phase.batch_size)} "
                f"conversations, up to {grouped(phase.max_length)} tokens, rate {phase.optimizer.lr:g} "
                f"({phase.optimizer.schedule})"
                + ("" if again is None else f", with the best {again[0].keep:.0%} of stage {again[1] + 1}")
            )
