"""The loop of a rollout: launches groups, generates samples, sends each to the judge.

A sample goes to the judge when it ends, while the engines continue with the others. A group is returned after its
last verdict. Training uses it through `collect.py`, validation through `sample_all`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import ClassVar

from foresail.data.problems.prompts import PromptedProblem
from foresail.engine.request import Completion
from foresail.records import Group, Problem, Sample, Verdict
from foresail.rewards.grading import settled
from foresail.rewards.group_rewards import Rewards, right_or_wrong
from foresail.rollout.controller import Controller, StepEnd
from foresail.rollout.event_log import EventLog, OpenSpan
from foresail.rollout.fleet import Fleet
from foresail.rollout.groups import GroupSpec, requests, to_sample, to_spec
from foresail.rollout.plan import SampleSpec

MAX_GROUPS = 2048  # running at the same time in a validation; more would only delay the first result


def sleep_briefly() -> None:
    """Sleep between two polls of workers and verdicts."""
    time.sleep(0.001)


Judge = Callable[[Problem, Sample], Future[Verdict]]
GroupJudge = Callable[[Problem, Sequence[Sample], Sequence[Future[Verdict]]], Sequence[Future[Verdict]]]
RewardsOf = Callable[[Problem, Sequence[Sample], Sequence[Verdict]], Rewards]


def watched(judge: Judge, advance: Callable[[Future[Verdict]], None]) -> Judge:
    """The judge, which also calls `advance` with the future verdict of each finished sample."""

    def judge_and_advance(problem: Problem, sample: Sample) -> Future[Verdict]:
        verdict = judge(problem, sample)
        advance(verdict)
        return verdict

    return judge_and_advance


def keep_verdicts(
    problem: Problem, samples: Sequence[Sample], verdicts: Sequence[Future[Verdict]]
) -> Sequence[Future[Verdict]]:
    """The group judge that changes no verdict."""
    return verdicts


@dataclass
class Launched:
    """A running group: its finished samples and their verdicts."""

    problem: Problem
    specs: list[SampleSpec]
    samples: dict[int, Sample] = field(default_factory=dict)
    verdicts: dict[int, Future[Verdict]] = field(default_factory=dict)
    spans: dict[int, OpenSpan] = field(default_factory=dict)  # grading time of each sample
    broken: set[int] = field(default_factory=set)  # samples that failed before grading

    def judge_together(self, judge_group: GroupJudge) -> None:
        """Let the group judge change the verdicts, once the last sample has ended."""
        numbers = range(len(self.specs))
        early = [self.verdicts[number] for number in numbers]
        verdicts = judge_group(self.problem, [self.samples[number] for number in numbers], early)
        for number, before, verdict in zip(numbers, early, verdicts, strict=True):
            if verdict is not before and number not in self.broken:
                self.verdicts[number] = verdict
                verdict.add_done_callback(self.spans[number].stop)

    def is_settled(self) -> bool:
        return all(verdict.done() for verdict in self.verdicts.values())

    def settle(self, rewards_of: RewardsOf) -> Group:
        numbers = range(len(self.specs))
        samples = tuple(self.samples[number] for number in numbers)
        verdicts = tuple(self.verdicts[number].result() for number in numbers)
        rewards = rewards_of(self.problem, samples, verdicts)
        return Group(problem=self.problem, samples=samples, verdicts=verdicts, rewards=rewards)

    def note_grading(self, event_log: EventLog, verdicts: Sequence[Verdict] = ()) -> None:
        """Log an event for every judged sample; without verdicts the group was cancelled."""
        for number, span in self.spans.items():
            status = verdicts[number].status if verdicts else "dropped"
            event_log.note("grade", span, request=self.specs[number].id, status=status)


@dataclass(kw_only=True)
class Stream:
    """Iterates over the groups of a step, each with its number, as their last verdicts come.

    `problem_of` maps the number of a launch to its problem, `usable` says whether the step can learn from a group,
    `wait` sleeps while nothing can be done, and `read` makes a sample of a completion. `judge_group` may change the
    verdicts of a group after its last sample.
    """

    fleet: Fleet
    problem_of: Callable[[int], PromptedProblem]
    group_spec: GroupSpec
    judge: Judge
    controller: Controller
    usable: Callable[[Group], bool]
    judge_group: GroupJudge = keep_verdicts
    rewards_of: RewardsOf = right_or_wrong
    wait: Callable[[], None] = sleep_briefly
    read: Callable[..., Sample] = to_sample
    hold: ClassVar[bool] = False  # whether a sample may have several turns
    num_launched: int = field(default=0, init=False)
    active: dict[int, Launched] = field(default_factory=dict, init=False)
    awaiting_verdicts: set[int] = field(default_factory=set, init=False)  # fully generated groups

    def __iter__(self) -> Iterator[tuple[int, Group]]:
        try:
            while (closing := self.controller.closing()) is None:
                self._launch()
                ended = self.fleet.work()
                for spec, completion in ended:
                    self._take(spec, completion)
                moved = self._go_on()
                settled = self._settle()
                yield from settled
                if not settled and not ended and not moved and self.fleet.only_waits:
                    self.wait()
            self.fleet.event_log.note("closing", **vars(closing))
            self._close(closing)
        except KeyboardInterrupt:  # it may interrupt any operation: no orderly cancelling
            self.active.clear()
            raise
        finally:
            for number, launched in self.active.items():
                self._give_up(number, launched)
                for verdict in launched.verdicts.values():
                    verdict.cancel()
                launched.note_grading(self.fleet.event_log)

    def _launch(self) -> None:
        for _ in range(self.controller.next_launches()):
            entry, number = self.problem_of(self.num_launched), self.fleet.next_group
            self.num_launched += 1
            self.controller.launched(number)
            self._start(entry, number)

    def _start(self, entry: PromptedProblem, number: int) -> None:
        samples = requests(entry, self.group_spec, number)
        specs = [to_spec(request, number, sample) for sample, request in enumerate(samples)]
        self.active[number] = Launched(problem=entry.problem, specs=specs)
        self.fleet.launch(specs, samples, hold=self.hold)

    def _take(self, spec: SampleSpec, completion: Completion) -> None:
        self._hand_over(spec, self.read(completion))

    def _go_on(self) -> bool:
        """Continue samples that wait for something other than an engine; whether any did."""
        return False

    def _close(self, closing: StepEnd) -> None:
        """Called at the step's end, for streams with further data."""

    def _give_up(self, number: int, launched: Launched) -> None:
        self.fleet.cancel(number, launched.specs)

    def _hand_over(self, spec: SampleSpec, sample: Sample, broken: Verdict | None = None) -> None:
        """Send a sample to the judge, unless it failed already."""
        launched = self.active[spec.group]
        launched.samples[spec.sample] = sample
        span = launched.spans[spec.sample] = OpenSpan(self.fleet.event_log.now)
        # A fast judge has finished when it returns.
        verdict = self.judge(launched.problem, sample) if broken is None else settled(broken)
        launched.verdicts[spec.sample] = verdict
        verdict.add_done_callback(span.stop)
        if broken is not None:
            launched.broken.add(spec.sample)
        if len(launched.verdicts) == len(launched.specs):
            launched.judge_together(self.judge_group)
            self.awaiting_verdicts.add(spec.group)

    def _settle(self) -> list[tuple[int, Group]]:
        """The groups with all verdicts, which the controller now counts."""
        numbers = [number for number in sorted(self.awaiting_verdicts) if self.active[number].is_settled()]
        self.awaiting_verdicts.difference_update(numbers)
        return [(number, self._score(number)) for number in numbers]

    def _score(self, number: int) -> Group:
        launched = self.active.pop(number)
        group = launched.settle(self.rewards_of)
        launched.note_grading(self.fleet.event_log, group.verdicts)
        self.controller.scored(number, valid=self.usable(group))
        return group


StreamKind = Callable[..., Stream]  # with the fields of `Stream`


def sample_all(
    fleet: Fleet,
    problems: Sequence[PromptedProblem],
    group_spec: GroupSpec,
    judge: Judge,
    *,
    judge_group: GroupJudge = keep_verdicts,
    rewards_of: RewardsOf = right_or_wrong,
    stream: StreamKind = Stream,
) -> Iterator[Group]:
    """For validation: the groups of all problems, each as its last verdict comes."""
    groups = stream(
        fleet=fleet,
        problem_of=problems.__getitem__,
        group_spec=group_spec,
        judge=judge,
        judge_group=judge_group,
        rewards_of=rewards_of,
        controller=Controller.for_all(len(problems), max_active=MAX_GROUPS),
        usable=lambda group: True,
    )
    return (group for _, group in groups)
