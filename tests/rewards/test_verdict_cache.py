"""Equal programs for one problem are run once, and every response still has a verdict of its own to wait for."""

from __future__ import annotations

from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from random import Random
from typing import get_args

import pytest

from foresail.recipe.tables.reward import Reward
from foresail.records import FAILURES, Problem, Status, Trajectory, Verdict, single_turn
from foresail.rewards import verdict_cache
from foresail.rewards.build import open_grading
from foresail.rewards.grading import InlineGrading, settled
from foresail.rewards.pool import GradingPool
from foresail.rewards.verdict_cache import CachedGrading

ONE, OTHER = (Problem(id="p", prompt=(), answer=answer) for answer in "78")


def respond(program: str, thoughts: str = "") -> Trajectory:
    return single_turn(f"{thoughts}\n```python\n{program}\n```")


class Desk(InlineGrading):
    """Keeps what comes until somebody gives a verdict on it."""

    def __init__(self) -> None:
        self.came: list[tuple[Problem, Trajectory]] = []
        self.futures: list[Future[Verdict]] = []

    def submit(self, problem: Problem, trajectory: Trajectory) -> Future[Verdict]:
        self.came.append((problem, trajectory))
        self.futures.append(Future())
        return self.futures[-1]

    def say(self, number: int, status: Status) -> None:
        assert self.futures[number].set_running_or_notify_cancel()
        self.futures[number].set_result(Verdict(status=status, score=float(status == "correct")))


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_what_stands_around_a_program_makes_no_difference(desk: Desk) -> None:
    grading = CachedGrading(desk)
    futures = [grading.submit(ONE, respond("x = 1", thoughts)) for thoughts in ("", "Well.", "So:")]
    assert len(desk.came) == 1 and not any(future.done() for future in futures)
    desk.say(0, "correct")
    late = grading.submit(ONE, respond("x = 1"))
    assert [future.result(0).status for future in (*futures, late)] == ["correct"] * 4
    assert len(desk.came) == 1


def test_other_programs_and_other_problems_are_tried_themselves(desk: Desk) -> None:
    grading = CachedGrading(desk)
    grading.submit(ONE, respond("x = 1"))
    grading.submit(ONE, respond("x = 2"))
    grading.submit(OTHER, respond("x = 1"))  # of the same name, with another answer
    for _ in range(2):
        grading.submit(ONE, single_turn("no program at all"))
    assert len(desk.came) == 5


@pytest.mark.parametrize("status", sorted(FAILURES))
def test_a_failure_is_tried_anew(desk: Desk, status: Status) -> None:
    grading = CachedGrading(desk)
    before = grading.submit(ONE, respond("x = 1"))
    desk.say(0, status)
    after = grading.submit(ONE, respond("x = 1"))
    desk.say(1, "correct")
    assert (before.result(0).status, after.result(0).status) == (status, "correct")


@pytest.mark.parametrize("status", sorted(set(get_args(Status)) - FAILURES))
def test_every_verdict_is_kept_alike(desk: Desk, status: Status) -> None:
    grading = CachedGrading(desk)
    found = [grading.submit(ONE, respond("x = 1"))]
    desk.say(0, status)
    found += [grading.submit(ONE, respond("x = 1")) for _ in range(5)]
    assert [future.result(0).status for future in found] == [status] * 6 and len(desk.came) == 1


class Dice(InlineGrading):
    """Right with a chance, whatever comes; sometimes it fails."""

    def __init__(self, chance: float, failing: float, seed: int) -> None:
        self.chance, self.failing, self.numbers = chance, failing, Random(seed)

    def submit(self, problem: Problem, trajectory: Trajectory) -> Future[Verdict]:
        if self.numbers.random() < self.failing:
            return settled(Verdict(status="crashed", score=0.0))
        is_right = self.numbers.random() < self.chance
        return settled(Verdict(status="correct" if is_right else "wrong", score=float(is_right)))


@pytest.mark.parametrize("chance", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("failing", [0.0, 0.4])
def test_a_program_that_throws_dice_gets_what_they_are_worth(chance: float, failing: float) -> None:
    """However often it is written: the share of right verdicts is its chance."""
    grading = CachedGrading(Dice(chance, failing, seed=5))
    verdicts = [
        grading.submit(ONE, respond(f"x = {number}")).result(0) for number in range(2000) for _ in range(10)
    ]
    judged = [verdict.score for verdict in verdicts if verdict.status not in FAILURES]
    assert abs(sum(judged) / len(judged) - chance) < 0.04


def test_an_error_reaches_everyone_and_is_not_kept(desk: Desk) -> None:
    grading = CachedGrading(desk)
    futures = [grading.submit(ONE, respond("x = 1")) for _ in range(2)]
    desk.futures[0].set_exception(RuntimeError("closed"))
    for future in futures:
        with pytest.raises(RuntimeError, match="closed"):
            future.result(0)
    grading.submit(ONE, respond("x = 1"))
    assert len(desk.came) == 2


def test_who_cancels_takes_nothing_from_the_others(desk: Desk) -> None:
    grading = CachedGrading(desk)
    first, second = (grading.submit(ONE, respond("x = 1")) for _ in range(2))
    assert first.cancel() and not desk.futures[0].cancelled()
    desk.say(0, "correct")
    assert second.result(0).status == "correct"
    with pytest.raises(CancelledError):
        first.result(0)


def test_what_nobody_waits_for_is_not_begun(desk: Desk) -> None:
    grading = CachedGrading(desk)
    futures = [grading.submit(ONE, respond("x = 1")) for _ in range(3)]
    assert all(future.cancel() for future in futures) and desk.futures[0].cancelled()
    again = grading.submit(ONE, respond("x = 1"))
    desk.say(1, "wrong")
    assert again.result(0).status == "wrong"


def test_no_more_programs_are_kept_than_may_be(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdict_cache, "KEPT", 3)
    grading = CachedGrading(desk)
    for number in range(10):
        grading.submit(ONE, respond(f"x = {number}"))
    assert len(grading.trials) == 3
    grading.submit(ONE, respond("x = 9"))
    grading.submit(ONE, respond("x = 0"))
    assert len(desk.came) == 11


def test_many_threads_and_a_real_pool() -> None:
    """Some cancel at once: nobody is forgotten, and no verdict goes to the wrong one."""
    with CachedGrading(GradingPool(tell_apart, workers=2, seconds=60)) as grading:

        def ask(number: int) -> float | None:
            future = grading.submit((ONE, OTHER)[number % 2], respond(f"x = {number % 9}"))
            return None if number % 4 == 0 and future.cancel() else future.result(600).score

        with ThreadPoolExecutor(8) as threads:
            found = list(threads.map(ask, range(600)))
    for number, score in enumerate(found):
        expected = 100.0 * (number % 9) + (8.0 if number % 2 else 7.0)
        assert score == expected or (score is None and number % 4 == 0)


def tell_apart(problem: Problem, trajectory: Trajectory) -> Verdict:
    """A score for this program and this problem alone."""
    number = int(trajectory.response.split("x = ")[1].split("\n")[0])
    score = 100.0 * number + float(problem.answer)
    return Verdict(status="correct" if number % 2 else "wrong", score=score)


def test_only_code_is_shared() -> None:
    """A function of one's own may count its calls or throw dice, and mathematics takes no time."""
    with open_grading(Reward(grader="code", workers=1)) as grading:
        assert isinstance(grading, CachedGrading)
    with open_grading(Reward(grader="math")) as grading:
        assert isinstance(grading, InlineGrading)
