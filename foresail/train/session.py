"""A training session: run directory, learners, progress, display, stop and resume, the same for every stage.

with Session(recipe, resume=False) as session:    # session.policy: the model that the recipe names
    for step in session.steps():
        metrics = train_step(session.policy, …)
        session.end_step(progress, metrics)
return session.outcome
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from foresail.model.device import choose_device
from foresail.model.linear import is_batch_invariant
from foresail.recipe.reading.dump import to_toml
from foresail.recipe.reading.seal import seal
from foresail.recipe.stages.stage import Stage
from foresail.recipe.tables.parts import HELD_OUT_MEAN
from foresail.runlog.alarm_monitor import AlarmMonitor, Raised
from foresail.runlog.background_writer import BackgroundWriter
from foresail.runlog.directory import RunDirectory, is_kept
from foresail.runlog.failure import noting_failure
from foresail.runlog.held_folder import FolderGone
from foresail.runlog.lock import lock_folder
from foresail.runlog.notebook import open_display
from foresail.runlog.trackers import open_trackers
from foresail.train.auxiliary.expert_load import load_metrics
from foresail.train.callbacks import StepReport, current_callbacks
from foresail.train.checkpoints.best import judge, measure
from foresail.train.checkpoints.checkpoint import (
    Progress,
    check_whole,
    latest_checkpoint,
    read_progress,
    save_checkpoint,
    tidy,
)
from foresail.train.checkpoints.log_state import lost_history, write_log_state
from foresail.train.checkpoints.recorded_recipe import (
    check_file,
    check_recipe,
    is_taken_up,
    is_unsealed,
    write_copy,
)
from foresail.train.checkpoints.shared_folder import marked
from foresail.train.interrupt import StopRequest
from foresail.train.trainer import FollowerStart, Recipe, Trainer
from foresail.world import ONE_PROCESS, World


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a stage ended: its newest checkpoint, and whether there is more to do."""

    run: Path
    checkpoint: Path
    finished: bool


class Session(Trainer[Recipe]):
    """One stage under way, on rank 0. A fresh run refuses a folder in use; a resumed one rewinds its log first."""

    def __init__(
        self, recipe: Recipe, *, resume: bool, world: World = ONE_PROCESS, changed_reward: bool = False
    ) -> None:
        """`changed_reward`: the recipe may have another reward than the checkpoint's."""
        path = recipe.run.folder
        with ExitStack() as exits:
            exits.enter_context(lock_folder(path))
            self.run = RunDirectory.open(path) if resume else RunDirectory.create(path, seal(to_toml(recipe)))
            exits.enter_context(noting_failure(self.run.path))
            self.run.clean()
            start = latest_checkpoint(self.run)  # None: the run is fresh
            if resume and start is None:
                check_file(self.run, None)
            progress = Progress(day=today())
            if start:
                progress = begin_again(self.run, start, recipe, changed_reward=changed_reward)
            super().__init__(
                recipe,
                world,
                choose_device(recipe.run.device),
                start=start,
                progress=progress,
                display=open_display(recipe.stage, recipe.steps, done=progress.step),
            )
            self.saved = progress if start else None
            self.saved_at = time.monotonic()
            self.stop, self.writer = StopRequest(), BackgroundWriter()
            self.display.is_stopping = lambda: self.stop.requested
            self.also_save: list[Callable[[Path], None]] = []  # each writes its files into a checkpoint
            exits.enter_context(self.display)
            self.run.hold(self.warn)
            exits.callback(self.run.close)
            for line in describe_damage(self.run, start) if resume else ():
                self.warn(line)
            self.display.begin("loading the model")
            self.load()
            self._exits = exits.pop_all()

    def warn(self, text: str) -> None:
        self.display.note(f"warning: {text}", style="yellow")

    def load(self) -> None:
        """The models, on all ranks, and the log as it was at the checkpoint."""
        if self.world.size > 1:
            self.lead()
        self.open_models()
        self.run.rewind(self.progress.step if self.start else -1)
        self.alarms = AlarmMonitor(self.run.read_metrics())

    def lead(self) -> None:
        """Send the followers the recipe and checkpoint, once they have seen that they share the run's folder."""
        with marked(self.run.path) as mark:
            self.world.broadcast(
                FollowerStart(
                    recipe=self.recipe.for_followers(),
                    start=self.start,
                    progress=self.progress,
                    mark=mark,
                    deterministic=self.recipe.run.deterministic,
                    batch_invariant=is_batch_invariant(),
                )
            )
            self.world.all_gather(None)

    def __enter__(self) -> Self:
        self._exits.enter_context(self.stop)
        self._exits.push(self._finish_writing)
        self.run.check_there()  # trackers would make the folder again
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
        """The run's first error is raised; a later failure to write the last samples is only a note."""
        try:
            self.writer.wait()
        except Exception as failure:
            if error is None:
                raise
            if isinstance(failure, FolderGone):  # which ended the run, or is about to
                return
            self.display.note(f"the last step's samples were not written: {failure}", style="yellow")

    def steps(self) -> Iterator[int]:
        """The steps still to do; ends early on a request to stop, or once `finish` was called."""
        while not self.progress.finished:
            if self.progress.step >= self.recipe.steps:  # resumed with fewer steps
                self.finish()
                break
            if self.stop.requested:
                self.display.note(f"stopping after step {self.progress.step}, as asked")
                break
            yield self.progress.step + 1
        self.save()
        best = self.recipe.checkpoints.best
        if best not in (None, HELD_OUT_MEAN) and self.progress.best is None and self.progress.step:
            self.display.note(
                f'checkpoints.best = "{best}": no step logged it; see the names in {self.run.metrics.path}',
                style="yellow",
            )

    def finish(self) -> None:
        """End the run before its last step."""
        self.progress = replace(self.progress, finished=True)

    def end_step(self, progress: Progress, metrics: Mapping[str, Any]) -> None:
        """Log the step, then save: a kill between the two repeats the step and its record."""
        metrics = {**metrics, **self.log_expert_load(progress.step)}
        raised = self.alarms.check({"step": progress.step, **metrics})
        self.log(progress.step, {**metrics, "alarms/standing": len(self.alarms.standing)})
        self.tell_of(raised)
        progress = self.judge_step(progress, metrics)
        better = progress.best is not None and progress.best.step == progress.step
        self.progress = replace(progress, finished=progress.finished or progress.step >= self.recipe.steps)
        if better or self.is_save_due(progress.step):
            self.save()
        self.display.update(progress.step, metrics)
        self.call_back(progress.step, metrics)

    def ask_to_stop(self) -> None:
        self.stop.requested = True

    def call_back(self, step: int, metrics: Mapping[str, Any]) -> None:
        """Tell a script's functions of the step; they may ask for the end."""
        current_callbacks()(
            StepReport(
                step=step,
                steps=self.recipe.steps,
                metrics=metrics,
                run=self.run.path,
                stop=self.ask_to_stop,
            )
        )

    def is_save_due(self, step: int) -> bool:
        every, minutes = self.recipe.checkpoints.every, self.recipe.checkpoints.minutes
        if every is not None and step % every == 0:
            return True
        return minutes is not None and time.monotonic() - self.saved_at >= 60 * minutes

    def log_expert_load(self, step: int) -> dict[str, float]:
        """How evenly the step's updates used experts; whole layers and experts go to a file of their own."""
        load_LE = None if self.policy.expert_load is None else self.policy.expert_load.take()
        if load_LE is None:
            return {}
        if is_kept(step, self.recipe.steps):
            self.run.append_expert_load(step, load_LE.int().tolist())
        return load_metrics(load_LE)

    def judge_step(self, progress: Progress, metrics: Mapping[str, Any]) -> Progress:
        """Whether the step is the best so far, and whether that has lasted long enough to stop."""
        settings = self.recipe.checkpoints
        value = measure(settings.best, metrics)
        if value is None:
            return progress
        best = judge(progress.best, value, progress.step, settings.best_is)
        enough = settings.patience is not None and best.waiting >= settings.patience
        if enough:
            self.display.note(
                f"stopping early: {settings.best} was best in step {best.step} ({best.value:.4g}), and in none of "
                f"{best.waiting} measurements since"
            )
        return replace(progress, best=best, finished=enough)

    def tell_of(self, alarms: list[Raised]) -> None:
        now = time.time()
        for raised in alarms:
            event = {"step": raised.step, "what": "alarm", "start": now, "end": now}
            self.run.append_timeline({**event, "name": raised.alarm.name, "text": str(raised.alarm)})
            self.display.note(f"alarm in step {raised.step}, {raised.alarm}", style="yellow")
        self.display.alarms = [
            f"alarm since step {raised.step}: {name}" for name, raised in self.alarms.standing.items()
        ]

    def log_start(self, metrics: Mapping[str, Any]) -> None:
        """Log what was measured before the first step as step 0, and call a script's functions with it."""
        self.log(0, metrics)
        self.call_back(0, metrics)

    def log(self, step: int, metrics: Mapping[str, Any]) -> None:
        # raises, before the first step, where the name fits several metrics
        measure(self.recipe.checkpoints.best, metrics)
        self.run.append_metrics(step, metrics)
        self.trackers.log(step, metrics)

    @property
    def outcome(self) -> Outcome:
        checkpoint = latest_checkpoint(self.run)
        assert checkpoint is not None, "a session saves before it ends"
        return Outcome(run=self.run.path, checkpoint=checkpoint, finished=self.progress.finished)

    def save(self) -> None:
        """A checkpoint of where the run stands, unless there is one."""
        self.run.check_there()
        if self.progress == self.saved:
            tidy(self.run, self.progress, self.recipe.checkpoints)
            return
        self.display.begin("saving")
        self.writer.wait()
        start = time.time()
        save_checkpoint(self.run, self.progress, self.write_files, self.recipe.checkpoints)
        self.saved, self.saved_at = self.progress, time.monotonic()
        event = {"step": self.progress.step, "what": "save", "start": start, "end": time.time()}
        self.run.append_timeline(event)

    def write_files(self, checkpoint: Path) -> None:
        self.on_all_ranks(save_learners, checkpoint)
        for write in self.also_save:
            write(checkpoint)
        write_copy(checkpoint, self.recipe)
        write_log_state(checkpoint, self.run, self.progress.step)


def begin_again(run: RunDirectory, start: Path, recipe: Stage, *, changed_reward: bool = False) -> Progress:
    """The checkpoint's progress, once its files are known to be whole and the recipe to be its own."""
    check_whole(run, start)
    check_file(run, start, changed_reward=changed_reward)
    check_recipe(recipe, run, start, changed_reward=changed_reward)
    progress = read_progress(start)
    if not (progress.finished and is_taken_up(recipe, start, progress.step)):
        return progress
    waiting = None if progress.best is None else replace(progress.best, waiting=0)
    return replace(progress, finished=False, best=waiting)


def describe_damage(run: RunDirectory, start: Path | None) -> Iterator[str]:
    """Warnings about missing or changed files that do not prevent a resume."""
    if start is None:
        done = max((record["step"] for record in run.read_metrics()), default=0)
        if done:
            yield f"{run.path} has no checkpoint: its {done} logged steps are done again from the start"
        return
    if is_unsealed(start):
        yield (
            f"{start} was written by an earlier version: whether {run.recipe_path} and the checkpoint's progress "
            "are as they were cannot be told"
        )
    yield from lost_history(start, run, read_progress(start).step)


def today() -> str:
    return date.today().isoformat()


def save_learners(trainer: Trainer[Any], checkpoint: Path) -> None:
    """On every rank; it ends when all have written their files."""
    for learner in trainer.learners.values():
        learner.save(checkpoint)
    trainer.world.all_gather(None)
