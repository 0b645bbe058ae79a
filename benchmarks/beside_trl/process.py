"""One side of `vs_trl.py` in a process of its own: its lines of JSON as they come, and an end to waiting."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from turns import Turns

HERE = Path(__file__).parent


class SideFailed(Exception):
    """A side ended with an error; the message has the end of its log."""


def ask_peer(python: str, command: str, folder: Path, *, seconds: float) -> Iterator[dict[str, Any]]:
    """TRL's replies to FOLDER/request.json."""
    yield from replies([python, str(HERE / "peer.py"), command, str(folder)], folder / "trl.log", seconds)


def ask_ours(folder: Path, *, seconds: float) -> Iterator[dict[str, Any]]:
    """Foresail's replies to FOLDER/recipe.toml."""
    yield from replies([sys.executable, str(HERE / "ours.py"), str(folder)], folder / "ours.log", seconds)


def replies(
    command: list[str], log: Path, seconds: float, *, wait: Callable[[int], None] = lambda steps: None
) -> Generator[dict[str, Any], None, None]:
    """Every line of the process's stdout that is JSON; the rest of what it says goes to `log`.

    A process that outlives its time is killed; what it said until then was given. One that fails shows the end of
    its log, for that is where the reason is. Where it says that it is ready, before its first step and after it,
    `wait` is called with the number of its steps; then it gets a line, its leave to go on. That wait is no time of
    its own.
    """
    with log.open("w") as errors:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=environment(),
        )
        timer = threading.Timer(seconds, process.kill)
        timer.start()
        assert process.stdout is not None and process.stdin is not None
        try:
            for line in process.stdout:
                if not line.startswith('{"'):  # not {'…': a library's own report
                    errors.write(line)
                    continue
                reply = json.loads(line)
                if "ready" in reply:
                    timer.cancel()
                    wait(reply["ready"])
                    timer = threading.Timer(seconds, process.kill)
                    timer.start()
                    process.stdin.write("\n")
                    process.stdin.flush()
                else:
                    yield reply
            process.wait()
        finally:
            late = not timer.is_alive()
            timer.cancel()
            process.kill()
            process.wait()
    if late:
        print(f"  stopped after {seconds:.0f} s: {' '.join(command[-3:])}", flush=True)
    elif process.returncode:
        raise SideFailed(f"{' '.join(command)} failed:\n{log.read_text()[-2000:]}")


def run_steps(
    command: list[str], log: Path, *, steps: int, seconds: float, turns: Turns
) -> list[dict[str, Any]]:
    """What a side says of each step, as far as it came within its time.

    A side that fails, out of memory say, says so and leaves the other. After its last step a side is ended: what
    it would save is not waited for.
    """
    steps_done: list[dict[str, Any]] = []
    with turns.start() as place, closing(replies(command, log, seconds, wait=place.wait)) as lines:
        try:
            for line in lines:
                if "step" in line:
                    steps_done.append(line)
                if len(steps_done) == steps:
                    break
        except SideFailed as failure:
            print(f"  {failure}", flush=True)
    return steps_done


def environment() -> dict[str, str]:
    """Ours, for both sides alike: same threads, nothing from the network, no TF32 in place of float32."""
    return {
        **os.environ,
        "PYTHONUNBUFFERED": "1",
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "TRL_EXPERIMENTAL_SILENCE": "1",
        "NVIDIA_TF32_OVERRIDE": "0",
    }
