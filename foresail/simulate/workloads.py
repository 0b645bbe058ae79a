"""What a simulated step has to generate: lengths, right and wrong answers, and how long judging takes.

Lengths have the largest entropy that a mean and a maximum allow, a truncated exponential: nothing is assumed
beyond the two published numbers. Samples of one group are alike by a Gaussian copula. Each problem's chance of
being solved comes from a symmetric Beta distribution, as wide as the share of valid groups asks for; it does not
depend on the length. A group is a pure function of (seed, step, launch number), whatever is launched before it, so
that two policies meet the same groups.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from pydantic import Field

from foresail.data.prompts import PromptedProblem
from foresail.recipe.parts import Part
from foresail.records import Problem
from foresail.rollout.plan import SampleSpec


class Grading(Part):
    """Seconds a verdict takes, by kind of problem."""

    quick_seconds: float = Field(0.0, ge=0, description="a verdict on most problems (maths)")
    slow_seconds: float = Field(0.0, ge=0, description="a verdict on the others (programs)")
    slow_share: float = Field(0.0, ge=0, le=1, description="share of problems of the slow kind")


class Workload(Part):
    """One step's problems. `groups` is what is launched, or what is wanted where launches are replaced."""

    groups: int = Field(gt=0, description="groups to launch, or valid groups wanted")
    samples: int = Field(gt=0, description="samples a group")
    mean_tokens: int = Field(gt=0, description="mean response")
    max_tokens: int = Field(gt=1, description="longest response")
    prompt_tokens: int = Field(512, gt=0, description="every prompt")
    correlation: float = Field(0.84, ge=0, le=1, description="of normal scores of lengths within a group")
    valid_share: float = Field(1.0, gt=0, le=1, description="share of groups whose rewards differ")
    grading: Grading = Grading()


@dataclass(frozen=True, kw_only=True)
class GroupOutcome:
    """What the samples of a group will turn out to be."""

    lengths: tuple[int, ...]
    right: tuple[bool, ...]
    grading_seconds: float  # for each sample


def correlated_shares(work: Workload, numbers: np.random.Generator) -> list[float]:
    """Of each sample of a group, the share of all responses that are shorter: by a Gaussian copula."""
    common, own = numbers.standard_normal(), numbers.standard_normal(work.samples)
    scores = math.sqrt(work.correlation) * common + math.sqrt(1 - work.correlation) * own
    return [normal_share(score) for score in scores]


class Problems:
    """The groups of one step by launch number."""

    def __init__(self, workload: Workload, *, seed: int, step: int) -> None:
        self.workload, self._key = workload, (seed, step)
        self._groups: dict[int, GroupOutcome] = {}
        self._prompt = (0,) * workload.prompt_tokens
        self._rate = exponential_rate(workload.mean_tokens / workload.max_tokens)
        self._width = beta_width(workload.valid_share, workload.samples)

    def __getitem__(self, group: int) -> GroupOutcome:
        if group not in self._groups:
            self._groups[group] = self._make(group)
        return self._groups[group]

    def prompted(self, group: int) -> PromptedProblem:
        """Named by its number; all have the same prompt, so that it takes no memory."""
        return PromptedProblem(problem=Problem(id=f"{group}", prompt=(), answer=""), ids=self._prompt)

    def length(self, spec: SampleSpec) -> int:
        return self[spec.group].lengths[spec.sample]

    def _make(self, group: int) -> GroupOutcome:
        work, numbers = self.workload, np.random.default_rng((*self._key, group))
        shares = correlated_shares(work, numbers)
        slow = numbers.random() < work.grading.slow_share
        return GroupOutcome(
            lengths=tuple(map(self._length_at, shares)),
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
            f"{1 - 2 ** (1 - samples):.3f} show both sides; lower it, or take more samples"
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
