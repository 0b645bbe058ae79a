"""Functions of a script that a run calls: `foresail.rl(…, on_step=f, on_evaluation=g)`.

    def f(report):
        print(report.step, report.metrics["rollout/reward"])
        if report.metrics["rollout/reward"] > 0.9:
            report.stop()

They are called on rank 0 after a step is logged and, where that is due, saved. What they raise ends the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foresail.runlog.key_metrics import HELD_OUT_LOSS


@dataclass(frozen=True, kw_only=True)
class StepReport:
    """A step that is done, or the evaluation before the first one, which is step 0.

    `stop()` ends the run here: it is saved, and `foresail.resume` goes on with it.
    """

    step: int
    steps: int
    metrics: Mapping[str, Any]
    run: Path
    stop: Callable[[], None]

    @property
    def is_evaluation(self) -> bool:
        """Whether held-out problems, pairs or texts were measured."""
        return any(name.startswith(("val-core/", HELD_OUT_LOSS)) for name in self.metrics)


Callback = Callable[[StepReport], object]


@dataclass(frozen=True, kw_only=True)
class Callbacks:
    on_step: Callback | None = None
    on_evaluation: Callback | None = None

    def __call__(self, report: StepReport) -> None:
        if self.on_step is not None and report.step:
            self.on_step(report)
        if self.on_evaluation is not None and report.is_evaluation:
            self.on_evaluation(report)


_current: ContextVar[Callbacks] = ContextVar("callbacks", default=Callbacks())  # noqa: B039 (it is frozen)


@contextmanager
def calling(callbacks: Callbacks) -> Iterator[None]:
    """Runs started inside call these functions, which a recipe cannot hold."""
    token = _current.set(callbacks)
    try:
        yield
    finally:
        _current.reset(token)


def current_callbacks() -> Callbacks:
    return _current.get()
