"""The output of a layer or a forward pass: its value, and the losses, statistics and counts that it adds.

Dense layers add none. Each loss or statistic is a scalar mean over the tokens of the pass, with its coefficient.
Those of one name are added up over the layers. Counts are sums over the tokens, of vectors too, and each layer that
has some keeps its own row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar

import torch
from torch import Tensor

R = TypeVar("R")
NOTHING: Mapping[str, Tensor] = MappingProxyType({})


class Output(NamedTuple, Generic[R]):
    """Of a router: Output(x_TD, {"router/balance_loss": 0.01 * balance}, counts={"expert_load": load_E})."""

    value: R
    losses: Mapping[str, Tensor] = NOTHING  # to be added to the trained one
    statistics: Mapping[str, Tensor] = NOTHING
    counts: Mapping[str, Tensor] = NOTHING
    ahead: Any = None  # of a whole pass: what was read of its MTP layers


def add_up(terms: Iterable[Mapping[str, Tensor]]) -> Mapping[str, Tensor]:
    """[{"a": 1}, {"a": 2, "b": 3}] -> {"a": 3, "b": 3}."""
    totals: dict[str, Tensor] = {}
    for term in terms:
        totals |= {name: totals[name] + value if name in totals else value for name, value in term.items()}
    return totals or NOTHING


def stack_layers(counts: Iterable[Mapping[str, Tensor]]) -> Mapping[str, Tensor]:
    """[{"load": [1, 3]}, {}, {"load": [2, 2]}] -> {"load": [[1, 3], [2, 2]]}."""
    rows: dict[str, list[Tensor]] = {}
    for layer in counts:
        for name, value in layer.items():
            rows.setdefault(name, []).append(value)
    return {name: torch.stack(values) for name, values in rows.items()} or NOTHING


def is_extreme(name: str) -> bool:
    """Whether a statistic of this name is the greatest of its values, and no sum or mean."""
    return name.endswith("_max")
