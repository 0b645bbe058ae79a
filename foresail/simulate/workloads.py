"""The workload of a simulated step: lengths of turns, verdicts and grading times.

Lengths have the maximum-entropy distribution for their published mean and maximum, a truncated exponential. Samples
of one group are correlated by a Gaussian copula. Each problem's probability of being solved comes from a symmetric
Beta distribution that gives the required share of valid groups; it does not depend on the length. A group is a pure
function of (seed, step, launch number), so that two policies get the same groups.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import numpy as np
from pydantic import Field

from foresail.data.problems.prompts import PromptedProblem
from foresail.recipe.tables.part import Part
from foresail.records import Problem
from foresail.rollout.plan import SampleSpec
from foresail.simulate.distributions import beta_width, exponential_quantile, exponential_rate, normal_share
from foresail.simulate.generated_text import Repeated
from foresail.simulate.tools import SimulatedTurn, ToolDraws, Tools


class GradingTime(Part):
    """Seconds of a verdict by kind of problem."""

    quick_seconds: float = Field(0.0, ge=0, description="a verdict on most problems (maths)")
    slow_seconds: float = Field(0.0, ge=0, description="a verdict on the others (programs)")
    slow_share: float = Field(0.0, ge=0, le=1, description="share of problems of the slow kind")


class Workload(Part):
    """One step's problems. `groups` is the number of launches, or of required groups if launches are replaced."""

    groups: int = Field(gt=0, description="groups to launch, or valid groups wanted")
    samples: int = Field(gt=0, description="samples a group")
    mean_tokens: int = Field(gt=0, description="mean response, or turn where there are tools")
    max_tokens: int = Field(gt=1, description="longest response or turn")
    prompt_tokens: int = Field(512, gt=0, description="every prompt")
    correlation: float = Field(0.84, ge=0, le=1, description="of normal scores of lengths within a group")
    valid_share: float = Field(1.0, gt=0, le=1, description="share of groups whose rewards differ")
    grading: GradingTime = GradingTime()
    tools: Tools | None = Field(None, description="episodes of several turns; none: one turn")

    @property
    def max_new_tokens(self) -> int:
        """The most tokens after a prompt: generated ones and tools' answers."""
        return self.max_tokens if self.tools is None else self.tools.max_episode_tokens(self.max_tokens)


@dataclass(frozen=True, kw_only=True)
class GroupOutcome:
    """The lengths and verdicts of a group's samples, known from the start."""

    turns: tuple[tuple[SimulatedTurn, ...], ...]  # of each sample
    right: tuple[bool, ...]
    grading_seconds: float  # for each sample

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        """The generated tokens of each sample."""
        return tuple(sum(turn.tokens for turn in turns) for turns in self.turns)

    @cached_property
    def ends(self) -> tuple[tuple[int, ...], ...]:
        """The ends of each sample's turns, in tokens after its prompt."""
        return tuple(map(ends_of, self.turns))


def ends_of(turns: Sequence[SimulatedTurn]) -> tuple[int, ...]:
    """ends_of([SimulatedTurn(100, 20, 1.5), SimulatedTurn(50)]) -> (100, 170)."""
    ends, behind = [], 0
    for turn in turns:
        ends.append(behind + turn.tokens)
        behind = ends[-1] + turn.tool_tokens
    return tuple(ends)


def correlated_shares(correlation: float, count: int, numbers: np.random.Generator) -> list[float]:
    """Correlated quantiles of `count` values of one group, by a Gaussian copula."""
    common, own = numbers.standard_normal(), numbers.standard_normal(count)
    scores = math.sqrt(correlation) * common + math.sqrt(1 - correlation) * own
    return [normal_share(score) for score in scores]


class Problems:
    """The groups of one step by launch number."""

    def __init__(self, workload: Workload, *, seed: int, step: int) -> None:
        self.workload, self._key = workload, (seed, step)
        self._groups: dict[int, GroupOutcome] = {}
        self._prompt = Repeated(0, workload.prompt_tokens)
        self._tools = None if workload.tools is None else ToolDraws(workload.tools)
        self._rate = exponential_rate(workload.mean_tokens / workload.max_tokens)
        self._width = beta_width(workload.valid_share, workload.samples)

    def __getitem__(self, group: int) -> GroupOutcome:
        if group not in self._groups:
            self._groups[group] = self._make(group)
        return self._groups[group]

    def prompted(self, group: int) -> PromptedProblem:
        """A problem named by its number; its prompt takes no memory."""
        problem = Problem(id=f"{group}", prompt=(), answer="")
        return PromptedProblem(problem=problem, ids=self._prompt)  # type: ignore[arg-type]

    def ends(self, spec: SampleSpec) -> tuple[int, ...]:
        """The ends of a request's turns, in tokens after its prompt."""
        return self[spec.group].ends[spec.sample]

    def length(self, spec: SampleSpec) -> int:
        """All tokens after a request's prompt."""
        return self.ends(spec)[-1]

    def turns(self, spec: SampleSpec) -> tuple[SimulatedTurn, ...]:
        return self[spec.group].turns[spec.sample]

    def _make(self, group: int) -> GroupOutcome:
        work, numbers = self.workload, np.random.default_rng((*self._key, group))
        turns = self._turns(numbers)
        slow = numbers.random() < work.grading.slow_share
        return GroupOutcome(
            turns=turns,
            right=self._right(numbers),
            grading_seconds=work.grading.slow_seconds if slow else work.grading.quick_seconds,
        )

    def _turns(self, numbers: np.random.Generator) -> tuple[tuple[SimulatedTurn, ...], ...]:
        work, tools = self.workload, self._tools
        if tools is None:
            shares = correlated_shares(work.correlation, work.samples, numbers)
            return tuple((SimulatedTurn(self._length_at(share)),) for share in shares)
        counts = [tools.count_turns(s) for s in correlated_shares(work.correlation, work.samples, numbers)]
        lengths = map(self._length_at, correlated_shares(work.correlation, sum(counts), numbers))
        return tuple(tools.episode([*islice(lengths, count)], numbers) for count in counts)

    def _length_at(self, share: float) -> int:
        """The length at this quantile of all responses."""
        place = exponential_quantile(share, self._rate)
        return max(1, min(math.ceil(place * self.workload.max_tokens), self.workload.max_tokens))

    def _right(self, numbers: np.random.Generator) -> tuple[bool, ...]:
        samples = self.workload.samples
        if self.workload.valid_share == 1:
            return tuple(sample % 2 == 0 for sample in range(samples))
        chance = numbers.beta(self._width, self._width)
        return tuple((numbers.random(samples) < chance).tolist())
