"""The timeline's lines: what was decided and judged, and when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from itertools import count
from typing import Any

import pytest
from small_rollouts import FakeJudge, group_spec_of, some_problems, tiny_fleet

from foresail.records import Problem, Sample, Status, Verdict
from foresail.rollout.collect import Collected, collect, teaches
from foresail.rollout.controller import Controller
from foresail.rollout.event_log import EventLog, OpenSpan
from foresail.rollout.fleet import Fleet
from foresail.rollout.stream import Judge
from foresail.runlog.timeline import read_step
from foresail.runlog.timeline_figures import group_outcomes

MIXED: list[Status] = ["correct", "wrong", "unparsable", "wrong"]
WRONG: list[Status] = ["wrong"] * 4


def ticking() -> Callable[[], float]:
    """A clock that says 0, 1, 2, …, one more whenever it is asked."""
    return map(float, count()).__next__


def test_a_decision_happens_now_and_a_span_when_it_did():
    event_log = EventLog(ticking())
    span, open_span = OpenSpan(event_log.now), OpenSpan(event_log.now)
    event_log({"event": "launch", "group": 17})
    span.stop()
    event_log.note("grade", span, request="17.3")
    event_log.note("grade", open_span, request="17.4")
    event_log.note("closing", share=0.5)
    assert event_log.take() == [
        {"what": "launch", "start": 2, "end": 2, "group": 17},
        {"what": "grade", "start": 0, "end": 3, "request": "17.3"},
        {"what": "grade", "start": 1, "end": 5, "request": "17.4"},
        {"what": "closing", "start": 6, "end": 6, "share": 0.5},
    ]
    assert event_log.take() == []


def gather(fleet: Fleet, judge: Judge, controller: Controller) -> tuple[Collected, list[dict[str, Any]]]:
    """All groups teach that have different rewards."""
    problems = some_problems(controller.cap)
    collected = collect(
        fleet, problems.__getitem__, group_spec_of(4), judge, controller=controller, usable=teaches
    )
    return collected, fleet.event_log.take()


def some_teach(numbers: set[int]) -> FakeJudge:
    return FakeJudge(lambda name: MIXED if int(name[1:]) in numbers else WRONG)


def of_kind(events: list[dict[str, Any]], what: str) -> list[dict[str, Any]]:
    return [event for event in events if event["what"] == what]


def test_every_judged_sample_has_a_line_with_its_own_verdict():
    collected, events = gather(tiny_fleet(), FakeJudge(lambda name: MIXED), Controller.for_all(5))
    verdicts = {
        f"{number}.{sample}": verdict.status
        for number, group in enumerate(collected.launched)
        for sample, verdict in enumerate(group.verdicts)
    }
    grades = of_kind(events, "grade")
    assert {event["request"]: event["status"] for event in grades} == verdicts and len(grades) == 20
    ends = {event["request"]: event["end"] for event in of_kind(events, "chunk") if event["finished"]}
    assert all(ends[event["request"]] <= event["start"] <= event["end"] for event in grades)


def test_the_closing_names_the_groups():
    collected, events = gather(
        tiny_fleet(max_running=6), some_teach({1, 3, 5, 6, 7}), Controller(num_groups=4, cap=16)
    )
    (closing,) = of_kind(events, "closing")
    numbers = {group.problem.id: int(group.problem.id[1:]) for group in collected.launched}
    assert closing["chosen"] == tuple(numbers[group.problem.id] for group in collected.chosen) == (1, 3, 5, 6)
    assert closing["prefix"] == (*range(7),) and closing["share"] == collected.share
    assert (len(closing["surplus"]), len(closing["cancelled"])) == (
        collected.num_surplus,
        collected.num_cancelled,
    )
    assert all(event["end"] <= closing["start"] for event in of_kind(events, "chunk"))


def verdict_of(score: float) -> Verdict:
    return Verdict(status="correct" if score else "wrong", score=score)


class PatientJudge:
    """Settles all verdicts when it is given the last sample, and remembers that moment."""

    def __init__(self, now: Callable[[], float], samples: int) -> None:
        self.now, self.samples = now, samples
        self.futures: list[Future[Verdict]] = []
        self.settled = 0.0

    def __call__(self, problem: Problem, sample: Sample) -> Future[Verdict]:
        self.futures.append(Future())
        if len(self.futures) == self.samples:
            self.settled = self.now()
            for number, future in enumerate(self.futures):
                future.set_result(verdict_of(number % 2))
        return self.futures[-1]


def test_a_wait_ends_when_the_verdict_comes_not_when_somebody_looks():
    fleet = tiny_fleet(max_running=2)
    fleet.event_log.now = ticking()
    judge = PatientJudge(fleet.event_log.now, samples=12)
    _, events = gather(fleet, judge, Controller.for_all(3))
    grades = of_kind(events, "grade")
    # every end asks the clock, and nothing else does in between
    assert sorted(event["end"] for event in grades) == [judge.settled + 1 + n for n in range(12)]
    assert max(event["start"] for event in grades) < judge.settled


def test_samples_of_groups_that_were_given_up_are_dropped():
    """The verdicts of the third group never come, and the step does not wait for them."""

    def judge(problem: Problem, sample: Sample) -> Future[Verdict]:
        future: Future[Verdict] = Future()
        if problem.id != "p2":
            handed[problem.id] += 1
            future.set_result(verdict_of(handed[problem.id] % 2))
        return future

    handed: Counter[str] = Counter()
    _, events = gather(tiny_fleet(max_running=12), judge, Controller(num_groups=2, cap=3, share_before=0.6))
    dropped = Counter(
        event["request"][0] for event in of_kind(events, "grade") if event["status"] == "dropped"
    )
    (closing,) = of_kind(events, "closing")
    assert closing["chosen"] == (0, 1) and closing["cancelled"] == (2,)
    assert set(dropped) == {"2"} and 1 <= dropped["2"] <= 4


@pytest.mark.parametrize("teaching", [{0, 1, 2, 3}, {1, 3, 5, 6, 7}, {2, 9, 11, 12}])
def test_what_is_written_can_be_read_again(teaching: set[int]):
    collected, events = gather(
        tiny_fleet(max_running=6), some_teach(teaching), Controller(num_groups=4, cap=16)
    )
    timeline = read_step({"step": 1, **event} for event in events)
    outcomes = Counter(group_outcomes(timeline).values())
    assert outcomes["chosen"] == len(collected.chosen) == 4
    assert (outcomes["surplus"], outcomes["cancelled"]) == (collected.num_surplus, collected.num_cancelled)
    assert outcomes.total() == len(timeline.launches) and not outcomes["open"]
    tokens = sum(sample.num_response_tokens for group in collected.launched for sample in group.samples)
    prefix = {*range(len(collected.launched))}
    assert sum(chunk.tokens for chunk in timeline.chunks if chunk.group in prefix) == tokens
    assert {chunk.how for chunk in timeline.chunks} <= {"finished", "cancelled"}
