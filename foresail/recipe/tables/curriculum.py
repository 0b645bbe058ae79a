"""The curriculum of a recipe: which stage a step belongs to, how long stages last, what each changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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


def stage_lengths(stages: Sequence[CurriculumStage], steps: int) -> list[int]:
    """Stages of 10 steps and the rest, in a run of 30 -> [10, 20]."""
    total = sum(stage.steps or 0 for stage in stages)
    return [steps - total if stage.steps is None else stage.steps for stage in stages]


def changes(stage: CurriculumStage, sampling: Sampling) -> dict[str, Any]:
    """What is other in this stage than in the recipe, whose sampling that is; it has no further stages."""
    settings = stage.model_dump(exclude={"steps"}, exclude_none=True)
    drawn = {name: settings.pop(name) for name in Sampling.model_fields if name in settings}
    return {"curriculum": (), "sampling": sampling.model_copy(update=drawn), **settings}


def length_mistakes(stages: Sequence[CurriculumStage], steps: int) -> Iterator[str]:
    """Stages fill the run exactly; only the last may leave its length open."""
    open_ones = [number for number, stage in enumerate(stages, start=1) if stage.steps is None]
    if early := [number for number in open_ones if number < len(stages)]:
        yield f"curriculum stage {early[0]} has no steps, and only the last may leave them out; set its steps"
        return
    total = sum(stage.steps or 0 for stage in stages)
    if open_ones and total >= steps:
        yield (
            f"the curriculum's stages before the last take {total} of {steps} steps, which leaves it none; "
            f"set steps = {total + 1} or more"
        )
    elif not open_ones and total != steps:
        yield (
            f"the curriculum's stages have {total} steps in all and the run has {steps}; set steps = {total}, "
            "or leave steps out of the last stage"
        )


def mix_in_words(mix: Sequence[float] | None) -> str:
    """mix_in_words((0, 3, 2, 0, 0)) -> "levels 2 (60 %), 3 (40 %)"."""
    if mix is None:
        return "problems of any level"
    shares = {level: weight / sum(mix) for level, weight in enumerate(mix, start=1) if weight}
    return "levels " + ", ".join(f"{level} ({100 * share:.0f} %)" for level, share in shares.items())
