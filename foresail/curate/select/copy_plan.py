"""Settings of resampling: expected copies by quality tier, occurrences and group."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field, Strict

from foresail.curate.rows.holds import ANY, Holds
from foresail.recipe.keys import Tables
from foresail.recipe.tables.part import CheckedPart, Part

# TOML has lists only, and a recipe is frozen: hence Strict(False)
Numbers = Annotated[tuple[float, ...], Strict(False)]


class GroupShare(Part):
    name: str = Field(description="a value of the key `within`")
    share: float = Field(ge=0, le=1, description="of all text afterwards")


class CopyPlan(CheckedPart):
    """Copies of each document by quality, occurrences and group."""

    takes: ClassVar[Holds] = ANY

    quality: str = Field(description="key of metadata with a number, such as education")
    by: Literal["rank", "value"] = Field(
        "rank", description="tiers end at shares of a group's documents, or at values of quality"
    )
    tiers: Numbers = Field((), description="ends of all tiers but the last, from the worst up")
    copies: Numbers = Field((1.0,), description="expected copies of a document, by tier")
    repeat: Numbers = Field((), description="power of the occurrences, by tier; default: 0")
    most_copies: float = Field(8.0, gt=0, le=1000, description="no document is expected more often")
    occurrences: str = Field("occurrences", description="key of metadata; documents without it occur once")
    shares: Tables[GroupShare] = Field((), description="the other groups share the rest")
    within: str = Field(
        "language",
        description="key of metadata that makes the groups: tiers and shares are of each of its values",
    )
    unscored: float = Field(1.0, ge=0, description="expected copies of documents without the quality")
    seed: int = Field(0, ge=0, description="of the copies that are drawn at random")

    def mistakes(self) -> Iterator[str]:
        if list(self.tiers) != sorted({*self.tiers}):
            yield f"tiers {list(self.tiers)} must rise; write them like [0.3, 0.8]"
        if self.by == "rank" and any(not 0 < end < 1 for end in self.tiers):
            yield f'tiers {list(self.tiers)} are shares between 0 and 1; for values of quality set by = "value"'
        for name, powers in (("copies", self.copies), ("repeat", self.repeat)):
            if len(powers) != len(self.tiers) + 1 and (name == "copies" or powers):
                yield f"{name} has {len(powers)} numbers; {len(self.tiers)} ends make {len(self.tiers) + 1} tiers"
            if any(power < 0 for power in powers):
                yield f"{name} has a number below 0"
        if (total := sum(self.share_by_group.values())) > 1 + 1e-9:
            yield f"the groups have shares of {total:g} in all; make it 1 at most"

    @property
    def share_by_group(self) -> dict[str, float]:
        return {entry.name: entry.share for entry in self.shares}
