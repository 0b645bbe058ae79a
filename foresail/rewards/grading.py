"""Where verdicts are made: a response in, a future out. `build.open_grading` opens the one a recipe asks for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from concurrent.futures import Future
from types import TracebackType
from typing import Self

from foresail.records import Problem, Verdict
from foresail.rewards.guard import Grader, grade_guarded, tell


class Grading(ABC):
    """with … as grading: grading.submit(problem, response).result()"""

    @abstractmethod
    def submit(self, problem: Problem, response: str) -> Future[Verdict]: ...

    @abstractmethod
    def check(self) -> None:
        """Load the grader now: one that cannot be is a ValueError, not a crash for every response."""

    def close(self) -> None:  # noqa: B027, some have opened nothing
        """Those who still wait for a verdict get an error."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class HereAndNow(Grading):
    """Grades in the caller's thread: the future is done when it is given. There is no time limit."""

    def __init__(self, grader: Grader) -> None:
        self.grader, self.told = grader, False

    def check(self) -> None:
        if (load := getattr(self.grader, "load", None)) is not None:
            load()

    def submit(self, problem: Problem, response: str) -> Future[Verdict]:
        verdict, trace = grade_guarded(self.grader, problem, response)
        if trace and not self.told:
            self.told = True
            tell(trace)
        future: Future[Verdict] = Future()
        future.set_result(verdict)
        return future
