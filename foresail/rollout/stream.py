"""Groups on their way: launched as the controller asks, drawn by the fleet, judged sample by sample.

A sample is handed to the judge when it ends, and the engines go on with the others. A group comes out when its
last verdict is in. Training listens in `collect.py`, validation through `draw_all`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from foresail.data.prompts import PromptedProblem
from foresail.engine.request import Completion, Request
from foresail.records import Group, Problem, Sample, Verdict
from foresail.rollout.controller import Controller, Outcome
from foresail.rollout.diary import Diary, Span
from foresail.rollout.fleet import Fleet
from foresail.rollout.groups import Draw, requests, to_sample
from foresail.rollout.plan import Ask

AT_ONCE = 2048  # groups of a validation: more keep no engine busier, and the first result would come late


def nap() -> None:
    """Until a worker's chunk or a verdict may be there."""
    time.sleep(0.001)


class Judging(Protocol):
    """A sample that is being judged: its verdict and what it is worth, as a future has them."""

    def done(self) -> bool: ...

    def add_done_callback(self, call: Callable[[Any], None]) -> None: ...

    def cancel(self) -> object:
        """The verdict is not needed any more."""

    def result(self) -> tuple[Verdict, float | None]: ...


Judge = Callable[[Problem, Sample], Judging]


@dataclass
class Launched:
    """A group under way: its samples as they end, and their verdicts as they come."""

    problem: Problem
    asks: list[Ask]
    samples: dict[int, Sample] = field(default_factory=dict)
    judged: dict[int, Judging] = field(default_factory=dict)
    spans: dict[int, Span] = field(default_factory=dict)  # how long each was with the judge

    def is_settled(self) -> bool:
        return all(judging.done() for judging in self.judged.values())

    def settle(self) -> Group:
        numbers = range(len(self.asks))
        verdicts, rewards = zip(*(self.judged[number].result() for number in numbers), strict=True)
        samples = tuple(self.samples[number] for number in numbers)
        return Group(problem=self.problem, samples=samples, verdicts=verdicts, rewards=rewards)

    def note_grading(self, diary: Diary, verdicts: Sequence[Verdict] = ()) -> None:
        """A line for every sample that was handed over; without verdicts, the group was given up."""
        for number, span in self.spans.items():
            status = verdicts[number].status if verdicts else "dropped"
            diary.note("grade", span, request=self.asks[number].id, status=status)


@dataclass(kw_only=True)
class Stream:
    """From the first launch to the closing: every group by its number, as its last verdict comes.

    `problem_of` says which problem the first, second, … launch draws, `worth` what to tell the controller of a
    group; `wait` passes time when there is nothing to do, `read` makes a sample of what an engine drew.
    """

    fleet: Fleet
    problem_of: Callable[[int], PromptedProblem]
    draw: Draw
    judge: Judge
    controller: Controller
    worth: Callable[[Group], Outcome]
    wait: Callable[[], None] = nap
    read: Callable[[Completion], Sample] = to_sample
    num_launched: int = field(default=0, init=False)
    active: dict[int, Launched] = field(default_factory=dict, init=False)
    drawn: set[int] = field(default_factory=set, init=False)  # those of which only verdicts are missing

    def __iter__(self) -> Iterator[tuple[int, Group]]:
        try:
            while (closing := self.controller.closing()) is None:
                self._launch()
                ended = self.fleet.work()
                for ask, completion in ended:
                    self._take(ask, completion)
                settled = self._settle()
                yield from settled
                if not settled and not ended and self.fleet.only_waits:
                    self.wait()
            self.fleet.diary.note("closing", **vars(closing))
        except KeyboardInterrupt:  # in the middle of anything: there is no order left to give up in
            self.active.clear()
            raise
        finally:
            for number, launched in self.active.items():
                self._give_up(number, launched)
                for judging in launched.judged.values():
                    judging.cancel()
                launched.note_grading(self.fleet.diary)

    def _launch(self) -> None:
        for _ in range(self.controller.next_launches()):
            entry, number = self.problem_of(self.num_launched), self.fleet.next_group
            self.num_launched += 1
            self.controller.launched(number)
            self._start(entry, number)

    def _start(self, entry: PromptedProblem, number: int) -> None:
        wanted = requests(entry, self.draw, number)
        asks = [to_ask(request, number, sample) for sample, request in enumerate(wanted)]
        self.active[number] = Launched(problem=entry.problem, asks=asks)
        self.fleet.launch(asks, wanted)

    def _take(self, ask: Ask, completion: Completion) -> None:
        self._hand_over(ask, self.read(completion))

    def _give_up(self, number: int, launched: Launched) -> None:
        self.fleet.cancel(number, launched.asks)

    def _hand_over(self, ask: Ask, sample: Sample) -> None:
        launched = self.active[ask.group]
        launched.samples[ask.sample] = sample
        span = launched.spans[ask.sample] = Span(self.fleet.diary.now)
        # A quick judge is done when it returns.
        launched.judged[ask.sample] = self.judge(launched.problem, sample)
        launched.judged[ask.sample].add_done_callback(span.stop)
        if len(launched.judged) == len(launched.asks):
            self.drawn.add(ask.group)

    def _settle(self) -> list[tuple[int, Group]]:
        """Groups whose last verdict is in; the controller knows of them when they come out."""
        numbers = [number for number in sorted(self.drawn) if self.active[number].is_settled()]
        self.drawn.difference_update(numbers)
        return [(number, self._score(number)) for number in numbers]

    def _score(self, number: int) -> Group:
        launched = self.active.pop(number)
        group = launched.settle()
        launched.note_grading(self.fleet.diary, group.verdicts)
        self.controller.scored(number, self.worth(group))
        return group


def to_ask(request: Request, group: int, sample: int) -> Ask:
    return Ask(
        id=request.id,
        group=group,
        sample=sample,
        prompt_tokens=len(request.prompt),
        max_tokens=request.sampling.max_new_tokens,
    )


def draw_all(fleet: Fleet, problems: Sequence[PromptedProblem], draw: Draw, judge: Judge) -> Iterator[Group]:
    """For validation: the groups of all problems, each as it settles; none is chosen or cancelled."""
    stream = Stream(
        fleet=fleet,
        problem_of=problems.__getitem__,
        draw=draw,
        judge=judge,
        controller=Controller.for_all(len(problems), at_once=AT_ONCE),
        worth=lambda group: Outcome(valid=True),
    )
    return (group for _, group in stream)
