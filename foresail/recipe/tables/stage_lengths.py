"""How many steps the stages of one run take: they fill it exactly, and only the last may leave its length open.

stage_lengths([10 steps, open], 30) -> [10, 20]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol


class Lasting(Protocol):
    """A stage of a recipe; `steps` None: to the end of the run."""

    @property
    def steps(self) -> int | None: ...


def stage_lengths(stages: Sequence[Lasting], steps: int) -> list[int]:
    total = sum(stage.steps or 0 for stage in stages)
    return [steps - total if stage.steps is None else stage.steps for stage in stages]


def length_mistakes(key: str, stages: Sequence[Lasting], steps: int) -> Iterator[str]:
    """`key` is what the recipe calls them: "stages" or "curriculum"."""
    *before, last = stages
    if open_ones := [number for number, stage in enumerate(before, start=1) if stage.steps is None]:
        yield f"{key}#{open_ones[0]} has no steps, and only the last may leave them out; set its steps"
        return
    total = sum(stage.steps or 0 for stage in stages)
    if last.steps is None and total >= steps:
        yield (
            f"{key}: the stages before the last take {total} of {steps} steps, which leaves it none; set steps = "
            f"{total + 1} or more"
        )
    elif last.steps is not None and total != steps:
        yield (
            f"{key}: the stages have {total} steps in all and the run has {steps}; set steps = {total}, or leave "
            "steps out of the last stage"
        )
