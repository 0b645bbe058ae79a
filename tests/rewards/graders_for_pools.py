"""Graders that misbehave on demand: what to do stands in the response. Pools import them by name."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from foresail.records import Problem, Trajectory, Verdict, single_turn


def misbehave(problem: Problem, trajectory: Trajectory) -> Verdict:
    """A word and what it is about: `echo x`, `raise x`, `die 3`, `sleep 0.5`, `once FILE`, …"""
    word, _, rest = trajectory.response.partition(" ")
    if word == "raise":
        raise KeyError(rest)
    if word == "exit":
        sys.exit(int(rest))
    if word == "die":
        os._exit(int(rest))
    if word == "kill":
        os.kill(os.getpid(), signal.Signals(int(rest)))
    if word == "sleep":
        time.sleep(float(rest))
    if word == "compute":
        while time.process_time() < float(rest):
            pass
    if word == "spin":
        while True:
            pass
    if word == "pid":
        rest = str(os.getpid())
    if word == "env":
        rest = os.environ.get(rest, "")
    if word == "modules":
        rest = " ".join(sorted(sys.modules))
    if word == "once":  # dies the first time, leaving a mark
        mark = Path(rest)
        if not mark.exists():
            mark.touch()
            os._exit(1)
    if word == "child":  # a process that outlives its maker, unless that is killed as a whole
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        Path(rest).write_text(str(child.pid))
        time.sleep(600)
    return Verdict(status="correct", score=1.0, detail=rest)


@dataclass(frozen=True)
class Unloadable:
    """Its `load` does what `misbehave` does."""

    response: str

    def load(self) -> None:
        misbehave(Problem(id="", prompt=(), answer=""), single_turn(self.response))

    def __call__(self, problem: Problem, trajectory: Trajectory) -> Verdict:
        raise AssertionError("never reached")
