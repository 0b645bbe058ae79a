"""The learning rate of pretraining's stages, by the tokens that were learned from."""

from __future__ import annotations

import math
from typing import Any

import pytest

from foresail.recipe.stages.pretrain_stage import PretrainStage, Where
from foresail.train.optim.schedule import token_rate


def stage(**changes: Any) -> PretrainStage:
    return PretrainStage.model_validate(
        {"data": "web", "tokens": 100, "length": 2, "batch_tokens": 2} | changes
    )


def rates(*stages: PretrainStage, every: int = 10) -> list[list[float]]:
    return [
        [
            token_rate(stages, Where(number, 0), after, 1.0)
            for after in range(every, stages[number].tokens + 1, every)
        ]
        for number in range(len(stages))
    ]


def test_warm_up_stable_and_decay() -> None:
    given = stage(warmup_tokens=20, decay="linear", decay_tokens=40)
    assert rates(given)[0] == pytest.approx([0.5, 1, 1, 1, 1, 1, 0.75, 0.5, 0.25, 0])


def test_shapes_of_the_fall() -> None:
    for decay, half in (("linear", 0.5), ("cosine", 0.5), ("sqrt", 1 - 0.5**0.5)):
        [found] = rates(stage(decay=decay, final_lr=0.2, lr=1.2))
        assert found[4] == pytest.approx(0.2 + half) and found[-1] == pytest.approx(0.2)
        assert found == sorted(found, reverse=True)
    [cosine] = rates(stage(decay="cosine"), every=1)
    assert cosine[24] == pytest.approx(0.5 * (1 + math.cos(math.pi / 4)))


def test_a_later_stage_warms_up_from_where_the_one_before_ended() -> None:
    first = stage(warmup_tokens=20, decay="cosine", final_lr=0.1)
    again = stage(warmup_tokens=40, lr=0.5, decay="linear", final_lr=0.1)
    last = stage(lr=0.1)
    found = rates(first, again, last)
    assert found[0][-1] == pytest.approx(0.1)
    assert found[1][:4] == pytest.approx([0.2, 0.3, 0.4, 0.5]) and found[1][-1] == pytest.approx(0.1)
    assert found[2] == [0.1] * 10


def test_an_update_beyond_the_end_has_the_last_rate() -> None:
    given = stage(decay="linear", final_lr=0.25)
    assert token_rate([given], Where(0, 96), 104, 1.0) == 0.25
