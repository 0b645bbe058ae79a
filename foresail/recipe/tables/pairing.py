"""Tables of online DPO: how pairs are made of the policy's samples, and the reference model."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from foresail.recipe.checkpoint_path import CheckpointPath
from foresail.recipe.tables.part import Part


class Pairing(Part):
    """How preference pairs are chosen from a prompt's samples."""

    kind: Literal["auto", "rank", "rule"] = Field(
        "auto",
        description="rank: the best against the worst by reward; rule: the best-rewarded right answer against the "
        "best-rewarded wrong one; auto: rule where a grader says what is right, else rank",
    )
    most: int = Field(
        1, gt=0, description="pairs per prompt; after the best of both sides come the second best, and so on"
    )
    missing_eos_penalty: float = Field(
        0.0, ge=0, description="subtracted from the reward of a response that was cut at the token limit"
    )


class OnlineReference(Part):
    """The reference model of the loss."""

    path: CheckpointPath | None = Field(
        None, description="checkpoint of the reference model; default: the starting model"
    )
    renew_every: int = Field(
        0, ge=0, description="steps after which the current policy becomes the reference; 0: never"
    )

    @property
    def kept(self) -> bool:
        """Every step has new pairs, so the reference's log-probabilities cannot be cached."""
        return False
