"""Where a run's processes are: the recipe's [cluster], and what torchrun says of this one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from pydantic import Field

from foresail.recipe.parts import Part

TORCHRUN = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")


class Cluster(Part):
    """Processes beyond one."""

    ranks: int = Field(1, gt=0, description="processes that train the model together")


def rank_mistakes(cluster: Cluster, samples: int, key: str) -> Iterator[str]:
    """`samples` of one update are dealt to the ranks."""
    if cluster.ranks > samples:
        yield (
            f"cluster.ranks {cluster.ranks} exceeds the {samples} samples of an update, so some ranks would have "
            f"none; set cluster.ranks = {samples} or less, or raise {key}"
        )


class TorchrunPlace(NamedTuple):
    rank: int
    size: int
    local_rank: int  # among those of this host


def torchrun_place() -> TorchrunPlace | None:
    """Where torchrun has put this process; None if somebody else has started it."""
    if not all(name in os.environ for name in TORCHRUN):
        return None
    return TorchrunPlace(*(int(os.environ[name]) for name in TORCHRUN[:3]))
