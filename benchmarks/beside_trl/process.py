"""One side of `vs_trl.py` in a process of its own: its lines of JSON as they come, and an end to waiting."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


class SideFailed(Exception):
    """A side ended with an error; the message has the end of its log."""


def ask_peer(python: str, command: str, folder: Path, *, seconds: float) -> Iterator[dict[str, Any]]:
    """TRL's replies to FOLDER/request.json."""
    yield from replies([python, str(HERE / "peer.py"), command, str(folder)], folder / "trl.log", seconds)


def ask_ours(folder: Path, *, seconds: float) -> Iterator[dict[str, Any]]:
    """Foresail's replies to FOLDER/recipe.toml."""
    yield from replies([sys.executable, str(HERE / "ours.py"), str(folder)], folder / "ours.log", seconds)


def replies(command: list[str], log: Path, seconds: float) -> Iterator[dict[str, Any]]:
    """Every line of the process's stdout that is JSON; the rest of what it says goes to `log`.

    A process that outlives its time is killed; what it said until then was given. One that fails shows the end of
    its log, for that is where the reason is.
    """
    with log.open("w") as errors:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment()
        )
        timer = threading.Timer(seconds, process.kill)
        timer.start()
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if line.startswith('{"'):  # not {'…': a library's own report
                    yield json.loads(line)
                else:
                    errors.write(line)
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


def steps_after_first(command: list[str], log: Path, seconds: float) -> list[dict[str, Any]]:
    """As far as they came within their time; a side that fails, out of memory say, says so and leaves the other."""
    found = []
    try:
        for line in replies(command, log, seconds):
            if line.get("step", 1) > 1:
                found.append(line)
    except SideFailed as failure:
        print(f"  {failure}", flush=True)
    return found


def environment() -> dict[str, str]:
    """Ours, for both sides alike: same threads, nothing from the network."""
    return {**os.environ, "PYTHONUNBUFFERED": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
