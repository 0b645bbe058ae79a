"""Weights of ranks on their way to engines elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from foresail.train.rollouts.engine_copy import give_shards, stream_weights


@pytest.mark.parametrize("taken", [0, 1, 2, 5])
def test_whoever_stops_in_the_midst_every_weight_is_gathered_on_every_rank(taken: int) -> None:
    """A rank that left early would wait in another collective than the others."""
    gathered: list[str] = []

    def read(model: Any) -> Iterator[tuple[str, torch.Tensor]]:
        for name in "abcde":
            gathered.append(f"{model}{name}")
            yield name, torch.zeros(1)

    orders: list[Any] = []
    trainer: Any = SimpleNamespace(
        policy=SimpleNamespace(model="0"), on_other_ranks=lambda *order: orders.append(order)
    )
    weights = stream_weights(trainer, read)
    assert [next(weights)[0] for _ in range(taken)] == [*"abcde"[:taken]]
    weights.close()  # type: ignore[attr-defined]
    assert gathered == ([f"0{name}" for name in "abcde"] if taken else [])
    assert orders == ([(give_shards, read)] if taken else [])  # no order before the first tensor is read
    other: Any = SimpleNamespace(policy=SimpleNamespace(model="1"))
    gathered.clear()
    give_shards(other, read)
    assert gathered == [f"1{name}" for name in "abcde"]
