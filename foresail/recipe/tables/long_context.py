"""The table [long_context]: which long-context tasks are measured, at which lengths, with how many prompts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field, Strict

from foresail.recipe.tables.part import CheckedPart

LongTask = Literal[
    "niah_single",
    "niah_multikey",
    "niah_multivalue",
    "niah_multiquery",
    "vt",
    "cwe",
    "fwe",
    "line_retrieval",
]


class LongContext(CheckedPart):
    """Long-context tasks, such as needle in a haystack, measured during training."""

    lengths: Annotated[tuple[int, ...], Strict(False)] = Field(
        description="context lengths in tokens, prompt and answer together, like [1024, 4096]"
    )
    tasks: Annotated[tuple[LongTask, ...], Strict(False)] = Field(
        ("niah_single",),
        description="tasks: niah_single, niah_multikey, niah_multivalue, niah_multiquery, vt, cwe, fwe, "
        "line_retrieval",
    )
    depths: int = Field(
        5, gt=0, le=1000, description="positions of the needle, from the start of the context to its end"
    )
    per_cell: int = Field(2, gt=0, le=10_000, description="prompts per task, length and depth")
    filler: str | None = Field(
        None, description="JSONL or text file used as the haystack; default: generated sentences"
    )
    every: int = Field(100, gt=0, description="steps between measurements; the last step is measured, too")

    def is_due(self, step: int, last: int) -> bool:
        return step % self.every == 0 or step == last

    def mistakes(self) -> Iterator[str]:
        if not self.lengths or min(self.lengths) < 1:
            yield f"long_context.lengths {list(self.lengths)} are not lengths in tokens; try [512, 1024]"
        if not self.tasks:
            yield "long_context.tasks is empty; try niah_single"
