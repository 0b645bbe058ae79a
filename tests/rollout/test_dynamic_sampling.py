from __future__ import annotations

import random
import time
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from small_rollouts import (
    FakeJudge,
    LateVerdict,
    Rule,
    graded_group,
    group_spec_of,
    names,
    some_problems,
    tiny_fleet,
)

from foresail.records import Problem, Sample, Status, Verdict
from foresail.rollout.collect import Collected, NoSignal, collect, gradable, teaches
from foresail.rollout.controller import Controller

RIGHT: list[Status] = ["correct"] * 4
WRONG: list[Status] = ["wrong", "wrong", "unparsable", "wrong"]
MIXED: list[Status] = ["correct", "wrong", "correct", "wrong"]
CRASHED: list[Status] = ["correct", "wrong", "crashed", "wrong"]


def gather(
    rule: Rule, *, num_groups: int, num_problems: int = 40, enabled: bool = True, max_rounds: int = 4
) -> tuple[Collected, FakeJudge]:
    judge = FakeJudge(rule)
    cap = min(num_groups * max_rounds, num_problems)
    collected = collect(
        tiny_fleet(max_running=6),
        some_problems(num_problems).__getitem__,
        group_spec_of(4),
        judge,
        controller=Controller(num_groups=num_groups, cap=cap) if enabled else Controller.for_all(num_groups),
        usable=teaches if enabled else gradable,
    )
    return collected, judge


def by_number(*teaching: int, rest: list[Status]) -> Rule:
    return lambda name: MIXED if int(name[1:]) in teaching else rest


def numbered(*numbers: int) -> list[str]:
    return [f"p{n}" for n in numbers]


def test_one_round_is_enough_when_every_group_teaches():
    collected, judge = gather(lambda name: MIXED, num_groups=5)
    assert names(collected.launched) == names(collected.chosen) == numbered(*range(5))
    assert judge.asked != numbered(*range(5))  # graded as they ended, chosen as they were launched
    assert not collected.solved


def test_groups_without_spread_are_replaced_in_launch_order():
    collected, _ = gather(by_number(1, 3, 5, 6, 7, 9, rest=WRONG), num_groups=4)
    assert names(collected.launched) == numbered(*range(7))  # up to the one that closed the step
    assert names(collected.chosen) == numbered(1, 3, 5, 6)


def test_the_cap_ends_the_search_with_what_was_found():
    collected, _ = gather(by_number(2, 9, rest=RIGHT), num_groups=4, max_rounds=3)
    assert len(collected.launched) == 12
    assert names(collected.chosen) == numbered(2, 9)
    assert not collected.solved


def test_a_small_dataset_ends_the_search_before_the_cap():
    collected, _ = gather(by_number(4, rest=WRONG), num_groups=4, num_problems=6, max_rounds=100)
    assert names(collected.launched) == numbered(*range(6))
    assert names(collected.chosen) == numbered(4)


def test_no_signal_tells_pass_rates_and_the_way_out():
    def rule(name: str) -> list[Status]:
        return {"p0": RIGHT, "p1": CRASHED}.get(name, WRONG)

    with pytest.raises(NoSignal) as error:
        gather(rule, num_groups=3, max_rounds=2)
    message = str(error.value)
    assert (
        "6 groups of 4 samples: all rewards were equal within 5 of them, and 1 could not be graded" in message
    )
    assert "0/4 right: 4 prompts, 1/4 right: 1 prompts, 4/4 right: 1 prompts" in message
    assert "wrong 14, correct 5, unparsable 4, crashed 1" in message
    for remedy in ("easier problems", "samples_per_prompt", "max_rounds"):
        assert remedy in message
    assert names(error.value.collected.launched) == numbered(*range(6)) and error.value.collected.chosen == ()


@pytest.mark.parametrize(
    ("statuses", "remedy"),
    [(["unparsable"] * 4, 'reward.accept = "any"'), (["scored"] * 4, "tells the samples"), (WRONG, "easier")],
)
def test_no_signal_says_what_to_change_by_what_became_of_most_samples(
    statuses: list[Status], remedy: str
) -> None:
    with pytest.raises(NoSignal, match=remedy) as error:
        gather(lambda name: statuses, num_groups=3, max_rounds=2)
    assert ("Pass rates" in str(error.value)) == ("scored" not in statuses)


def test_when_everything_is_right_the_step_is_solved():
    collected, _ = gather(lambda name: RIGHT, num_groups=3, max_rounds=2)
    assert collected.solved and collected.chosen == ()
    assert len(collected.launched) == 6


def test_failed_groups_are_dropped_even_with_spread():
    collected, _ = gather(lambda name: CRASHED if name in ("p0", "p2") else MIXED, num_groups=3)
    assert names(collected.chosen) == numbered(1, 3, 4)
    assert names(collected.launched)[:3] == numbered(0, 1, 2)


def test_disabled_keeps_groups_without_spread_but_no_failed_ones():
    def rule(name: str) -> list[Status]:
        return {"p0": RIGHT, "p1": CRASHED, "p2": WRONG}.get(name, MIXED)

    collected, _ = gather(rule, num_groups=4, enabled=False, max_rounds=4)
    assert names(collected.launched) == numbered(0, 1, 2, 3)
    assert names(collected.chosen) == numbered(0, 2, 3)


def test_disabled_with_failures_only_is_no_signal():
    with pytest.raises(NoSignal, match="within 0 of them, and 3 could not be graded"):
        gather(lambda name: CRASHED, num_groups=3, enabled=False)


def test_numbers_of_groups_go_on_from_step_to_step():
    fleet, problems = tiny_fleet(), some_problems(10)
    for first in (0, 4):
        collect(
            fleet,
            problems.__getitem__,
            group_spec_of(4),
            FakeJudge(lambda name: MIXED),
            controller=Controller(num_groups=4, cap=4),
            usable=teaches,
        )
        assert fleet.next_group == first + 4 and not fleet.busy


def test_what_teaches():
    cases = {"right": RIGHT, "wrong": WRONG, "mixed": MIXED, "crashed": CRASHED}
    assert {name: teaches(graded_group(statuses)) for name, statuses in cases.items()} == {
        "right": False,
        "wrong": False,
        "mixed": True,
        "crashed": False,
    }


# Grading while others are drawn.


def test_samples_are_handed_over_one_by_one_as_they_end():
    _, judge = gather(lambda name: MIXED, num_groups=5)
    assert sorted(judge.asked) == sorted(numbered(*range(5)) * 4)
    assert judge.asked != sorted(judge.asked)  # no group waits for its last sample


class LateJudge:
    """Its verdicts come on threads, after random waits: the order of verdicts is never that of samples."""

    def __init__(self, threads: ThreadPoolExecutor, seed: int) -> None:
        self.threads, self.waits, self.pending = threads, random.Random(seed), 0

    def __call__(self, problem: Problem, sample: Sample) -> Future[Verdict]:
        return self.threads.submit(self.grade, sample, self.waits.random() / 100)

    def grade(self, sample: Sample, seconds: float) -> Verdict:
        time.sleep(seconds)
        right = sample.ids[-1] % 2 == 0
        return Verdict(status="correct" if right else "wrong", score=float(right))


def test_the_order_in_which_verdicts_come_changes_nothing():
    def collected(seed: int) -> Collected:
        with ThreadPoolExecutor(8) as threads:
            return collect(
                tiny_fleet(max_running=6),
                some_problems(40).__getitem__,
                group_spec_of(4),
                LateJudge(threads, seed),
                controller=Controller(num_groups=6, cap=24),
                usable=teaches,
            )

    first, second = collected(1), collected(2)
    assert names(first.chosen) == names(second.chosen)
    assert [group.verdicts for group in first.launched] == [group.verdicts for group in second.launched]
    for ours, theirs in zip(first.launched, second.launched, strict=True):
        for one, other in zip(ours.samples, theirs.samples, strict=True):
            assert one.ids == other.ids
            # who else was in the batch depends on when verdicts came, and with it the last bits
            assert one.logprobs == pytest.approx(other.logprobs, abs=1e-5)
    for group in first.launched:
        for sample, verdict in zip(group.samples, group.verdicts, strict=True):
            assert (verdict.status == "correct") == (sample.ids[-1] % 2 == 0)  # each has its own verdict


def test_a_judge_is_never_waited_for_while_samples_are_drawn():
    """No verdict is there before all samples have been handed over."""
    handed: list[str] = []

    def judge(problem: Problem, sample: Sample) -> LateVerdict:
        score = float(len(handed) % 2)
        handed.append(problem.id)
        verdict = Verdict(status="correct", score=score)
        return LateVerdict(lambda: verdict, ready=lambda: len(handed) == 12)

    collect(
        tiny_fleet(max_running=2),
        some_problems(3).__getitem__,
        group_spec_of(4),
        judge,
        controller=Controller.for_all(3),
        usable=gradable,
    )


def test_a_step_of_failures_and_wrong_answers_names_the_first_failure():
    def judge(problem: Problem, sample: Sample) -> LateVerdict:
        crashed = Verdict(status="crashed", score=0.0, detail="no descriptor left")
        verdict = crashed if problem.id != "p1" else Verdict(status="wrong", score=0.0)
        return LateVerdict(lambda: verdict)

    with pytest.raises(
        NoSignal, match=r"Verdicts: crashed 12, wrong 4; the first: crashed: no descriptor left"
    ):
        collect(
            tiny_fleet(),
            some_problems(9).__getitem__,
            group_spec_of(4),
            judge,
            controller=Controller(num_groups=2, cap=4),
            usable=teaches,
        )


def test_all_verdicts_failed_says_so_with_the_first_error():
    def judge(problem: Problem, sample: Sample) -> LateVerdict:
        verdict = Verdict(status="crashed", score=0.0, detail=f"KeyError: {problem.id}")
        return LateVerdict(lambda: verdict)

    with pytest.raises(
        NoSignal, match=r"every verdict .* failed: 16 of 16 \(crashed 16\); the first: crashed: KeyError: p0"
    ):
        collect(
            tiny_fleet(),
            some_problems(9).__getitem__,
            group_spec_of(4),
            judge,
            controller=Controller(num_groups=2, cap=4),
            usable=teaches,
        )


def test_verdicts_that_nobody_waits_for_are_cancelled():
    """Two groups suffice; the graders have not yet looked at the others."""
    handed_over: list[tuple[str, LateVerdict]] = []

    def judge(problem: Problem, sample: Sample) -> LateVerdict:
        known = problem.id in ("p0", "p1")
        score = float(sum(name == problem.id for name, _ in handed_over) % 2)
        verdict = Verdict(status="correct" if score else "wrong", score=score)
        judged = LateVerdict(lambda: verdict, ready=lambda: known)
        handed_over.append((problem.id, judged))
        return judged

    collect(
        tiny_fleet(),
        some_problems(12).__getitem__,
        group_spec_of(4),
        judge,
        controller=Controller(num_groups=2, cap=12, share_before=0.2),
        usable=teaches,
    )
    assert {name for name, _ in handed_over} > {"p0", "p1"}
    assert all(judged.cancelled() == (name not in ("p0", "p1")) for name, judged in handed_over)
