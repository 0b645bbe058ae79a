"""The recipe of pretraining: stages, each with its mixture of corpora, length, batch and learning rate."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field

from foresail.recipe.estimates.batches import Batches, count_batches, grouped, join_batches
from foresail.recipe.stages.pretrain_stage import (
    Corpus,
    HeldOutCorpora,
    HeldOutCorpus,
    PretrainStage,
    Stages,
    rate_of,
    span,
)
from foresail.recipe.stages.stage import Stage
from foresail.recipe.tables import parts
from foresail.recipe.tables.cluster import Cluster, rank_mistakes, training_mistakes
from foresail.recipe.tables.corpus import (
    CorpusError,
    Manifest,
    read_manifest,
    size_mistakes,
    tokenizer_mistakes,
)
from foresail.recipe.tables.long_context import LongContext
from foresail.recipe.tables.router import OptionalRouter
from foresail.recipe.tables.sources import name_mistakes, named, weight_mistakes


class Pretrain(Stage):
    """Pretraining on token shards, in stages."""

    unit: ClassVar[str] = "rows"
    chats: ClassVar[bool] = False
    lengthens: ClassVar[bool] = True

    stage: Literal["pretrain"] = Field("pretrain", description="pretraining")
    run: parts.Run = parts.Run(name="pretrain")
    model: parts.Model
    lora: parts.OptionalLora = None
    router: OptionalRouter = None
    mtp: parts.OptionalMtp = None
    stages: Stages = Field(description="training stages in order, tables [[stages]]")
    attention: Literal["document", "row"] = Field(
        "document",
        description="document: a token attends within its own document only; row: to all earlier tokens of its row",
    )
    held_out: HeldOutCorpora = Field((), description="held-out corpora, to measure the loss on")
    long_context: LongContext | None = Field(
        None, description="long-context tasks measured during training; none: not measured"
    )
    eval_every: int = Field(0, ge=0, description="steps between evaluations; 0: at the end of stages only")
    micro_batch_tokens: parts.MicroBatchTokens = 16_384
    recompute: parts.Recompute = False
    optimizer: parts.Optimizer = parts.Optimizer(lr=3e-4, weight_decay=0.1)
    checkpoints: parts.Checkpoints = parts.Checkpoints(every=100)
    cluster: Cluster = Cluster()

    @property
    def steps(self) -> int:
        return sum(span(stage).steps for stage in self.stages)

    @property
    def max_length(self) -> int:
        return max((stage.length for stage in self.stages), default=2)

    @property
    def samples_per_step(self) -> int:
        return max((stage.rows for stage in self.stages), default=1)

    @property
    def mtp_settings(self) -> parts.Mtp | None:
        return self.mtp

    def behind(self, position: int) -> float:
        """`position` as a share of the run's tokens, 0 to 1."""
        return position / sum(span(stage).tokens for stage in self.stages)

    def stage_label(self, number: int) -> str:
        return self.stages[number].name or f"stage {number + 1}"

    def long_from(self, number: int) -> int | None:
        """Number of tokens above which documents of a stage are long; None: not set."""
        before = self.stages[number - 1].length if number else None
        return self.stages[number].long_from or before

    def mistakes(self) -> Iterator[str]:
        if not self.stages:
            yield "there are no stages; add a table [[stages]] with data, tokens and batch_tokens"
            return
        for place, stage in named("stages", self.stages):
            yield from (f"{place}: {mistake}" for mistake in self.stage_mistakes(stage))
        for number, (place, stage) in enumerate(named("stages", self.stages)):
            if stage.long_share is None and stage.long_from is not None:
                yield f"{place}: long_from is for long_share; set long_share as well"
            if stage.long_share is not None and self.long_from(number) is None:
                yield f"{place}: no stage before says from which length documents are long; set long_from"
        yield from super().mistakes()
        yield from self.source_mistakes()
        yield from name_mistakes("held_out", self.held_out)
        if self.eval_every and not self.held_out:
            yield "eval_every measures the loss on held-out corpora, and there are none; add [[held_out]]"
        if self.long_context is not None and self.cluster.ranks > 1:
            yield (
                "long_context is measured on a single rank only; remove it, and run `foresail "
                "long-context` on the checkpoints"
            )
        yield from self.optimizer_mistakes()
        yield from rank_mistakes(self.cluster, self.samples_per_step, "batch_tokens")
        yield from training_mistakes(self.cluster, "pretraining")

    def stage_mistakes(self, stage: PretrainStage) -> Iterator[str]:
        yield from stage.mistakes(rate_of(stage, self.optimizer.lr))
        yield from name_mistakes("data", stage.data)
        yield from weight_mistakes(stage.data)

    def source_mistakes(self) -> Iterator[str]:
        """A name must mean one corpus with one limit throughout."""
        known: dict[str, Corpus] = {}
        split: dict[str, int | None] = {}
        counted: dict[str, str] = {}
        for number, (place, stage) in enumerate(named("stages", self.stages)):
            boundary = None if stage.long_share is None else self.long_from(number)
            for corpus in stage.data:
                first = known.setdefault(corpus.label, corpus)
                kinds = ("",) if stage.long_share is None else ("-short", "-long")
                for name in (f"{corpus.label}{kind}" for kind in kinds):
                    if (other := counted.setdefault(name, corpus.label)) != corpus.label:
                        yield (
                            f"{place}: {corpus.label} and {other} are both counted as {name} with long_share; "
                            "give one of them another name"
                        )
                if corpus.epochs is not None and split.setdefault(corpus.label, boundary) != boundary:
                    yield (
                        f"{place}: epochs of {corpus.label} count for the whole run, but by long_share its short "
                        "and long documents are counted anew here; give it another name, with epochs of its own"
                    )
                if (first.source, first.epochs) != (corpus.source, corpus.epochs):
                    yield (
                        f"{place}: {corpus.label} has another source or other epochs than in a stage before; they "
                        "count for the whole run: set them alike, or give it another name"
                    )

    def optimizer_mistakes(self) -> Iterator[str]:
        for key, instead in (("warmup", "warmup_tokens"), ("schedule", "decay"), ("final_share", "final_lr")):
            if getattr(self.optimizer, key) != parts.Optimizer.model_fields[key].default:
                yield f"optimizer.{key} counts updates; pretraining has stages.{instead}, in tokens"

    def count_batches(self) -> Batches:
        every = [
            count_batches(
                steps=span(stage).steps,
                samples=stage.rows,
                max_length=stage.length,
                micro_batch_tokens=self.packed_tokens,
            )
            for stage in self.stages
        ]
        return join_batches(every, self.steps) if len(every) > 1 else every[0]

    def refusals(self, num_records: int | None) -> Iterator[str]:
        yield from super().refusals(num_records)
        tokenizer = self.model.tokenizer or self.model.path
        for place, corpus in self.corpora():
            try:
                manifest = read_manifest(corpus.source)
                yield from (f"{place}: {mistake}" for mistake in size_mistakes(corpus.source, manifest))
                if tokenizer is not None and (Path(tokenizer) / "tokenizer.json").is_file():
                    mistakes = tokenizer_mistakes(corpus.source, manifest, tokenizer)
                    yield from (f"{place}: {mistake}" for mistake in mistakes)
            except (CorpusError, OSError) as error:
                yield f"{place}: {error}"

    def corpora(self) -> Iterator[tuple[str, Corpus | HeldOutCorpus]]:
        """Each corpus once, with the first place in the recipe that names it."""
        seen: set[str] = set()
        every = [
            (f"{stage_place}.{place}", corpus)
            for stage_place, stage in named("stages", self.stages)
            for place, corpus in named("data", stage.data)
        ]
        for place, corpus in [*every, *named("held_out", self.held_out)]:
            if corpus.source not in seen:
                seen.add(corpus.source)
                yield place, corpus

    def warnings(self) -> Iterator[str]:
        yield from super().warnings()
        yield from self.supply_warnings()

    def supply_warnings(self) -> Iterator[str]:
        """Corpora that end before their share of the run is drawn; the run ends where all of a stage do."""
        warned: set[str] = set()
        manifests: dict[str, Manifest] = {}
        limits = {corpus.label: corpus for stage in self.stages for corpus in stage.data}
        for label, corpus in limits.items():
            try:
                manifests[label] = read_manifest(corpus.source)
            except (CorpusError, OSError):
                return  # it is refused
        rest = {
            label: math.inf if corpus.epochs is None else float(corpus.epochs * manifests[label].tokens)
            for label, corpus in limits.items()
        }
        for place, stage in named("stages", self.stages):
            weights = {
                corpus.label: float(manifests[corpus.label].tokens)
                if corpus.weight is None
                else corpus.weight
                for corpus in stage.data
            }
            if (available := sum(rest[label] for label in weights)) < stage.tokens:
                yield (
                    f"{place} asks for {stage.tokens:,} tokens, and its corpora have about {available:,.0f} "
                    "left in their epochs: the whole run ends there, without the later stages; raise "
                    "epochs, or lower its tokens"
                )
                return
            total = sum(weights.values())
            for label, weight in weights.items():
                share = stage.tokens * weight / total
                if label not in warned and share > rest[label]:
                    warned.add(label)
                    yield (
                        f"{place}: {label} has {rest[label]:,.0f} tokens left in its epochs, and its share is "
                        f"{share:,.0f}: when it runs out the others go on; raise its epochs, or lower its weight"
                    )
            rest = share_out(stage.tokens, weights, rest)

    def batch_notes(self) -> Iterator[str]:
        for number, stage in enumerate(self.stages):
            size = span(stage)
            yield (
                f"{self.stage_label(number)}: {grouped(size.tokens)} tokens in {grouped(size.steps)} updates of "
                f"{grouped(stage.rows)} rows of {grouped(stage.length)}, rate {rate_of(stage, self.optimizer.lr):g}"
                f"{'' if stage.decay == 'constant' else f' to {stage.final_lr:g} ({stage.decay})'}"
            )

    def files(self) -> Mapping[str, str]:
        return {}


def share_out(tokens: float, weights: Mapping[str, float], left: Mapping[str, float]) -> dict[str, float]:
    """Tokens left of each corpus after so many were drawn by weight; when one ends, the others go on.

    share_out(10, {"a": 1, "b": 1}, {"a": 3, "b": 20}) -> {"a": 0, "b": 13}
    """
    after = dict(left)
    while live := [label for label in weights if after[label] > 0]:
        total = sum(weights[label] for label in live)
        first = min(live, key=lambda label: after[label] / weights[label])  # the corpus that ends next
        drawn = min(tokens, after[first] / weights[first] * total)
        for label in live:
            after[label] -= drawn * weights[label] / total
        if drawn >= tokens:
            break
        after[first] = 0.0  # despite rounding
        tokens -= drawn
    return after
