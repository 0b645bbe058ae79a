"""What every training stage has around its loop: run directory, weights, progress, display, stop and resume.

with Session(recipe, resume=False) as session:
    for step in session.steps():
        …
        session.end_step(progress, metrics)
return session.outcome
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from foresail.model.adapters import Adapters
from foresail.model.device import choose_device, choose_dtype, choose_library, choose_threads
from foresail.recipe.dump import to_toml
from foresail.recipe.parts import Lora
from foresail.recipe.run_folder import run_folder
from foresail.recipe.stages import Recipe
from foresail.runlog.directory import RunDirectory
from foresail.runlog.display import Display
from foresail.runlog.lock import lock_folder
from foresail.runlog.lookout import Lookout, Raised
from foresail.runlog.scribe import Scribe
from foresail.runlog.trackers import open_trackers
from foresail.train.checkpoint import (
    Companion,
    Progress,
    latest_checkpoint,
    load_optimizer,
    load_weights,
    read_progress,
    save_checkpoint,
)
from foresail.train.interrupt import StopRequest
from foresail.train.optimizer import build_optimizer
from foresail.train.starting_point import load_model_and_tokenizer


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a stage ended: its newest checkpoint, and whether there is more to do."""

    run: Path
    checkpoint: Path
    finished: bool


class Session:
    """One stage under way. A fresh run refuses a folder in use; a resumed one rewinds its log first."""

    def __init__(self, recipe: Recipe, *, resume: bool) -> None:
        self.recipe = recipe
        self.device = choose_device(recipe.run.device)
        path = run_folder(recipe)
        self._lock = lock_folder(path)
        self.run = RunDirectory.open(path) if resume else RunDirectory.create(path, to_toml(recipe))
        self.run.clean()
        checkpoint = latest_checkpoint(self.run)
        self.progress = read_progress(checkpoint) if checkpoint else Progress()
        self.companions: list[Companion] = []
        if checkpoint and recipe.lora is None:
            dtype = choose_dtype(recipe.model.dtype, self.device)
            self.model, self.tokenizer = load_weights(checkpoint, dtype=dtype, device=self.device)
        else:
            self.model, self.tokenizer = load_model_and_tokenizer(
                recipe.model, seed=recipe.run.seed, device=self.device, max_length=recipe.max_length
            )
        if recipe.lora is not None:
            self._attach_adapters(recipe.lora, checkpoint)
        choose_threads(self.model.shape.num_parameters)
        choose_library(self.model.dtype)
        if recipe.recompute:
            self.model.recompute_blocks()
        self.optimizer = build_optimizer(self.model, recipe.optimizer, recipe.run.seed)
        if checkpoint:
            load_optimizer(checkpoint, self.optimizer)
        self.run.rewind(self.progress.step if checkpoint else -1)
        self.lookout = Lookout(self.run.read_metrics())
        self.saved = self.progress if checkpoint else None
        self.stop, self.scribe = StopRequest(), Scribe()
        self.display = Display(recipe.stage, recipe.steps, done=self.progress.step)
        self._exits = ExitStack()

    def _attach_adapters(self, settings: Lora, checkpoint: Path | None) -> None:
        """Beside the weights the run began with: those of a checkpoint have the pairs merged, and are rounded."""
        recipe = self.recipe
        adapters = Adapters(self.model, settings, base=recipe.model.path, seed=recipe.run.seed)
        if checkpoint:
            adapters.load(checkpoint / "trainer")
        self.companions.append(adapters)

    def __enter__(self) -> Self:
        self._exits.enter_context(self._lock)
        self._exits.enter_context(self.stop)
        self._exits.enter_context(self.display)
        self._exits.push(self._finish_writing)
        self.trackers = open_trackers(
            self.run.path,
            wandb_project=self.recipe.run.wandb,
            resumed_at=self.progress.step or None,
            note=self.display.note,
        )
        self._exits.callback(self.trackers.close)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exits.__exit__(kind, error, trace)

    def _finish_writing(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """What stopped the run first is what it says; that the last samples could not be written is a note then."""
        try:
            self.scribe.wait()
        except Exception as failure:
            if error is None:
                raise
            self.display.note(f"the last step's samples were not written: {failure}", style="yellow")

    def steps(self) -> Iterator[int]:
        """The steps still to do; ends early on a request to stop, or once `finish` was called."""
        while not self.progress.finished:
            if self.progress.step >= self.recipe.steps:  # fewer were asked for meanwhile
                self.finish()
                break
            if self.stop.requested:
                self.display.note(f"stopping after step {self.progress.step}, as asked")
                break
            yield self.progress.step + 1
        self.save()

    def finish(self) -> None:
        """Nothing is left to do, even if steps are."""
        self.progress = replace(self.progress, finished=True)

    def end_step(self, progress: Progress, metrics: Mapping[str, Any]) -> None:
        """Log the step, then save: a kill between the two repeats the step and its record."""
        raised = self.lookout.look({"step": progress.step, **metrics})
        self.log(progress.step, {**metrics, "alarms/standing": len(self.lookout.standing)})
        self.tell_of(raised)
        self.progress = replace(progress, finished=progress.step >= self.recipe.steps)
        if progress.step % self.recipe.checkpoints.every == 0:
            self.save()
        self.display.update(progress.step, metrics)

    def tell_of(self, alarms: list[Raised]) -> None:
        now = time.time()
        for raised in alarms:
            event = {"step": raised.step, "what": "alarm", "start": now, "end": now}
            self.run.append_timeline({**event, "name": raised.alarm.name, "text": str(raised.alarm)})
            self.display.note(f"alarm in step {raised.step}, {raised.alarm}", style="yellow")
        self.display.alarms = [
            f"alarm since step {raised.step}: {name}" for name, raised in self.lookout.standing.items()
        ]

    def log(self, step: int, metrics: Mapping[str, Any]) -> None:
        self.run.append_metrics(step, metrics)
        self.trackers.log(step, metrics)

    @property
    def outcome(self) -> Outcome:
        checkpoint = latest_checkpoint(self.run)
        assert checkpoint is not None, "a session saves before it ends"
        return Outcome(run=self.run.path, checkpoint=checkpoint, finished=self.progress.finished)

    def save(self) -> None:
        """A checkpoint of where the run stands, unless there is one."""
        if self.progress == self.saved:
            return
        self.scribe.wait()
        start = time.time()
        keep = self.recipe.checkpoints.keep
        save_checkpoint(
            self.run,
            self.progress,
            self.model,
            self.tokenizer,
            self.optimizer,
            companions=self.companions,
            keep=keep,
        )
        self.saved = self.progress
        event = {"step": self.progress.step, "what": "save", "start": start, "end": time.time()}
        self.run.append_timeline(event)
