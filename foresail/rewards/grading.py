"""The interface of gradings: a trajectory in, a verdict's future out. `build.open_grading` opens a recipe's.

    grading.submit(problem, trajectory)        the verdict on one response alone
    grading.submit_early(problem, trajectory)  what can be said of it before its siblings have ended
    grading.submit_group(pairs)                what needs them all; `group_verdicts` puts the two together

A grader that raises still gives a verdict: `crashed`, with the error in one line. A failure is never a score.
"""

from __future__ import annotations

import logging
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Literal, NamedTuple, Self

from foresail.records import FAILURES, Problem, Trajectory, Verdict
from foresail.rewards.loading import (
    LOADING_SECONDS,
    LoadingTooLong,
    explain_loading,
    in_one_line,
    loading_limit,
)
from foresail.rewards.print_log import PrintLog

# Judges one trajectory. A wrong answer is a verdict; a grader that breaks raises or says so by status. Graders
# travel to other processes by pickle, so each is a function of a module or a small record. One that has something
# to load (a library, a model) has a method `load`, called once a process before the first verdict; one that wants
# whole groups has `traits`, `grade_early` and `grade_group`.
Grader = Callable[[Problem, Trajectory], Verdict]
Pair = tuple[Problem, Trajectory]
Part = Literal["whole", "early", "group"]

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class RequiredColumns:
    """The columns a reward function requires, and the file and line of its signature."""

    function: str
    place: str
    columns: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class GraderTraits:
    """Known once a grader is loaded: which parts of a verdict come early, and which with the group."""

    early: bool = True
    group: bool = False
    main_in_group: bool = False  # who says right or wrong
    required_columns: tuple[RequiredColumns, ...] = ()


def load_grader(grader: Any) -> GraderTraits:
    if (load := getattr(grader, "load", None)) is not None:
        load()
    return grader.traits() if hasattr(grader, "traits") else GraderTraits()


class Grading(ABC):
    """with … as grading: grading.submit(problem, trajectory).result()"""

    failure_logged = False
    traits = GraderTraits()  # set by `check`
    prints: PrintLog | None = None  # file for what reward functions print; None: stdout and stderr

    @abstractmethod
    def submit(self, problem: Problem, trajectory: Trajectory) -> Future[Verdict]: ...

    def submit_early(self, problem: Problem, trajectory: Trajectory) -> Future[Verdict]:
        raise NotImplementedError("this grading knows no groups")

    def submit_group(self, pairs: Sequence[Pair]) -> Future[list[Verdict]]:
        raise NotImplementedError("this grading knows no groups")

    @abstractmethod
    def check(self) -> None:
        """Load the grader now, so that one that cannot be loaded is a ValueError before any response."""

    def log_first_failure(self, trace: str) -> None:
        """Show the first traceback to the user, and only the first: every response may fail alike."""
        if trace and not self.failure_logged:
            self.failure_logged = True
            log.error("a grader failed; further failures are only counted.\n%s", trace)

    def close(self) -> None:
        """Pending verdicts become errors."""
        if self.prints is not None:
            self.prints.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class InlineGrading(Grading):
    """Grades in the caller's thread without a time limit: the returned future is done."""

    def __init__(self, grader: Grader, *, prints: PrintLog | None = None) -> None:
        self.grader, self.prints = grader, prints

    def check(self) -> None:
        try:
            with self._diverting(), loading_limit(LOADING_SECONDS):
                self.traits = load_grader(self.grader)
        except (Exception, SystemExit, LoadingTooLong) as error:
            raise ValueError(f"the grader cannot be loaded: {explain_loading(error)}") from error

    def submit(self, problem: Problem, trajectory: Trajectory) -> Future[Verdict]:
        return settled(self._grade("whole", [(problem, trajectory)])[0])

    def submit_early(self, problem: Problem, trajectory: Trajectory) -> Future[Verdict]:
        return settled(self._grade("early", [(problem, trajectory)])[0])

    def submit_group(self, pairs: Sequence[Pair]) -> Future[list[Verdict]]:
        return settled(self._grade("group", pairs))

    def _grade(self, part: Part, pairs: Sequence[Pair]) -> list[Verdict]:
        with self._diverting():
            verdicts, trace = grade_guarded(self.grader, part, pairs)
        self.log_first_failure(trace)
        return verdicts

    def _diverting(self) -> AbstractContextManager[None]:
        return nullcontext() if self.prints is None else self.prints.diverting()


def settled(result: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(result)
    return future


# Complete verdicts from the early ones and the group's.

NOTHING_YET = settled(
    Verdict(status="scored", score=0.0)
)  # the early verdict, if every function needs the group


def group_verdicts(
    grading: Grading, pairs: Sequence[Pair], early: Sequence[Future[Verdict]]
) -> Sequence[Future[Verdict]]:
    """The verdicts on all responses to a problem, once the last has ended."""
    if not grading.traits.group:
        return early
    late = grading.submit_group(pairs)
    if isinstance(grading, InlineGrading):  # nothing is missing
        both = zip(early, late.result(), strict=True)
        return [settled(merge(first.result(), last, grading.traits)) for first, last in both]
    return [join(grading.traits, number, future, late) for number, future in enumerate(early)]


def join(
    traits: GraderTraits, number: int, early: Future[Verdict], late: Future[list[Verdict]]
) -> Future[Verdict]:
    """Done when both are. If it is cancelled, so is the batch: a part of a group is of no use."""
    joined_future: Future[Verdict] = Future()

    def finish(_: object) -> None:
        if early.cancelled() or late.cancelled():
            joined_future.cancel()
        elif joined_future.set_running_or_notify_cancel():
            try:
                joined_future.set_result(merge(early.result(), late.result()[number], traits))
            except BaseException as error:
                joined_future.set_exception(error)

    def pass_on(ended: Future[Verdict]) -> None:
        if ended.cancelled():
            early.cancel()
            late.cancel()

    joined_future.add_done_callback(pass_on)
    early.add_done_callback(lambda _: late.add_done_callback(finish))
    return joined_future


def merge(early: Verdict, late: Verdict, traits: GraderTraits) -> Verdict:
    """One verdict of two parts; a failure of either is the failure of both."""
    for part in (early, late):
        if part.status in FAILURES:
            return part
    if not traits.early:
        return applied(late)
    main, other = (late, early) if traits.main_in_group else (early, late)
    return applied(
        replace(
            main,
            terms={**other.terms, **main.terms},
            extra={**other.extra, **main.extra},
            metrics={**other.metrics, **main.metrics},
        )
    )


def applied(verdict: Verdict) -> Verdict:
    """A whole verdict; if no grader and no term applies, it is a failure and no score."""
    if verdict.status == "scored" and not (verdict.terms or verdict.detail):  # a grader's score has a detail
        return Verdict(status="ungradable", score=0.0, detail="no reward term applies to this response")
    return verdict


# Graders that raise.


class Graded(NamedTuple):
    """Verdicts, and the traceback of the error behind them if there was one."""

    verdicts: list[Verdict]
    trace: str = ""


def grade_guarded(grader: Any, part: Part, pairs: Sequence[Pair]) -> Graded:
    """The grader's verdicts, or `crashed` ones. `sys.exit()` inside a reward function is a crash too."""
    try:
        if part == "group":
            verdicts = grader.grade_group(pairs)
        else:
            judge = grader if part == "whole" else grader.grade_early
            verdicts = [judge(problem, trajectory) for problem, trajectory in pairs]
    except (Exception, SystemExit) as error:
        return crashed(error, len(pairs))
    return Graded(verdicts)


def crashed(error: BaseException, count: int = 1) -> Graded:
    """crashed(KeyError("x")) -> a verdict with the detail "KeyError: 'x' (rewards.py:12)"."""
    return Graded([failure(in_one_line(error))] * count, "".join(traceback.format_exception(error)))


def failure(detail: str) -> Verdict:
    return Verdict(status="crashed", score=0.0, detail=detail)
