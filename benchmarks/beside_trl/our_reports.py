"""What Foresail's sides of `vs_trl.py` say of their steps: lines of JSON on stdout, like those of TRL's."""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from foresail.train.checkpoints.checkpoint import Progress
from foresail.train.session import Session


def report_steps() -> None:
    """A line at the end of every step; before the first and after it, wait until told to go on.

    CPU time is what a busy machine does not change; that of writing the log is left out, as on TRL's side.
    """
    steps, end_step, cpu = Session.steps, Session.end_step, 0.0

    def steps_when_told(self: Session) -> Iterator[int]:
        wait_to_go_on(0)
        yield from steps(self)

    def end_and_report(self: Session, progress: Progress, metrics: Mapping[str, Any]) -> None:
        nonlocal cpu
        seconds = {"step": metrics["timing_s/step"], "cpu": time.process_time() - cpu}
        end_step(self, progress, metrics)
        say(
            step=progress.step,
            loss=metrics["train/loss"],
            tokens=metrics["train/tokens"],
            seconds=seconds,
            peak_gb=peak_gb(),
        )
        if progress.step == 1:
            wait_to_go_on(1)
        cpu = time.process_time()

    Session.steps = steps_when_told  # type: ignore[method-assign]
    Session.end_step = end_and_report  # type: ignore[method-assign]


def wait_to_go_on(steps: int) -> None:
    """Ready after so many steps: the other sides get the room meanwhile."""
    torch.cuda.empty_cache()
    say(ready=steps)
    sys.stdin.readline()


def peak_gb() -> float:
    """Of the card, or of the process where there is none."""
    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated() / 1e9
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def say(**figures: Any) -> None:
    print(json.dumps(figures), flush=True)
