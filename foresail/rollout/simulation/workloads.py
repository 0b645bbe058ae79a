"""What a simulated step has to draw: lengths, right and wrong answers, and how long judging takes.

Lengths have the largest entropy that a mean and a maximum allow, a truncated exponential: nothing is assumed
beyond the two published numbers. Samples of one group are alike by a Gaussian copula, and so are those of the
same problem in an earlier step. Each problem's chance of being solved comes from a symmetric Beta distribution,
as wide as the share of valid groups asks for; it does not depend on the length. A group is a pure function of
(seed, step, launch number), whatever is launched before it, so that two policies meet the same groups.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from pydantic import Field

from foresail.data.prompts import PromptedProblem
from foresail.recipe.parts import Part
from foresail.records import Problem
from foresail.rollout.plan import Ask


class Grading(Part):
    """Seconds a verdict takes, by kind of problem."""

    quick_seconds: float = Field(0.0, ge=0, description="a verdict on most problems (maths)")
    slow_seconds: float = Field(0.0, ge=0, description="a verdict on the others (programs)")
    slow_share: float = Field(0.0, ge=0, le=1, description="share of problems of the slow kind")


class Workload(Part):
    """One step's problems. `groups` is what is launched, or what is wanted where launches are replaced."""

    groups: int = Field(gt=0, description="groups to draw, or valid groups wanted")
    samples: int = Field(gt=0, description="samples a group")
    mean_tokens: int = Field(gt=0, description="mean response")
    max_tokens: int = Field(gt=1, description="longest response")
    prompt_tokens: int = Field(512, gt=0, description="every prompt")
    correlation: float = Field(0.84, ge=0, le=1, description="of normal scores of lengths within a group")
    drift: float = Field(
        0.0, ge=0, le=1, description="what siblings have in common: share new since earlier steps"
    )
    valid_share: float = Field(1.0, gt=0, le=1, description="share of groups whose rewards differ")
    grading: Grading = Grading()


@dataclass(frozen=True, kw_only=True)
class DrawnGroup:
    """What the samples of a group will turn out to be."""

    lengths: tuple[int, ...]
    earlier: tuple[int, ...]  # of the same problem's samples in an earlier step
    right: tuple[bool, ...]
    grading_seconds: float  # for each sample


class Places(NamedTuple):
    """Of each sample of a group, the share of all responses that are shorter; now, and in an earlier step."""

    now: Sequence[float]
    earlier: Sequence[float]


Likeness = Callable[[Workload, np.random.Generator], Places]


def alike_by_copula(work: Workload, numbers: np.random.Generator) -> Places:
    alike, own = numbers.standard_normal(), numbers.standard_normal(work.samples)
    (aside,) = numbers.spawn(1)  # what follows does not depend on whether anybody remembers
    then, own_then = aside.standard_normal(), aside.standard_normal(work.samples)
    then = math.sqrt(1 - work.drift) * alike + math.sqrt(work.drift) * then
    return Places(scores_to_places(work, alike, own), scores_to_places(work, then, own_then))


def scores_to_places(work: Workload, alike: float, own: np.ndarray) -> list[float]:
    scores = math.sqrt(work.correlation) * alike + math.sqrt(1 - work.correlation) * own
    return [normal_share(score) for score in scores]


class Problems:
    """The groups of one step by launch number."""

    def __init__(
        self, workload: Workload, *, seed: int, step: int, likeness: Likeness = alike_by_copula
    ) -> None:
        self.workload, self._key, self._likeness = workload, (seed, step), likeness
        self._drawn: dict[int, DrawnGroup] = {}

    @cached_property
    def _prompt(self) -> tuple[int, ...]:
        return (0,) * self.workload.prompt_tokens

    @cached_property
    def _rate(self) -> float:
        return exponential_rate(self.workload.mean_tokens / self.workload.max_tokens)

    @cached_property
    def _width(self) -> float:
        return beta_width(self.workload.valid_share, self.workload.samples)

    def __getitem__(self, group: int) -> DrawnGroup:
        if group not in self._drawn:
            self._drawn[group] = self._draw(group)
        return self._drawn[group]

    def prompted(self, group: int) -> PromptedProblem:
        """Named by its number; all have the same prompt, so that it takes no memory."""
        return PromptedProblem(problem=Problem(id=f"{group}", prompt=(), answer=""), ids=self._prompt)

    def length(self, ask: Ask) -> int:
        return self[ask.group].lengths[ask.sample]

    def _draw(self, group: int) -> DrawnGroup:
        work, numbers = self.workload, np.random.default_rng((*self._key, group))
        places = self._likeness(work, numbers)
        slow = numbers.random() < work.grading.slow_share
        return DrawnGroup(
            lengths=tuple(map(self._length_at, places.now)),
            earlier=tuple(map(self._length_at, places.earlier)),
            right=self._right(numbers),
            grading_seconds=work.grading.slow_seconds if slow else work.grading.quick_seconds,
        )

    def _length_at(self, share: float) -> int:
        """The length that this share of all responses stays below."""
        rate = self._rate
        place = share if abs(rate) < 1e-6 else -math.log1p(share * math.expm1(-rate)) / rate
        return max(1, min(math.ceil(place * self.workload.max_tokens), self.workload.max_tokens))

    def _right(self, numbers: np.random.Generator) -> tuple[bool, ...]:
        samples = self.workload.samples
        if self.workload.valid_share == 1:
            return tuple(sample % 2 == 0 for sample in range(samples))
        chance = numbers.beta(self._width, self._width)
        return tuple((numbers.random(samples) < chance).tolist())


def exponential_rate(mean: float) -> float:
    """The rate at which an exponential cut off at 1 has this mean: 0 for 0.5, which is uniform."""

    def mean_at(rate: float) -> float:
        return 0.5 - rate / 12 if abs(rate) < 1e-4 else 1 / rate - 1 / math.expm1(rate)

    return bisect(lambda rate: mean - mean_at(rate), -600.0, 600.0)


def beta_width(valid_share: float, samples: int) -> float:
    """a of Beta(a, a) at which this share of groups is neither all right nor all wrong.

    beta_width(7 / 9, 8) -> 1.0: with every chance equally likely, each of 0 to 8 right is a ninth.
    """
    if valid_share == 1:
        return math.inf
    if valid_share >= 1 - 2 ** (1 - samples):
        raise ValueError(
            f"workload.valid_share {valid_share} is out of reach: of coins tossed {samples} times each, "
            f"{1 - 2 ** (1 - samples):.3f} show both sides; lower it, or draw more samples"
        )

    def share_at(log_width: float) -> float:
        a = math.exp(log_width)
        same = math.lgamma(a + samples) + math.lgamma(2 * a) - math.lgamma(a) - math.lgamma(2 * a + samples)
        return 1 - 2 * math.exp(same)

    return math.exp(bisect(lambda log_width: share_at(log_width) - valid_share, -12.0, 12.0))


def bisect(rising: Callable[[float], float], low: float, high: float) -> float:
    for _ in range(200):
        middle = (low + high) / 2
        if rising(middle) < 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def normal_share(score: float) -> float:
    """normal_share(0) -> 0.5."""
    return 0.5 * (1 + math.erf(score / math.sqrt(2)))
