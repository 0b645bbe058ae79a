"""What TRL's sides of `vs_trl.py` say of their steps: lines of JSON on stdout.

In the interpreter that has TRL, so nothing here may import foresail.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from typing import Any

import torch
from transformers import TrainerCallback


def say(**figures: Any) -> None:
    print(json.dumps(figures), flush=True)


def now() -> float:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()


def peak_gb() -> float:
    """Of the card, or of the process where there is none."""
    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated() / 1e9
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def wait_to_go_on(steps: int) -> None:
    """Ready after so many steps: the other sides get the room meanwhile."""
    torch.cuda.empty_cache()
    say(ready=steps)
    sys.stdin.readline()


class StepReporter(TrainerCallback):
    """One line a step, with the loss that the trainer logs."""

    def __init__(self) -> None:
        self.began, self.cpu = 0.0, 0.0
        self.seconds: dict[str, float] = {}

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        wait_to_go_on(0)
        self.began, self.cpu = now(), time.process_time()

    def on_step_end(self, *_: Any, **__: Any) -> None:
        end, cpu = now(), time.process_time()
        self.seconds = {"step": end - self.began, "cpu": cpu - self.cpu}

    def on_log(self, args: Any, state: Any, control: Any, **named: Any) -> None:
        logs = named["logs"]
        if "loss" in logs:
            say(step=state.global_step, seconds=self.seconds, loss=logs["loss"], peak_gb=peak_gb())
            if state.global_step == 1:
                wait_to_go_on(1)
        self.began, self.cpu = now(), time.process_time()
