"""The base of preference recipes, whose data are pairs of answers or answers judged one by one.
A stage declares its data and its loss, and overrides what differs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, TypeVar

from pydantic import Field

from foresail.recipe.estimates.memory import VALUE_BYTES, Dtype, ExtraMemory
from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.stages.critic import second_model_refusals
from foresail.recipe.stages.stage import Stage
from foresail.recipe.tables import parts
from foresail.recipe.tables.cluster import Cluster, rank_mistakes, training_mistakes
from foresail.recipe.tables.preferences import PreferenceLoss, Reference, UnpairedLoss
from foresail.recipe.tables.router import OptionalRouter
from foresail.recipe.tables.sources import (
    HeldOutPreferences,
    PairLength,
    Preferences,
    count_all,
    name_mistakes,
    pair_paths,
    supply_warnings,
    weight_mistakes,
)


class PreferenceStage(Stage):
    """A stage that trains on preferences, with a reference model."""

    unit: ClassVar[str] = "answers"
    entries: ClassVar[str]  # what a row of its data is, in words

    # In the order in which recipe.toml shows them; a key that a stage declares again keeps its place.
    stage: str
    run: parts.Run
    model: parts.Model
    lora: parts.OptionalLora = None
    router: OptionalRouter = None
    mtp: parts.OptionalMtp = None
    data: tuple[Preferences, ...]
    eval: tuple[HeldOutPreferences, ...] = ()
    eval_every: int = Field(50, ge=0, description="steps between measurements on [eval]; 0: never")
    steps: int = Field(gt=0, description="optimiser updates")
    batch_size: int
    max_length: PairLength = 2048
    loss: PreferenceLoss | UnpairedLoss
    reference: Reference = Reference()
    micro_batch_tokens: parts.MicroBatchTokens = 8192
    recompute: parts.Recompute = False
    optimizer: parts.Optimizer = parts.Optimizer(lr=1e-6)
    checkpoints: parts.Checkpoints = parts.Checkpoints(every=50)
    cluster: Cluster = Cluster()

    @property
    def mtp_settings(self) -> parts.Mtp | None:
        return self.mtp

    @property
    def holds_reference(self) -> bool:
        """Whether a reference model stays in memory beside the trained one."""
        is_separate = self.lora is None or self.reference.path is not None
        return self.loss.needs_reference and not self.reference.kept and is_separate

    def mistakes(self) -> Iterator[str]:
        yield from super().mistakes()
        if not self.data:
            yield f"data names no {self.entries}; set data to a file, or add a table [[data]]"
        yield from self.loss.mistakes()
        yield from self.reference_mistakes()
        yield from rank_mistakes(self.cluster, self.batch_size, "batch_size")
        yield from training_mistakes(self.cluster, self.stage)
        yield from name_mistakes("data", self.data)
        yield from name_mistakes("eval", self.eval)
        yield from weight_mistakes(self.data)

    def reference_mistakes(self) -> Iterator[str]:
        if self.reference.path is not None and not self.loss.needs_reference:
            yield f'loss.kind = "{self.loss.kind}" has no reference; remove reference.path'
        below_pairs = self.lora is not None and self.reference.path is None and not self.reference.kept
        if self.cluster.ranks > 1 and below_pairs and self.loss.needs_reference:
            yield (
                "on several ranks the model without its LoRA adapters cannot be the reference in memory; "
                "set reference.kept = true, or reference.path, or cluster.ranks = 1"
            )

    def sources(self) -> dict[str, str]:
        return pair_paths(self.data, self.eval)

    def count_records(self) -> int | None:
        return count_all(self.data)

    def extra_memory(self, shape: ModelShape, dtype: Dtype) -> ExtraMemory:
        size = shape.without_mtp().num_parameters * VALUE_BYTES[dtype] if self.holds_reference else 0
        return ExtraMemory(reference=size)

    def refusals(self, num_records: int | None) -> Iterator[str]:
        yield from super().refusals(num_records)
        yield from second_model_refusals("reference.path", self.reference.path, self.max_length)

    def warnings(self) -> Iterator[str]:
        yield from super().warnings()
        yield from self.loss.warnings()
        yield from supply_warnings(self.data, self.steps * self.batch_size, self.entries)

    def files(self) -> dict[str, str]:
        if not (self.loss.needs_reference and self.reference.kept):
            return {}
        return {
            "reference.safetensors": f"the reference's log-probabilities of the {self.entries} of the run"
        }


Preferring = TypeVar("Preferring", bound=PreferenceStage)
