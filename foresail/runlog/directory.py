"""The run directory with all files of one run, to show, resume and rewind it.

    recipe.toml            every value that was used
    metrics.jsonl          one record a step
    rollouts/              step_000012.jsonl.gz: every sample of step 12, with its verdict
    reward.log             output of the user's reward functions
    timeline.jsonl         events of each instance and grader, with times
    expert_load.jsonl      of a model with experts: tokens of each, by layer, in some hundred steps
    error.txt              the error of a failed run, until it is resumed
    checkpoints/step_12/   written by the trainer, with `replacing_directory(run.checkpoint_path(12))`

No file is ever incomplete under its final name: files are written under a temporary name and renamed, and an
unfinished line is ignored. The trainer loads and saves weights.
"""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from foresail.runlog.atomic import clean_leftovers, explained, write_atomically, write_text
from foresail.runlog.held_folder import HeldFolder
from foresail.runlog.jsonl_log import JsonlLog, encode

# Files of a run before its first step; the recipe last, so that a half-cleared folder is still a run.
FALSE_START = (
    "metrics.jsonl",
    "timeline.jsonl",
    "expert_load.jsonl",
    "rollouts",
    "tensorboard",
    "wandb_id",
    "error.txt",
    "reference.safetensors",
    "recipe.toml",
)
MAX_LOADS = 500  # records of expert_load.jsonl, which are long
FASTEST = 1  # gzip's level: the best one takes four times as long and saves a twelfth


class RunDirectory:
    """One run's folder. The constructor touches no file; `create` and `rewind` begin and resume a run."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.recipe_path = self.path / "recipe.toml"
        self.metrics = JsonlLog(self.path / "metrics.jsonl", self.warn)
        self.timeline = JsonlLog(self.path / "timeline.jsonl", self.warn)
        self.expert_load = JsonlLog(self.path / "expert_load.jsonl", self.warn)
        self.rollouts_path = self.path / "rollouts"
        self.checkpoints_path = self.path / "checkpoints"
        self.on_warning: Callable[[str], object] = lambda text: (
            None
        )  # called when files were changed from outside
        self.held: HeldFolder | None = None  # while the run goes on
        self.has_rollouts = False

    def warn(self, text: str) -> None:
        self.on_warning(text)

    def hold(self, on_warning: Callable[[str], object]) -> None:
        """Watch the folder: if it is moved or removed the run ends; lost files are reported to `on_warning`."""
        self.held, self.on_warning = HeldFolder(self.path), on_warning
        self.has_rollouts = self.rollouts_path.is_dir()

    def check_there(self) -> None:
        """Check before writing; raises FolderGone."""
        if self.held is not None:
            self.held.check()

    def close(self) -> None:
        for log in (self.metrics, self.timeline, self.expert_load):
            log.close()
        if self.held is not None:
            self.held.close()

    @classmethod
    def create(cls, path: Path | str, recipe_toml: str) -> Self:
        """Begin a run; an existing run in the folder is refused, unless it never finished a step."""
        run = cls(path)
        with explained(run.path):
            taken = run.has_begun()
        if taken:
            raise FileExistsError(
                f"{run.path} already holds a run; go on with it: foresail resume {run.path}, or choose another "
                "run.name"
            )
        with explained(run.path):
            run.checkpoints_path.mkdir(parents=True, exist_ok=True)
            for name in FALSE_START:
                remove(run.path / name)
        run.clean()
        write_text(run.recipe_path, recipe_toml)
        return run

    @classmethod
    def open(cls, path: Path | str) -> Self:
        """An existing run, for reading or for going on."""
        run = cls(path)
        if not run.path.is_dir():
            raise FileNotFoundError(f"there is no folder {run.path}; give the folder of a run")
        if run.checkpoints_path.exists() and not run.checkpoints_path.is_dir():
            raise NotADirectoryError(f"{run.checkpoints_path} is no folder; restore it, or move it away")
        if not run.exists():
            raise FileNotFoundError(
                f"{run.path} is no run: it has neither recipe.toml nor metrics.jsonl; "
                "give the folder that holds them"
            )
        return run

    def exists(self) -> bool:
        return self.recipe_path.is_file() or self.metrics.path.is_file()

    def has_begun(self) -> bool:
        """Whether there is a checkpoint or a finished step."""
        return bool(self.checkpoint_steps()) or any(record["step"] > 0 for record in self.read_metrics())

    def append_metrics(self, step: int, metrics: Mapping[str, Any]) -> None:
        """One line, `{"step": 12, "critic/score/mean": 0.5, …}`. NaN and infinities are written as null."""
        for name, value in metrics.items():
            if not isinstance(value, int | float | str | None):
                raise TypeError(f"metric {name} is a {type(value).__name__}; pass a plain number")
        if metrics.get("step", step) != step:
            raise ValueError(f"the metrics of step {step} say step {metrics['step']}")
        self.check_there()
        self.metrics.append([{"step": step, **metrics}])

    def read_metrics(self) -> list[dict[str, Any]]:
        return self.metrics.read()

    def append_timeline(self, *events: Mapping[str, Any]) -> None:
        """Append events of any form with a `step`, which `rewind` needs."""
        for event in events:
            if not isinstance(event.get("step"), int):
                raise ValueError(f'timeline event {event} has no "step"; give the step it happened in')
        self.check_there()
        self.timeline.append(events)

    def read_timeline(self) -> list[dict[str, Any]]:
        return self.timeline.read()

    def append_expert_load(self, step: int, load: list[list[int]]) -> None:
        """Tokens of every expert, a list for each layer with experts."""
        self.check_there()
        self.expert_load.append([{"step": step, "load": load}])

    def read_expert_load(self) -> list[dict[str, Any]]:
        return self.expert_load.read()

    def write_rollouts(self, step: int, rows: Iterable[Mapping[str, Any]]) -> Path:
        """Write all samples of a step to one file, atomically."""
        path = self.rollout_path(step)
        try:
            self._write_rollouts(path, rows)
        except FileNotFoundError:
            if not isinstance(rows, Sequence):
                raise
            self._write_rollouts(path, rows)  # the folder was removed meanwhile
        return path

    def _write_rollouts(self, path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
        self.check_there()
        if self.has_rollouts and not self.rollouts_path.exists():
            self.warn(
                f"{self.rollouts_path} was removed; it was made again, without the samples of earlier steps"
            )
        with explained(self.path):
            # no parents: a moved run's folder must not be created again
            self.rollouts_path.mkdir(exist_ok=True)
        self.has_rollouts = True
        write_atomically(path, lambda temporary: write_compressed(temporary, rows))

    def read_rollouts(self, step: int) -> list[dict[str, Any]]:
        path = self.rollout_path(step)
        if not path.exists():
            there = ", ".join(map(str, self.rollout_steps())) or "none"
            raise FileNotFoundError(f"{self.path} has no rollouts of step {step}; steps there: {there}")
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]

    def rollout_path(self, step: int) -> Path:
        return self.rollouts_path / f"step_{step:06d}.jsonl.gz"

    def rollout_steps(self) -> list[int]:
        return numbered(self.rollouts_path, ".jsonl.gz")

    def checkpoint_path(self, step: int) -> Path:
        return self.checkpoints_path / f"step_{step}"

    def checkpoint_steps(self) -> list[int]:
        """Steps with a whole checkpoint, oldest first; the last is where to resume."""
        return numbered(self.checkpoints_path, "")

    def rewind(self, step: int) -> None:
        """Remove the records and rollouts after `step`, before continuing from its checkpoint.

        Checkpoints stay; a new one replaces an old one. After a kill a second rewind completes the first.
        """
        self.clean()
        self.metrics.rewind(step)
        self.timeline.rewind(step)
        self.expert_load.rewind(step)
        with explained(self.path):
            for later in self.rollout_steps():
                if later > step:
                    self.rollout_path(later).unlink()

    def clean(self) -> None:
        """Remove a killed writer's leftovers."""
        for folder in (self.path, self.rollouts_path, self.checkpoints_path):
            clean_leftovers(folder)


def is_kept(step: int, steps: int) -> bool:
    """Of 2,000 steps every fourth, and the last."""
    return step % -(-steps // MAX_LOADS) == 0 or step == steps


def numbered(folder: Path, suffix: str) -> list[int]:
    """The N of every step_N in a folder, ascending; other names are ignored."""
    names = (path.name for path in folder.glob(f"step_*{suffix}"))
    numbers = (name.removeprefix("step_").removesuffix(suffix) for name in names)
    return sorted(int(number) for number in numbers if number.isdecimal())


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def write_compressed(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    # without name and time, so that the same samples give the same bytes
    options: dict[str, Any] = {"filename": "", "mtime": 0, "compresslevel": FASTEST}
    with open(path, "wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", **options) as file:
        for row in rows:
            file.write(encode(row))
