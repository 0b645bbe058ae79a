"""The tables of a judge: who judges, by what, and how questions and answers look.

[reward.judge]
rubric = "quality"
against = "none"

[reward.judge.answerer]
endpoint = "http://localhost:8000/v1"
model = "qwen3-8b"
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from foresail.recipe.tables.answerer import Answerer
from foresail.recipe.tables.part import CheckedPart, Part


class JudgeForm(Part):
    """How a judge is asked, and how its answer is read."""

    read: Literal["text", "probability"] = Field(
        "text",
        description="text: one JSON object, perhaps after thinking; probability: of each valid answer as the first "
        "token, which suits small models",
    )
    ties: bool = Field(False, description="of two answers: whether a judge may call them equally good")
    seal: bool = Field(
        True,
        description="names in the answer carry a mark that no judged text can know, so that a judge which repeats "
        "a judged text gives no verdict",
    )
    quote: Literal["frame", "json"] = Field(
        "frame", description="judged texts as they are, in frames; or as JSON strings in frames"
    )
    max_chars: int = Field(
        12_000, ge=100, description="shown of each text: the beginning and the end of a longer one"
    )


class JudgeReward(CheckedPart):
    """The judge, if a grader is `judge`."""

    answerer: Answerer = Field(description="who judges")
    rubric: str = Field(
        "quality", description="quality, correctness, harmlessness, or a file of your own, NAME.toml"
    )
    against: Literal["none", "reference", "siblings"] = Field(
        "none",
        description="none: by the rubric's levels; reference: is the response better than the problem's answer? "
        "siblings: than other responses of its group?",
    )
    opponents: int = Field(
        2, ge=1, description="siblings: of each response; every pair is asked in both orders"
    )
    shows_answer: bool = Field(
        False, description="whether the judge sees the problem's answer, as a reference, beside the response"
    )
    right_from: float | None = Field(
        None,
        description="score, between 0 and 1, from which a response counts as right; none: scores say nothing "
        "about right and wrong",
    )
    form: JudgeForm = JudgeForm()

    def mistakes(self) -> Iterator[str]:
        if self.right_from is not None and not 0 < self.right_from <= 1:
            yield f"right_from = {self.right_from:g} is no score; scores lie between 0 and 1"
        if self.shows_answer and self.against != "none":
            yield f'shows_answer is for against = "none"; with "{self.against}" two responses are compared'
