"""The curriculum of a recipe: which stage a step belongs to, and what each changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from foresail.recipe.tables.parts import CurriculumStage, Sampling


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
