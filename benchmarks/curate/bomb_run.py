"""Runs `foresail data curate` on a folder of bombs, and measures its processes.

run_bombs(folder, size=2**30) -> {"files": 130, "summary": {…}, "peak_MB": …, "cpu_s": …}
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bombs import write_bombs, write_links

RECIPE = """
out = "{out}"
max_cpu_seconds = {cpu_seconds}
worker_memory_gib = {memory_gib}
[cluster]
workers = {workers}
[[source]]
path = "{folder}"
name = "bombs"
[[step]]
name = "extract"
"""
POLL_SECONDS = 0.2


def run_bombs(
    folder: Path, size: int, *, cpu_seconds: float = 60, memory_gib: float = 8, workers: int = 1
) -> dict[str, Any]:
    """`folder` is empty; the bombs and the output go there."""
    (folder / "in").mkdir()
    files = len(write_bombs(folder / "in", size))
    write_links(folder / "in")
    recipe = folder / "bombs.toml"
    recipe.write_text(
        RECIPE.format(
            out=folder / "out",
            folder=folder / "in",
            cpu_seconds=cpu_seconds,
            memory_gib=memory_gib,
            workers=workers,
        )
    )
    begin = time.monotonic()
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    with (folder / "log").open("w") as log:
        run = subprocess.Popen(
            [sys.executable, "-m", "foresail", "data", "curate", str(recipe)], stdout=log, stderr=log
        )
        peaks = watch(run)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if run.returncode:
        raise SystemExit(f"exit {run.returncode}: {(folder / 'log').read_text()[-2000:]}")
    summary = json.loads((folder / "out/summary.json").read_text())
    return {
        "files": files,
        "summary": summary,
        "processes": len(peaks),
        "peak_MB": max(peaks.values()) // 1024,
        "cpu_s": round(after.ru_utime + after.ru_stime - spent.ru_utime - spent.ru_stime, 1),
        "wall_s": round(time.monotonic() - begin, 1),
    }


def watch(run: subprocess.Popen[bytes]) -> dict[int, int]:
    """The largest resident size of each process of the run, in kB."""
    peaks: dict[int, int] = {}
    while run.poll() is None:
        for process in Path("/proc").iterdir():
            if process.name.isdecimal() and (size := peak_of(process, run.pid)):
                peaks[int(process.name)] = size
        time.sleep(POLL_SECONDS)
    return peaks


def peak_of(process: Path, parent: int) -> int:
    """0: it belongs to another run, or is gone."""
    try:
        lines = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
    except (OSError, ValueError):
        return 0
    if parent not in (int(lines["PPid"]), int(lines["Pid"])) or "VmHWM" not in lines:
        return 0
    return int(lines["VmHWM"].split()[0])
