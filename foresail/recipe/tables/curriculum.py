"""The curriculum of a recipe: which stage a step belongs to, and what each changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import Field

from foresail.recipe.tables.parts import Part, Sampling
from foresail.recipe.tables.values import Mix


class CurriculumStage(Part):
    """Some steps with settings of their own; what is unset is as in the rest of the recipe."""

    steps: int | None = Field(
        None, gt=0, description="steps of this stage; default, for the last stage only: the rest of the run"
    )
    mix: Mix | None = Field(None, description="sampling weights of difficulty levels 1 to 5")
    prompts_per_step: int | None = Field(None, gt=0, description="problems per step")
    max_new_tokens: int | None = Field(None, gt=0, description="longest response, in tokens")
    temperature: float | None = Field(None, gt=0, description="sampling temperature")
    top_p: float | None = Field(
        None, gt=0, le=1, description="nucleus sampling: keep the likeliest tokens up to this probability"
    )
    top_k: int | None = Field(None, ge=0, description="sample from so many likeliest tokens; 0: all tokens")
    min_p: float | None = Field(
        None, ge=0, lt=1, description="drop tokens below this share of the likeliest token's probability"
    )


def stage_at(stages: Sequence[CurriculumStage], step: int) -> int:
    """Stages of 10 and 20 steps and a last one: steps 1 to 10 -> 0, 11 to 30 -> 1, all later ones -> 2."""
    for index, stage in enumerate(stages[:-1]):
        step -= stage.steps or 0
        if step <= 0:
            return index
    return max(0, len(stages) - 1)


def steps_left(stages: Sequence[CurriculumStage], step: int) -> int | None:
    """Steps of the same stage after this one; None in the last stage, after which nothing comes."""
    index = stage_at(stages, step)
    if index >= len(stages) - 1:
        return None
    return sum(stage.steps or 0 for stage in stages[: index + 1]) - step


def changes(stage: CurriculumStage, sampling: Sampling) -> dict[str, Any]:
    """The recipe's keys with other values in this stage; `sampling` is the recipe's."""
    settings = stage.model_dump(exclude={"steps"}, exclude_none=True)
    drawn = {name: settings.pop(name) for name in Sampling.model_fields if name in settings}
    return {"curriculum": (), "sampling": sampling.model_copy(update=drawn), **settings}


def mix_in_words(mix: Sequence[float] | None) -> str:
    """mix_in_words((0, 3, 2, 0, 0)) -> "levels 2 (60 %), 3 (40 %)"."""
    if mix is None:
        return "problems of any level"
    shares = {level: weight / sum(mix) for level, weight in enumerate(mix, start=1) if weight}
    return "levels " + ", ".join(f"{level} ({100 * share:.0f} %)" for level, share in shares.items())
