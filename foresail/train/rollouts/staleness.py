"""Synchronous and stale rollouts: samples drawn between updates, or one step early, beside the update before.

    rolled = rollouts.take(progress, watch)    # the samples of the step after `progress`
    with rollouts.beside_update(after):        # `after`: the run's progress once this step is done
        update(rolled)

`SynchronousRollouts` is strictly on-policy. `StaleRollouts` (`rollout.staleness = 1`) draws step k + 1 while the
trainer updates on step k, with the weights from before that update; then each waits for the other. So samples are
always one version old in their update, and a run can be repeated. Where nothing was drawn early (in the first step,
after a stage of the curriculum that ended early), samples are drawn with the current weights.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Protocol

from foresail.rollout.collect import NoSignal
from foresail.rollout.stream import sleep_briefly
from foresail.runlog.display import Display
from foresail.runlog.phase import Phase
from foresail.train.checkpoints.checkpoint import Progress
from foresail.train.rollouts.result import RolloutResult, write_rollout_result
from foresail.train.stopwatch import Stopwatch
from foresail.train.update.loop import ROLLOUT_SHARE

SHUTDOWN_SECONDS = 60.0  # seconds for a cancelled rollout to end


class SampleGroups(Protocol):
    def __call__(
        self, before: Progress, *, begin: Callable[[int], Phase], wait: Callable[[], None] = sleep_briefly
    ) -> RolloutResult:
        """Draw the samples of the step after `before` with the engines' weights, in whichever thread.

        `begin` is told how many there will be; `wait` is called when there is nothing to do, and may raise.
        """


class Rollouts(Protocol):
    def take(self, progress: Progress, watch: Stopwatch) -> RolloutResult:
        """The samples of the step after `progress`, once; the watch learns how long they took."""

    def beside_update(self, after: Progress) -> AbstractContextManager[None]:
        """Around the update of a step; the run's progress will be `after`."""

    def take_figures(self) -> dict[str, float]:
        """Metrics of the last update, and of what ran beside it."""

    def save(self, checkpoint: Path) -> None:
        """What a resumed run needs besides the models."""


class SynchronousRollouts:
    """See `Rollouts`: samples are drawn when they are asked for, with the weights as they are then."""

    def __init__(
        self, sample_groups: SampleGroups, update_engines: Callable[[int], None], display: Display
    ) -> None:
        """`update_engines` gives the engines the weights as they are now, under this version."""
        self.sample_groups, self.update_engines, self.display = sample_groups, update_engines, display

    def take(self, progress: Progress, watch: Stopwatch) -> RolloutResult:
        with watch("rollout"):
            self.update_engines(progress.step)
            begin = partial(self.display.begin, "rollout", span=(0.0, ROLLOUT_SHARE))
            return self.sample_groups(progress, begin=begin)

    def beside_update(self, after: Progress) -> AbstractContextManager[None]:
        return nullcontext()

    def take_figures(self) -> dict[str, float]:
        return {}

    def save(self, checkpoint: Path) -> None:
        """Nothing was drawn early."""


class RolloutCancelled(Exception):
    """This rollout was cancelled."""


class StaleRollouts:
    """See `Rollouts`: one rollout at a time, in a thread of its own while the trainer updates.

    Engines have weights of their own, which only `update_engines` changes: it is called between rollouts, by the
    trainer's thread, which is the only one that may speak to other ranks. An error of the engines ends the update's
    step too, so that a resumed run repeats both; one that says there is nothing to learn waits for its own step.
    """

    def __init__(
        self, synchronous: SynchronousRollouts, *, last_step: int, drawn: RolloutResult | None = None
    ) -> None:
        """`synchronous` draws where nothing was drawn early; `drawn` is the next step's result in a checkpoint."""
        self.synchronous, self.last_step = synchronous, last_step
        self.next: RolloutResult | NoSignal | None = drawn
        # one for the whole run: a judge's processes may end with the thread that started them
        self.thread = ThreadPoolExecutor(1, thread_name_prefix="rollout")
        self.figures: dict[str, float] = {}

    def take(self, progress: Progress, watch: Stopwatch) -> RolloutResult:
        drawn, self.next = self.next, None
        if drawn is None:
            return self.synchronous.take(progress, watch)
        if isinstance(drawn, NoSignal):
            raise drawn
        watch.add("rollout", drawn.start, drawn.end)
        return drawn

    @contextmanager
    def beside_update(self, after: Progress) -> Iterator[None]:
        if after.step >= self.last_step:
            yield
            return
        self.synchronous.update_engines(after.step - 1)
        cancelled, phases = threading.Event(), list[Phase]()
        drawing = self.thread.submit(
            self.synchronous.sample_groups,
            after,
            begin=partial(begin_hidden, phases),
            wait=partial(nap_unless_cancelled, cancelled),
        )
        try:
            yield
            updated = time.time()
            if phases:  # the display told of the update so far
                self.synchronous.display.phase = phases[0]
            self.next = result_of(drawing)
        except BaseException:
            cancelled.set()
            wait([drawing], timeout=SHUTDOWN_SECONDS)
            raise
        self.figures = {"timing_s/wait_for_rollout": time.time() - updated}
        if isinstance(self.next, RolloutResult):
            self.figures["timing_s/wait_for_update"] = max(0.0, updated - self.next.end)

    def take_figures(self) -> dict[str, float]:
        figures, self.figures = self.figures, {}
        return figures

    def save(self, checkpoint: Path) -> None:
        if isinstance(self.next, RolloutResult):
            write_rollout_result(checkpoint, self.next)


def begin_hidden(phases: list[Phase], total: int) -> Phase:
    """A phase that is not shown until the trainer waits for it."""
    phases.append(Phase("next rollout", total, span=(1.0, 1.0)))
    return phases[-1]


def nap_unless_cancelled(cancelled: threading.Event) -> None:
    if cancelled.is_set():
        raise RolloutCancelled
    sleep_briefly()


def result_of(drawing: Future[RolloutResult]) -> RolloutResult | NoSignal:
    try:
        return drawing.result()
    except NoSignal as nothing:
        return nothing
