"""The table of other trainers' keys, and the lookup of a path in it.

rows("actor_rollout_ref.actor.optim.lr")    -> the row of "optim.lr"
rows("actor_rollout_ref.actor.fsdp_config.forward_prefetch") -> none of its own; `table_rows`: "fsdp_config.*"
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from foresail.recipe.other_trainers.answers import Row, Table
from foresail.recipe.other_trainers.data import DATA
from foresail.recipe.other_trainers.losses import LOSSES
from foresail.recipe.other_trainers.machines import MACHINES
from foresail.recipe.other_trainers.sampling import SAMPLING
from foresail.recipe.other_trainers.training import TRAINING

PARTS = (TRAINING, SAMPLING, DATA, LOSSES, MACHINES)
ALL: Table = {key: row for part in PARTS for key, row in part.items()}
NAMES = [key for key in ALL if "." not in key]  # the same in any table
ALONE = [
    key.removeprefix(".") for key in ALL if "." not in key.removeprefix(".")
]  # and those that stand alone


class KeyPlace(NamedTuple):
    row: Row
    before: tuple[str, ...]  # tables that the row's key does not name


def rows(path: str) -> Iterator[KeyPlace]:
    """The row of the whole path, else of fewer and fewer of its last names."""
    names = path.split(".")
    for first in range(len(names)):
        tail = ".".join(names[first:])
        alone = ALL.get(f".{tail}") if first == 0 else None
        if (row := ALL.get(tail, alone)) is not None:
            yield KeyPlace(row, tuple(names[:first]))


def table_rows(path: str) -> Iterator[KeyPlace]:
    """Rows of the tables that the key lies in, the innermost first."""
    names = path.split(".")
    for last in range(len(names) - 1, 0, -1):
        for first in range(last):
            if (row := ALL.get(".".join([*names[first:last], "*"]))) is not None:
                yield KeyPlace(row, tuple(names[:first]))
