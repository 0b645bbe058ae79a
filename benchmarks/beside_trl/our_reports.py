"""What Foresail's sides of `vs_trl.py` say of their steps: lines of JSON on stdout, like those of TRL's."""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Mapping
from typing import Any

import torch

from foresail.train.checkpoint import Progress
from foresail.train.session import Session


def report_steps() -> None:
    """A line at the end of every step; after the first, wait until told to go on.

    CPU time is what a busy machine does not change; that of writing the log is left out, as on TRL's side.
    """
    end_step, cpu = Session.end_step, 0.0

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
            sys.stdin.readline()
        cpu = time.process_time()

    Session.end_step = end_and_report  # type: ignore[method-assign]


def peak_gb() -> float:
    """Of the card, or of the process where there is none."""
    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated() / 1e9
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def say(**figures: Any) -> None:
    print(json.dumps(figures), flush=True)
