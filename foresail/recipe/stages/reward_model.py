"""The recipe of a reward model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

from pydantic import Field

from foresail.recipe.estimates.disk import CheckpointSize
from foresail.recipe.estimates.memory import Device, Memory
from foresail.recipe.shape.hf_config import SCORING
from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.stages.stage import Stage
from foresail.recipe.tables import parts
from foresail.recipe.tables.cluster import Cluster, rank_mistakes, training_mistakes
from foresail.recipe.tables.preferences import pair_mistakes
from foresail.recipe.tables.router import OptionalRouter
from foresail.recipe.tables.sources import (
    HeldOutPairs,
    PairLength,
    PairSources,
    count_all,
    name_mistakes,
    pair_paths,
    supply_warnings,
    weight_mistakes,
)


class RewardModel(Stage):
    """A reward model from preference pairs."""

    unit: ClassVar[str] = "answers"
    scores: ClassVar[bool] = True

    stage: Literal["reward-model"] = Field("reward-model", description="a reward model from preference pairs")
    run: parts.Run = parts.Run(name="reward-model")
    model: parts.Model
    lora: parts.OptionalLora = None
    router: OptionalRouter = None
    data: PairSources
    eval: HeldOutPairs = ()
    eval_every: int = Field(50, ge=0, description="steps between measurements on [eval]; 0: never")
    steps: int = Field(gt=0, description="optimiser updates")
    batch_size: int = Field(64, gt=0, description="pairs per update")
    max_length: PairLength = 2048
    margin: float = Field(1.0, ge=0, description="factor on the margins in the data; 0: ignore them")
    center: float = Field(
        0.0, ge=0, description="weight of the loss that centers scores around 0; 0.01 is usual"
    )
    micro_batch_tokens: parts.MicroBatchTokens = 8192
    recompute: parts.Recompute = False
    optimizer: parts.Optimizer = parts.Optimizer(lr=1e-5)
    checkpoints: parts.Checkpoints = parts.Checkpoints(every=50)
    cluster: Cluster = Cluster()

    @property
    def samples_per_step(self) -> int:
        return 2 * self.batch_size

    def mistakes(self) -> Iterator[str]:
        yield from super().mistakes()
        if not self.data:
            yield "data names no preference pairs; set data to a file, or add a table [[data]]"
        yield from pair_mistakes(self.max_length, self.packed_tokens, self.cluster.context)
        if self.cluster.context > 1:
            yield "a reward model needs whole answers on every rank; set cluster.context = 1"
        yield from rank_mistakes(self.cluster, self.batch_size, "batch_size")
        yield from training_mistakes(self.cluster, "reward-model")
        yield from name_mistakes("data", self.data)
        yield from name_mistakes("eval", self.eval)
        yield from weight_mistakes(self.data)

    def shape_refusals(self, shape: ModelShape) -> Iterator[str]:
        yield from super().shape_refusals(shape)
        if shape.family not in SCORING:
            yield (
                f"there is no reward model of family {shape.family}, in transformers either; "
                f"use one of {', '.join(SCORING)}"
            )

    def estimate_memory(self, shape: ModelShape, device: Device) -> Memory:
        return super().estimate_memory(shape.with_score(), device)

    def measure_checkpoint(self, shape: ModelShape, device: Device) -> CheckpointSize:
        return super().measure_checkpoint(shape.with_score(), device)

    def sources(self) -> dict[str, str]:
        return pair_paths(self.data, self.eval)

    def count_records(self) -> int | None:
        return count_all(self.data)

    def warnings(self) -> Iterator[str]:
        yield from super().warnings()
        yield from supply_warnings(self.data, self.steps * self.batch_size, "pairs")
        if self.eval and self.eval_every == 0:
            yield "eval names pairs, and eval_every = 0 never measures on them"
