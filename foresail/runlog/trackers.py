"""Copies metrics to TensorBoard, and to Weights & Biases if a project is named.

Both continue when a run is resumed.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from foresail.runlog.atomic import explained, write_text


class Tracker(Protocol):
    """Takes the metrics of every step until it is closed."""

    def log(self, step: int, metrics: Mapping[str, Any]) -> None: ...

    def close(self) -> None: ...


def open_trackers(
    run: Path, *, wandb_project: str | None, resumed_at: int | None, note: Callable[[str], None]
) -> Trackers:
    """The trackers of a run; `resumed_at` is the last valid step, None for a new run.

    TensorBoard is optional, so its absence is only noted; a named project requires Weights & Biases.
    """
    trackers: list[Tracker] = []
    try:
        trackers.append(TensorBoard(run / "tensorboard", resumed_at=resumed_at))
    except ImportError as error:
        note(f"no TensorBoard files are written: {error}")
    if wandb_project:
        trackers.append(WeightsAndBiases(run, wandb_project))
    return Trackers(trackers)


class Trackers:
    """Several trackers as one."""

    def __init__(self, trackers: Sequence[Tracker]) -> None:
        self.trackers = trackers

    def log(self, step: int, metrics: Mapping[str, Any]) -> None:
        for tracker in self.trackers:
            tracker.log(step, metrics)

    def close(self) -> None:
        for tracker in self.trackers:
            tracker.close()


class TensorBoard:
    """Event files in `folder`, one for every start of the run.

    A resumed run's file begins with a session start, which makes TensorBoard drop later steps of earlier files.
    """

    def __init__(self, folder: Path, *, resumed_at: int | None) -> None:
        try:
            from tensorboard.compat.proto.event_pb2 import Event, SessionLog
            from tensorboard.compat.proto.summary_pb2 import Summary
            from tensorboard.summary.writer.record_writer import RecordWriter
        except ImportError as error:
            raise ImportError("tensorboard is missing; install it with: pip install tensorboard") from error
        self.folder = folder
        self.make_event, self.make_summary = Event, Summary
        with explained(folder):
            folder.mkdir(parents=True, exist_ok=True)
            self.writer = RecordWriter(next_file(folder).open("xb"))
        self.write(file_version="brain.Event:2")
        if resumed_at is not None:
            self.write(step=resumed_at + 1, session_log=SessionLog(status=SessionLog.START))

    def log(self, step: int, metrics: Mapping[str, Any]) -> None:
        numbers = {name: value for name, value in metrics.items() if isinstance(value, int | float)}
        values = [self.make_summary.Value(tag=name, simple_value=value) for name, value in numbers.items()]
        self.write(step=step, summary=self.make_summary(value=values))

    def write(self, **fields: Any) -> None:
        with explained(self.folder):
            self.writer.write(self.make_event(wall_time=time.time(), **fields).SerializeToString())
            self.writer.flush()

    def close(self) -> None:
        self.writer.close()


def next_file(folder: Path) -> Path:
    """The next file name, numbered, since TensorBoard reads files by name and clocks may go back."""
    numbers = [path.name.split(".")[3] for path in folder.glob("events.out.tfevents.*")]
    last = max((int(number) for number in numbers if number.isdecimal()), default=0)
    return folder / f"events.out.tfevents.{last + 1:010d}.foresail"


class WeightsAndBiases:
    """A run of `project`; its id is stored in the run directory, to continue it on a resume."""

    def __init__(self, run: Path, project: str) -> None:
        try:
            import wandb
        except ImportError as error:
            raise ImportError(
                "run.wandb is set but wandb is missing; install it with: pip install 'foresail[wandb]'"
            ) from error
        try:
            self.run = wandb.init(
                project=project, name=run.name, id=read_or_make_id(run), resume="allow", dir=run
            )
        except wandb.errors.Error as error:  # no login, no network, no such entity
            raise OSError(
                f"Weights & Biases does not begin: {error}; run `wandb login`, set WANDB_MODE=offline, or leave "
                "run.wandb out"
            ) from error

    def log(self, step: int, metrics: Mapping[str, Any]) -> None:
        # the service ignores steps that are repeated after a resume
        self.run.log(dict(metrics), step=step)

    def close(self) -> None:
        self.run.finish()


def read_or_make_id(run: Path) -> str:
    path = run / "wandb_id"
    if not path.exists():
        write_text(path, uuid.uuid4().hex + "\n")
    return path.read_text(encoding="utf-8").strip()
