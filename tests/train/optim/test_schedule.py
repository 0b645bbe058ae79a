"""The learning rate of every update."""

from __future__ import annotations

import math

import pytest
import torch
from transformers import get_scheduler

from foresail.recipe.tables.parts import Optimizer
from foresail.train.optim.schedule import learning_rate


def rates(total: int, **settings: object) -> list[float]:
    return [learning_rate(update, total, Optimizer(**settings)) for update in range(1, total + 1)]  # type: ignore[arg-type]


def test_the_worked_example() -> None:
    found = rates(6, lr=1.0, warmup=2, schedule="linear", final_share=0.0)
    assert found == pytest.approx([0.5, 1, 0.75, 0.5, 0.25, 0])


def test_constant_without_warm_up_is_the_rate_itself() -> None:
    assert rates(4, lr=3e-4) == [3e-4] * 4


def test_warm_up_climbs_in_equal_steps_to_the_full_rate() -> None:
    assert rates(8, lr=2.0, warmup=4) == [0.5, 1.0, 1.5, 2.0, 2.0, 2.0, 2.0, 2.0]


def test_warm_up_longer_than_the_run_never_passes_the_rate() -> None:
    assert rates(3, lr=1.0, warmup=10, schedule="cosine") == pytest.approx([0.1, 0.2, 0.3])


def test_cosine_is_half_way_down_in_the_middle_and_ends_at_its_final_share() -> None:
    found = rates(12, lr=1.0, warmup=2, schedule="cosine", final_share=0.2)
    assert found[1] == 1.0  # the height of the warm-up
    assert found[6] == pytest.approx(0.6)  # the fifth of ten updates: midway between 1 and 0.2
    assert found[-1] == pytest.approx(0.2)
    by_hand = [0.2 + 0.8 * (1 + math.cos(math.pi * n / 10)) / 2 for n in range(1, 11)]
    assert found[2:] == pytest.approx(by_hand)


def test_linear_goes_down_in_equal_steps_to_its_final_share() -> None:
    found = rates(5, lr=1.0, schedule="linear", final_share=0.5)
    assert found == pytest.approx([0.9, 0.8, 0.7, 0.6, 0.5])


@pytest.mark.parametrize("schedule", ["constant", "linear", "cosine"])
@pytest.mark.parametrize("warmup", [0, 1, 3])
def test_every_update_has_the_rate_of_transformers_next_one(schedule: str, warmup: int) -> None:
    """Whose first update has a rate of 0 where there is a warm-up, and whose last one is not at the end."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    name = f"{schedule}_with_warmup" if schedule == "constant" else schedule
    theirs = get_scheduler(name, optimizer, num_warmup_steps=warmup, num_training_steps=8)
    expected = [theirs.lr_lambdas[0](update) for update in range(1, 9)]
    assert rates(8, lr=1.0, warmup=warmup, schedule=schedule) == pytest.approx(expected)
