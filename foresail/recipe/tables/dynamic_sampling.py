"""The table [dynamic_sampling]: which groups of samples are replaced, and which problems are skipped."""

from __future__ import annotations

from pydantic import Field

from foresail.recipe.tables.part import Part
from foresail.recipe.tables.values import Window


class DynamicSampling(Part):
    """Replaces groups whose samples all got the same reward: they have no learning signal."""

    enabled: bool = Field(
        True, description="replace groups whose samples all got the same reward; false: keep them"
    )
    max_rounds: int = Field(4, gt=0, description="batches of prompts tried in a step before giving up")
    carry: bool = Field(
        False,
        description="continue cancelled samples in the next step; their tokens then come from two policies",
    )
    easy_pool: float | None = Field(
        None, ge=0, le=1, description="share of launches for problems that every sample solved; none: no pool"
    )
    window: Window | None = Field(
        None,
        description="skip problems whose recent pass rate is outside these bounds, like [0.05, 0.95]; none: draw "
        "all",
    )
    window_visits: int = Field(
        3, gt=0, description="number of a problem's last visits that its recent pass rate is taken over"
    )
    window_return: float = Field(
        0.1,
        ge=0,
        le=1,
        description="probability, per pass over the data, of drawing a problem outside the window again",
    )
