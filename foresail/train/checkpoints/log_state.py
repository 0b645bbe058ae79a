"""The length of a run's log when a checkpoint was written: a resume reports records that are missing.

trainer/log.json   {"metrics.jsonl": {"bytes": 41210, "crc32": "9d3f0c1a"}, "timeline.jsonl": {"bytes": 812004, …},
                    "rollouts": {"bytes": 5120331, …}}

The log only grows, and a resume cuts it back to the checkpoint's step, so it must still begin with the same bytes.
Training does not read it: a resume without them only warns.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from pathlib import Path

from foresail.runlog.directory import RunDirectory
from foresail.runlog.jsonl_log import JsonlLog
from foresail.train.checkpoints.manifest import FileEntry, Manifest

NAME = "trainer/log.json"
CHUNK = 1 << 22


def write_log_state(checkpoint: Path, run: RunDirectory, step: int) -> None:
    entries = {log.path.name: log_entry(log, run) for log in logs(run) if log.path.is_file()}
    if size := size_of_rollouts(run, step):
        entries[run.rollouts_path.name] = FileEntry(bytes=size, crc32="")
    content = {name: entry.model_dump() for name, entry in entries.items()}
    (checkpoint / NAME).write_text(json.dumps(content) + "\n", encoding="utf-8")


def lost_history(checkpoint: Path, run: RunDirectory, step: int) -> Iterator[str]:
    """One sentence for each part of the log that has changed; none for a checkpoint without this file."""
    if not (checkpoint / NAME).is_file():
        return
    before = Manifest.validate_json((checkpoint / NAME).read_bytes())
    entry = before.get(run.rollouts_path.name)
    if entry is not None and (size := size_of_rollouts(run, step)) != entry.bytes:
        yield (
            f"{run.rollouts_path} has {size} bytes of samples up to {checkpoint.name}, and had {entry.bytes}: some "
            "are gone or were changed. Weights are not touched by that, and the run goes on"
        )
    for log in logs(run):
        if (entry := before.get(log.path.name)) is None:
            continue
        if not log.path.is_file():
            how = "is gone"
        elif (size := log.path.stat().st_size) < entry.bytes:
            how = f"has {size} bytes, and had {entry.bytes}"
        elif log_entry(log, run, entry.bytes) != entry:
            how = "was changed"
        else:
            continue
        yield (
            f"{log.path} {how} since {checkpoint.name} was saved: history up to that step is lost. Weights are not "
            "touched by that, and the run goes on; to have it back, stop now, restore the file, and resume"
        )


def size_of_rollouts(run: RunDirectory, step: int) -> int:
    """Bytes of all steps up to that one. The files may be huge, so only gzip's own checksum protects them."""
    files = [run.rollout_path(number) for number in run.rollout_steps() if number <= step]
    return sum(file.stat().st_size for file in files if file.is_file())


def logs(run: RunDirectory) -> tuple[JsonlLog, ...]:
    return run.metrics, run.expert_load, run.timeline


def log_entry(log: JsonlLog, run: RunDirectory, size: int | None = None) -> FileEntry:
    """Of its first `size` bytes, or all. The timeline, which may be huge, has no checksum."""
    remaining = log.path.stat().st_size if size is None else size
    total, size_read = 0, remaining
    if log is not run.timeline:
        with log.path.open("rb") as file:
            while remaining and (chunk := file.read(min(CHUNK, remaining))):
                total, remaining = zlib.crc32(chunk, total), remaining - len(chunk)
    return FileEntry(bytes=size_read, crc32=f"{total:08x}")
