"""One stage of supervised fine-tuning, a table of the recipe's [[stages]]; unset keys are the recipe's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from pydantic import Field

from foresail.recipe.keys import Tables
from foresail.recipe.tables.parts import Optimizer, Part
from foresail.recipe.tables.sources import Chats, Epochs, Weight

RATES = ("lr", "warmup", "schedule", "final_share")  # keys of the optimizer that a stage may set


class Resample(Part):
    """The best conversations of an earlier stage again, the same share of each of its sources."""

    stage: int | None = Field(None, gt=0, description="number of the earlier stage; default: the one before")
    keep: float = Field(0.2, gt=0, le=1, description="share of each source's conversations that is kept")
    best: str = Field(
        "loss",
        description="what to rank by: loss, the mean over its tokens under the model at the start of the stage; "
        "or a numeric column of the rows, such as quality",
    )
    best_is: Literal["min", "max"] | None = Field(
        None,
        description="whether the smallest or the largest value is best; default: min for loss, max for a column",
    )
    weight: Weight = None
    epochs: Epochs = None

    @property
    def by_loss(self) -> bool:
        return self.best == "loss"

    @property
    def least_first(self) -> bool:
        return self.best_is == "min" if self.best_is is not None else self.by_loss


class SftStage(Part):
    """Some steps with their own data and settings; unset keys are the recipe's."""

    name: str = Field("", description="name in the log; default: its number")
    steps: int | None = Field(
        None, gt=0, description="steps of this stage; default, for the last stage only: the rest of the run"
    )
    data: Chats = Field(
        (), description="conversations; or tables [[stages.data]]; default: the recipe's data"
    )
    resample: Resample | None = Field(
        None,
        description="the best conversations of an earlier stage, mixed into this one's data; none: nothing",
    )
    batch_size: int | None = Field(None, gt=0, description="conversations per update")
    max_length: int | None = Field(
        None, gt=1, description="tokens of the longest conversation, at most the recipe's max_length"
    )
    lr: float | None = Field(None, gt=0, description="peak learning rate; default: optimizer.lr")
    warmup: int | None = Field(
        None, ge=0, description="warm-up: updates of the stage until the peak learning rate"
    )
    schedule: Literal["constant", "linear", "cosine"] | None = Field(
        None, description="learning rate after the warm-up, over the updates of the stage"
    )
    final_share: float | None = Field(
        None, ge=0, le=1, description="learning rate at the stage's last update, as a share of its `lr`"
    )


SftStages = Tables[SftStage]


def stage_changes(stage: SftStage, optimizer: Optimizer, steps: int) -> dict[str, Any]:
    """The recipe's keys with other values in this stage; `optimizer` is the recipe's."""
    settings = {name: getattr(stage, name) for name in SftStage.model_fields}
    set_ones = {name: value for name, value in settings.items() if value not in (None, ())}
    rates = {name: value for name, value in set_ones.items() if name in RATES}
    others = {name: value for name, value in set_ones.items() if name in ("data", "batch_size", "max_length")}
    return {"stages": (), "steps": steps, "optimizer": optimizer.model_copy(update=rates), **others}


def resample_mistakes(stages: Sequence[SftStage]) -> Iterator[str]:
    for number, stage in enumerate(stages, start=1):
        if stage.resample is None:
            continue
        place = f"stages#{number}.resample"
        earlier = number - 1 if stage.resample.stage is None else stage.resample.stage
        if not 1 <= earlier < number:
            yield f"{place} takes from an earlier stage, and {earlier or 'none'} is not; set {place}.stage"
        weighted = {source.weight is not None for source in stage.data} | {stage.resample.weight is not None}
        if len(weighted) > 1:
            yield (
                f"{place} and the data of its stage: some have a weight and some have none; set it in all of them, "
                "or in none"
            )
