"""The groups one step learns from: launched, drawn, graded, and replaced while they teach nothing.

A sample is handed to the judge when it ends, and the engines go on with the others. A group whose rewards are
all equal gives no gradient; the controller launches more as soon as it knows, and closes the step on the first
run of launches that has enough. What comes back depends neither on which answer ended first nor on which
verdict came first: only on what was launched, in launch order.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from foresail.algorithms.filtering import has_spread
from foresail.data.prompts import PromptedProblem
from foresail.engine.request import Request
from foresail.records import FAILURES, Group, Problem, RunStopped, Sample, Verdict
from foresail.rollout.controller import Controller, Outcome
from foresail.rollout.fleet import Fleet
from foresail.rollout.groups import Draw, requests, to_sample
from foresail.rollout.plan import Ask


def nap() -> None:
    """Until a worker's chunk or a verdict may be there."""
    time.sleep(0.001)


class Judging(Protocol):
    """A sample that is being judged: its verdict and what it is worth."""

    def done(self) -> bool: ...

    def result(self) -> tuple[Verdict, float | None]: ...


Judge = Callable[[Problem, Sample], Judging]


@dataclass(frozen=True, kw_only=True)
class Harvest:
    """All groups up to the one that closed the step, and those to learn from, both in launch order.

    Which later groups were under way depends on the machine, so they are only counted.
    """

    launched: tuple[Group, ...]
    chosen: tuple[Group, ...]
    num_surplus: int = field(default=0, compare=False)  # taught something too, but came too late
    num_cancelled: int = field(default=0, compare=False)
    share: float = field(default=1.0, compare=False)  # of groups that teach, for the next step's launches

    @property
    def solved(self) -> bool:
        """Every sample of every group is right: nothing is left to learn from these problems."""
        return bool(self.launched) and all(group.pass_rate == 1 for group in self.launched)


class NoSignal(RunStopped):
    """No group of the step had two different rewards; `harvest` holds what was drawn, for the log."""

    def __init__(self, message: str, harvest: Harvest) -> None:
        super().__init__(message)
        self.harvest = harvest


@dataclass
class Launched:
    """A group under way: its samples as they end, and their verdicts as they come."""

    problem: Problem
    asks: list[Ask]
    samples: dict[int, Sample] = field(default_factory=dict)
    judged: dict[int, Judging] = field(default_factory=dict)

    def is_settled(self) -> bool:
        return all(judging.done() for judging in self.judged.values())

    def settle(self) -> Group:
        numbers = range(len(self.asks))
        verdicts, rewards = zip(*(self.judged[number].result() for number in numbers), strict=True)
        samples = tuple(self.samples[number] for number in numbers)
        return Group(problem=self.problem, samples=samples, verdicts=verdicts, rewards=rewards)


def collect(
    fleet: Fleet,
    problem_of: Callable[[int], PromptedProblem],
    draw: Draw,
    judge: Judge,
    *,
    controller: Controller,
    usable: Callable[[Group], bool],
    wait: Callable[[], None] = nap,
) -> Harvest:
    """Draw until the controller has enough groups that are `usable`; raises if there is none.

    `problem_of` says which problem the step's first, second, … launch draws; `wait` passes time when there is
    nothing to do.
    """
    harvest = Step(fleet, problem_of, draw, judge, controller, usable, wait).run()
    if not harvest.chosen and not harvest.solved:
        raise NoSignal(explain(harvest.launched, draw.num_samples), harvest)
    return harvest


class Step:
    """One step from the first launch to the closing."""

    def __init__(
        self,
        fleet: Fleet,
        problem_of: Callable[[int], PromptedProblem],
        draw: Draw,
        judge: Judge,
        controller: Controller,
        usable: Callable[[Group], bool],
        wait: Callable[[], None],
    ) -> None:
        self.fleet, self.problem_of, self.draw, self.judge = fleet, problem_of, draw, judge
        self.controller, self.usable, self.wait = controller, usable, wait
        self.num_launched = 0
        self.active: dict[int, Launched] = {}
        self.drawn: set[int] = set()  # those of which only verdicts are missing
        self.groups: dict[int, Group] = {}

    def run(self) -> Harvest:
        try:
            while (closing := self.controller.closing()) is None:
                self._launch()
                ended = self.fleet.work()
                for ask, completion in ended:
                    self._hand_over(ask, to_sample(completion))
                if not self._score() and not ended and self.fleet.only_waits:
                    self.wait()
        finally:
            for number, launched in self.active.items():
                self.fleet.cancel(number, launched.asks)
        return Harvest(
            launched=tuple(self.groups[number] for number in closing.prefix),
            chosen=tuple(self.groups[number] for number in closing.chosen),
            num_surplus=len(closing.surplus),
            num_cancelled=len(closing.cancelled),
            share=closing.share,
        )

    def _launch(self) -> None:
        for _ in range(self.controller.next_launches()):
            entry, number = self.problem_of(self.num_launched), self.fleet.next_group
            wanted = requests(entry, self.draw, number)
            asks = [to_ask(request, number, sample) for sample, request in enumerate(wanted)]
            self.active[number] = Launched(problem=entry.problem, asks=asks)
            self.num_launched += 1
            self.controller.launched(number)
            self.fleet.launch(asks, wanted)

    def _hand_over(self, ask: Ask, sample: Sample) -> None:
        launched = self.active[ask.group]
        launched.samples[ask.sample] = sample
        launched.judged[ask.sample] = self.judge(launched.problem, sample)
        if len(launched.judged) == len(launched.asks):
            self.drawn.add(ask.group)

    def _score(self) -> bool:
        """Tell the controller of groups whose last verdict is in; whether there were any."""
        settled = [number for number in sorted(self.drawn) if self.active[number].is_settled()]
        for number in settled:
            self.drawn.remove(number)
            group = self.groups[number] = self.active.pop(number).settle()
            outcome = Outcome(valid=self.usable(group), solved=group.pass_rate == 1, failed=group.failed)
            self.controller.scored(number, outcome)
        return bool(settled)


def to_ask(request: Request, group: int, sample: int) -> Ask:
    return Ask(
        id=request.id,
        group=group,
        sample=sample,
        prompt_tokens=len(request.prompt),
        max_tokens=request.sampling.max_new_tokens,
    )


def gradable(group: Group) -> bool:
    return not group.failed


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
