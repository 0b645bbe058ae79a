"""The recipe of supervised fine-tuning."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

from pydantic import Field

from foresail.recipe import parts
from foresail.recipe.cluster import Cluster, rank_mistakes, training_mistakes
from foresail.recipe.router import OptionalRouter
from foresail.recipe.sources import (
    Chats,
    count_all,
    name_mistakes,
    named,
    supply_warnings,
    weight_mistakes,
    window_mistakes,
)
from foresail.recipe.stage import Stage


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
        description="conversations: JSONL or parquet with messages, prompt+completion, conversations, "
        "instruction+output or text; or tables [[data]], a mixture"
    )
    steps: int = Field(gt=0, description="optimiser updates")
    batch_size: int = Field(64, gt=0, description="conversations per update")
    max_length: int = Field(
        2048, gt=1, description="tokens; longer conversations are an error, unless data.too_long drops them"
    )
    micro_batch_tokens: parts.MicroBatchTokens = 8192
    recompute: parts.Recompute = False
    optimizer: parts.Optimizer = parts.Optimizer(lr=1e-5)
    checkpoints: parts.Checkpoints = parts.Checkpoints(every=50)
    cluster: Cluster = Cluster()

    @property
    def mtp_settings(self) -> parts.Mtp | None:
        return self.mtp

    @property
    def samples_per_step(self) -> int:
        return self.batch_size

    def mistakes(self) -> Iterator[str]:
        yield from super().mistakes()
        if not self.data:
            yield "data names no conversations; set data to a file, or add a table [[data]]"
        yield from rank_mistakes(self.cluster, self.batch_size, "batch_size")
        yield from training_mistakes(self.cluster, "sft")
        yield from name_mistakes("data", self.data)
        yield from weight_mistakes(self.data)
        yield from window_mistakes(self.data)

    def sources(self) -> dict[str, str]:
        return {place: source.source for place, source in named("data", self.data)}

    def count_records(self) -> int | None:
        return count_all(self.data)

    def warnings(self) -> Iterator[str]:
        yield from supply_warnings(self.data, self.steps * self.batch_size, self.unit)
