"""Where a run's processes are: the recipe's [cluster]."""

from __future__ import annotations

from pydantic import Field

from foresail.recipe.parts import Part


class Cluster(Part):
    """Processes beyond one."""

    ranks: int = Field(1, gt=0, description="processes that train the model together")
