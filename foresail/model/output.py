"""What a layer or a whole forward pass hands back: its value, and the losses and statistics that it adds.

Dense layers add none. Each loss or statistic is a scalar mean over the tokens of the pass, with its coefficient.
Those of one name are added up over the layers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar

from torch import Tensor

R = TypeVar("R")
NOTHING: Mapping[str, Tensor] = MappingProxyType({})


class Output(NamedTuple, Generic[R]):
    """Of a router: Output(x_TD, {"router_balance": 0.01 * balance}, {"router_dropped": dropped})."""

    value: R
    losses: Mapping[str, Tensor] = NOTHING  # to be added to the trained one
    statistics: Mapping[str, Tensor] = NOTHING
    ahead: Any = None  # of a whole pass: what was read of its MTP layers


def add_up(terms: Iterable[Mapping[str, Tensor]]) -> Mapping[str, Tensor]:
    """[{"a": 1}, {"a": 2, "b": 3}] -> {"a": 3, "b": 3}."""
    totals: dict[str, Tensor] = {}
    for term in terms:
        totals |= {name: totals[name] + value if name in totals else value for name, value in term.items()}
    return totals or NOTHING
