"""The groups one step learns from: drawn, graded, and replaced while they teach nothing.

A sample is handed to the judge when it ends, and the engine goes on with the others; verdicts are waited for
when all are drawn. What comes back does not depend on which verdict came first.

Dynamic sampling: a group whose rewards are all equal gives no gradient, so more problems are drawn, up to
a cap. Groups are taken in the order they were launched, never in the order they ended, so short answers
have no advantage.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from foresail.algorithms.filtering import has_spread
from foresail.data.prompts import PromptedProblem
from foresail.engine.engine import Engine
from foresail.recipe.parts import DynamicSampling
from foresail.records import FAILURES, Group, Problem, RunStopped, Sample, Verdict
from foresail.rollout.groups import Draw, draw_samples

# Hands a sample over and returns at once; what it returns waits for the verdict and says what it is worth.
Judge = Callable[[Problem, Sample], Callable[[], tuple[Verdict, float | None]]]


@dataclass(frozen=True, kw_only=True)
class Harvest:
    """Everything that was drawn in a step, and the groups to learn from, both in launch order."""

    launched: tuple[Group, ...]
    chosen: tuple[Group, ...]

    @property
    def solved(self) -> bool:
        """Every sample of every group is right: nothing is left to learn from these problems."""
        return bool(self.launched) and all(group.pass_rate == 1 for group in self.launched)


class NoSignal(RunStopped):
    """No group of the step had two different rewards; `harvest` holds what was drawn, for the log."""

    def __init__(self, message: str, harvest: Harvest) -> None:
        super().__init__(message)
        self.harvest = harvest


def collect(
    engine: Engine,
    problems: Iterator[PromptedProblem],
    draw: Draw,
    judge: Judge,
    *,
    num_groups: int,
    settings: DynamicSampling,
) -> Harvest:
    """Draw until `num_groups` are worth learning from, or the cap is reached; raises if none is."""
    launched: list[Group] = []
    chosen: list[Group] = []
    usable = teaches if settings.enabled else (lambda group: not group.failed)
    for _ in range(settings.max_rounds if settings.enabled else 1):
        batch = list(islice(problems, launches(num_groups, len(chosen), len(launched))))
        if not batch:
            break
        groups = draw_batch(engine, batch, draw, judge)
        launched += groups
        chosen += filter(usable, groups)
        if len(chosen) >= num_groups:
            break
    harvest = Harvest(launched=tuple(launched), chosen=tuple(chosen[:num_groups]))
    if not chosen and not harvest.solved:
        raise NoSignal(explain(launched, draw.num_samples), harvest)
    return harvest


def draw_batch(engine: Engine, batch: Sequence[PromptedProblem], draw: Draw, judge: Judge) -> list[Group]:
    """One graded group per problem, in the batch's order."""
    handed: dict[tuple[str, int], Handed] = {}
    for entry, number, sample in draw_samples(engine, batch, draw):
        handed[entry.problem.id, number] = Handed(sample, judge(entry.problem, sample))
    return [
        settle(entry.problem, [handed[entry.problem.id, number] for number in range(draw.num_samples)])
        for entry in batch
    ]


class Handed(NamedTuple):
    """A sample that is being judged."""

    sample: Sample
    settled: Callable[[], tuple[Verdict, float | None]]


def settle(problem: Problem, handed: Sequence[Handed]) -> Group:
    verdicts, rewards = zip(*(entry.settled() for entry in handed), strict=True)
    samples = tuple(entry.sample for entry in handed)
    return Group(problem=problem, samples=samples, verdicts=verdicts, rewards=rewards)


def launches(wanted: int, valid: int, launched: int) -> int:
    """How many problems to try next, going by the share that taught something so far.

    launches(32, 0, 0) -> 32; when 16 of 32 taught, launches(32, 16, 32) -> 32; when 24 did,
    launches(32, 24, 32) -> 11.
    """
    if launched == 0:
        return wanted
    share = max(valid / launched, 1 / wanted)
    return min(wanted, math.ceil((wanted - valid) / share))


def teaches(group: Group) -> bool:
    return not group.failed and has_spread([reward for reward in group.rewards if reward is not None])


def explain(groups: Sequence[Group], num_samples: int) -> str:
    """Why nothing can be learned, with the pass rates, and what to do about it."""
    if groups and len(failures(groups)) == len(groups) * num_samples:
        return (
            f"every verdict of the step failed: {describe_failures(groups)}. Mend the grader or the problems"
        )
    rates = Counter(round(group.pass_rate * num_samples) for group in groups)
    histogram = ", ".join(f"{right}/{num_samples} right: {rates[right]} prompts" for right in sorted(rates))
    failed = sum(group.failed for group in groups)
    return (
        f"nothing to learn from {len(groups)} groups of {num_samples} samples: all rewards were equal "
        f"within {len(groups) - failed} of them, and {failed} could not be graded. "
        f"Pass rates: {histogram}. Verdicts: {count_statuses(groups)}. "
        "If all are wrong, try easier problems, a better starting model, more samples_per_prompt or a longer "
        "sampling.max_new_tokens, and look at RUN/rollouts; to try more prompts per step raise "
        "dynamic_sampling.max_rounds"
    )


def failures(groups: Sequence[Group]) -> list[Verdict]:
    return [verdict for group in groups for verdict in group.verdicts if verdict.status in FAILURES]


def describe_failures(groups: Sequence[Group]) -> str:
    """describe_failures(…) -> "40 of 48 (crashed 40, wrong 8); the first: crashed: KeyError: 'x' (a.py:3)"."""
    failed = failures(groups)
    drawn = sum(len(group.verdicts) for group in groups)
    return f"{len(failed)} of {drawn} ({count_statuses(groups)}); the first: {failed[0].status}: {failed[0].detail}"


def count_statuses(groups: Sequence[Group]) -> str:
    """count_statuses(…) -> "wrong 14, correct 5"."""
    statuses = Counter(verdict.status for group in groups for verdict in group.verdicts)
    return ", ".join(f"{status} {count}" for status, count in statuses.most_common())
