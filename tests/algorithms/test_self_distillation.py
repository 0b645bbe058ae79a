"""Self-distillation with a told answer, against loops over tokens."""

from __future__ import annotations

import math
import random

import pytest

from foresail.algorithms.evidence import ScoredSample
from foresail.algorithms.self_distillation import distill_with_hint
from foresail.records import Sample


def scored(numbers: random.Random, length: int, *, broken: bool = False) -> ScoredSample:
    mask = [0] + [int(numbers.random() < 0.7) for _ in range(length - 1)]
    sample = Sample(
        ids=[0] * length,
        loss_mask=mask,
        logprobs=[0.0] * length,
        versions=[0] * length,
        turns=[0] * length,
        finish="stop",
    )
    teacher, student = ([-10 * numbers.random() for _ in range(length)] for _ in range(2))
    if broken:
        teacher[-1], student[1] = math.nan, math.nan
    return ScoredSample(sample=sample, teachers=[teacher], student=student)


@pytest.mark.parametrize("seed", range(20))
def test_every_token_gets_what_the_told_policy_thinks_better_of_it(seed: int) -> None:
    numbers = random.Random(seed)
    group = [scored(numbers, numbers.randint(2, 9), broken=number == 1) for number in range(3)]
    advantages, weight, clamp = [numbers.gauss(0, 1) for _ in group], 0.3, 4.0
    found = distill_with_hint(group, advantages, weight=weight, clamp=clamp)
    total, count = 0.0, 0
    for one, advantage, tokens in zip(group, advantages, found.advantages, strict=True):
        for place, token in enumerate(tokens):
            expected = advantage
            gain = one.teachers[0][place] - one.student[place]  # type: ignore[index, operator]
            if one.sample.loss_mask[place] and not math.isnan(gain):
                gain = max(-clamp, min(clamp, gain))
                expected, total, count = advantage + weight * gain, total - gain, count + 1
            assert token == pytest.approx(expected, abs=1e-9)
    assert found.divergence == pytest.approx(total) and found.tokens == count


def test_without_a_teacher_the_advantage_stays() -> None:
    one = scored(random.Random(0), 5)
    alone = ScoredSample(sample=one.sample, teachers=[], student=one.student)
    assert distill_with_hint([alone], [0.5], weight=1.0, clamp=5.0).advantages == [[0.5] * 5]
