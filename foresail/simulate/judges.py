"""Judges on a virtual clock with a fixed number of concurrent verdicts and a queue."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial

from foresail.records import Problem, Sample, Verdict
from foresail.simulate.clock import VirtualClock
from foresail.simulate.generated_text import sample_of
from foresail.simulate.workloads import Problems


class KnownVerdict(Future[Verdict]):
    """A verdict known from the start and delivered at its time."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__()
        self._verdict = verdict

    def finish(self) -> None:
        if self.set_running_or_notify_cancel():  # else it was cancelled at the step's end
            self.set_result(self._verdict)


class Judges:
    """The judge of a simulated step: each verdict takes some seconds, after those queued before."""

    def __init__(self, problems: Problems, clock: VirtualClock, *, count: int, after_all: bool) -> None:
        self.ends: list[float] = []  # times of the samples' ends
        self.tokens = 0  # of these
        self.grading_seconds = 0.0  # total of all verdicts
        self._problems, self._clock, self._after_all = problems, clock, after_all
        self._graders = Graders(count, clock)
        self._expected = 0
        self._held: list[tuple[str, float, KnownVerdict]] = []
        self._pending: Counter[str] = Counter()

    def expect(self, samples: int) -> None:
        """Expect more samples; a judge with `after_all` waits for them."""
        self._expected += samples

    def __call__(self, problem: Problem, sample: Sample) -> KnownVerdict:
        group = self._problems[int(problem.id)]
        score = float(group.right[sample_of(sample.ids)])
        judged = KnownVerdict(Verdict(status="correct" if score else "wrong", score=score))
        self.ends.append(self._clock.now())
        self.tokens += len(sample.ids)
        self.grading_seconds += group.grading_seconds
        self._expected -= 1
        self._pending[problem.id] += 1
        self._held.append((problem.id, group.grading_seconds, judged))
        if not self._after_all or self._expected == 0:
            held, self._held = self._held, []
            for name, seconds, each in held:
                self._graders.submit(seconds, partial(self._finish, name, each))
        return judged

    def _finish(self, problem: str, judged: KnownVerdict) -> None:
        judged.finish()
        self._pending[problem] -= 1
        if not self._pending[problem]:  # the others would only be looked at
            self._clock.wake()


class Graders:
    """A fixed number of concurrent verdicts; others wait in a queue."""

    def __init__(self, count: int, clock: VirtualClock) -> None:
        self._free, self._clock = count, clock
        self._line: deque[tuple[float, Callable[[], None]]] = deque()

    def submit(self, seconds: float, done: Callable[[], None]) -> None:
        self._line.append((seconds, done))
        self._start()

    def _start(self) -> None:
        while self._free and self._line:
            seconds, done = self._line.popleft()
            self._free -= 1
            self._clock.at(self._clock.now() + seconds, partial(self._finish, done))

    def _finish(self, done: Callable[[], None]) -> None:
        self._free += 1
        done()
        self._start()
