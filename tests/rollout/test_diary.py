"""The timeline's lines: what was decided and judged, and when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from itertools import count
from typing import Any

import pytest
from small_rollouts import FakeJudge, draw_settings, some_problems, tiny_fleet

from foresail.records import Problem, Sample, Status, Verdict
from foresail.rollout.collect import Harvest, collect, teaches
from foresail.rollout.controller import Controller
from foresail.rollout.diary import Diary, Span
from foresail.rollout.fleet import Fleet
from foresail.rollout.stream import Judge
from foresail.runlog.timeline import read_step
from foresail.runlog.timeline_figures import find_fates

MIXED: list[Status] = ["correct", "wrong", "unparsable", "wrong"]
WRONG: list[Status] = ["wrong"] * 4


def ticking() -> Callable[[], float]:
    """A clock that says 0, 1, 2, …, one more whenever it is asked."""
    return map(float, count()).__next__


def test_a_decision_happens_now_and_a_span_when_it_did():
    diary = Diary(ticking())
    span, open_span = Span(diary.now), Span(diary.now)
    diary({"event": "launch", "group": 17})
    span.stop()
    diary.note("grade", span, request="17.3")
    diary.note("grade", open_span, request="17.4")
    diary.note("closing", share=0.5)
    assert diary.take() == [
        {"what": "launch", "start": 2, "end": 2, "group": 17},
        {"what": "grade", "start": 0, "end": 3, "request": "17.3"},
        {"what": "grade", "start": 1, "end": 5, "request": "17.4"},
        {"what": "closing", "start": 6, "end": 6, "share": 0.5},
    ]
    assert diary.take() == []


def gather(fleet: Fleet, judge: Judge, controller: Controller) -> tuple[Harvest, list[dict[str, Any]]]:
    """All groups teach that have different rewards."""
    problems = some_problems(controller.cap)
    harvest = collect(
        fleet, problems.__getitem__, draw_settings(4), judge, controller=controller, usable=teaches
    )
    return harvest, fleet.diary.take()


def some_teach(numbers: set[int]) -> FakeJudge:
    return FakeJudge(lambda name: MIXED if int(name[1:]) in numbers else WRONG)


def of_kind(events: list[dict[str, Any]], what: str) -> list[dict[str, Any]]:
    return [event for event in events if event["what"] == what]


def test_every_judged_sample_has_a_line_with_its_own_verdict():
    harvest, events = gather(tiny_fleet(), FakeJudge(lambda name: MIXED), Controller.for_all(5))
    verdicts = {
        f"{number}.{sample}": verdict.status
        for number, group in enumerate(harvest.launched)
        for sample, verdict in enumerate(group.verdicts)
    }
    grades = of_kind(events, "grade")
    assert {event["request"]: event["status"] for event in grades} == verdicts and len(grades) == 20
    ends = {event["request"]: event["end"] for event in of_kind(events, "chunk") if event["finished"]}
    assert all(ends[event["request"]] <= event["start"] <= event["end"] for event in grades)


def test_the_closing_names_the_groups():
    harvest, events = gather(
        tiny_fleet(max_running=6), some_teach({1, 3, 5, 6, 7}), Controller(wanted=4, cap=16)
    )
    (closing,) = of_kind(events, "closing")
    numbers = {group.problem.id: int(group.problem.id[1:]) for group in harvest.launched}
    assert closing["chosen"] == tuple(numbers[group.problem.id] for group in harvest.chosen) == (1, 3, 5, 6)
    assert closing["prefix"] == (*range(7),) and closing["share"] == harvest.share
    assert (len(closing["surplus"]), len(closing["cancelled"])) == (
        harvest.num_surplus,
        harvest.num_cancelled,
    )
    assert all(event["end"] <= closing["start"] for event in of_kind(events, "chunk"))


def worth(score: float) -> tuple[Verdict, float | None]:
    return Verdict(status="correct" if score else "wrong", score=score), score


class PatientJudge:
    """Settles all verdicts when it is given the last sample, and remembers that moment."""

    def __init__(self, now: Callable[[], float], samples: int) -> None:
        self.now, self.samples = now, samples
        self.futures: list[Future[tuple[Verdict, float | None]]] = []
        self.settled = 0.0

    def __call__(self, problem: Problem, sample: Sample) -> Future[tuple[Verdict, float | None]]:
        self.futures.append(Future())
        if len(self.futures) == self.samples:
            self.settled = self.now()
            for number, future in enumerate(self.futures):
                future.set_result(worth(number % 2))
        return self.futures[-1]


def test_a_wait_ends_when_the_verdict_comes_not_when_somebody_looks():
    fleet = tiny_fleet(max_running=2)
    fleet.diary.now = ticking()
    judge = PatientJudge(fleet.diary.now, samples=12)
    _, events = gather(fleet, judge, Controller.for_all(3))
    grades = of_kind(events, "grade")
    # every end asks the clock, and nothing else does in between
    assert sorted(event["end"] for event in grades) == [judge.settled + 1 + n for n in range(12)]
    assert max(event["start"] for event in grades) < judge.settled


def test_samples_of_groups_that_were_given_up_are_dropped():
    """The verdicts of the third group never come, and the step does not wait for them."""

    def judge(problem: Problem, sample: Sample) -> Future[tuple[Verdict, float | None]]:
        future: Future[tuple[Verdict, float | None]] = Future()
        if problem.id != "p2":
            handed[problem.id] += 1
            future.set_result(worth(handed[problem.id] % 2))
        return future

    handed: Counter[str] = Counter()
    _, events = gather(tiny_fleet(max_running=12), judge, Controller(wanted=2, cap=3, share_before=0.6))
    dropped = Counter(
        event["request"][0] for event in of_kind(events, "grade") if event["status"] == "dropped"
    )
    (closing,) = of_kind(events, "closing")
    assert closing["chosen"] == (0, 1) and closing["cancelled"] == (2,)
    assert set(dropped) == {"2"} and 1 <= dropped["2"] <= 4


@pytest.mark.parametrize("teaching", [{0, 1, 2, 3}, {1, 3, 5, 6, 7}, {2, 9, 11, 12}])
def test_what_is_written_can_be_read_again(teaching: set[int]):
    harvest, events = gather(tiny_fleet(max_running=6), some_teach(teaching), Controller(wanted=4, cap=16))
    timeline = read_step({"step": 1, **event} for event in events)
    fates = Counter(find_fates(timeline).values())
    assert fates["chosen"] == len(harvest.chosen) == 4
    assert (fates["surplus"], fates["cancelled"]) == (harvest.num_surplus, harvest.num_cancelled)
    assert fates.total() == len(timeline.launches) and not fates["open"]
    tokens = sum(sample.num_response_tokens for group in harvest.launched for sample in group.samples)
    prefix = {*range(len(harvest.launched))}
    assert sum(chunk.tokens for chunk in timeline.chunks if chunk.group in prefix) == tokens
    assert {chunk.how for chunk in timeline.chunks} <= {"finished", "cancelled"}
