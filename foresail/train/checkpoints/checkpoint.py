"""Checkpoints: a Hugging Face directory with the trainer's state beside it, written atomically.

checkpoints/step_12/   config.json, model.safetensors, tokenizer.json, …: loads anywhere
checkpoints/step_12/trainer/   optimizer.safetensors, progress.json, critic/, adapter/, next_step.jsonl.gz,
                               leftovers.jsonl.gz, the recipe, how long the log was: what going on exactly
                               needs; manifest.json: checksums
checkpoints/best               a link to the best step, with checkpoints.best
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from pathlib import Path

from pydantic import BaseModel, TypeAdapter, ValidationError

from foresail.algorithms.entropy import EntropyControl
from foresail.recipe.tables.parts import Checkpoints
from foresail.recipe.validation_errors import explain_errors
from foresail.runlog.atomic import ASIDE, discard, explained, replacing_directory
from foresail.runlog.directory import RunDirectory
from foresail.runlog.held_folder import FolderGone
from foresail.train.checkpoints.best import Best
from foresail.train.checkpoints.manifest import NAME as MANIFEST
from foresail.train.checkpoints.manifest import PROGRESS, damages, forget, write_manifest
from foresail.train.learner import OPTIMIZER, TRAINER
from foresail.train.state_files import state_paths

BEST = "best"
# of the trainer's folder: what stays beside weights without their state
SMALL = (Path(PROGRESS).name, Path(MANIFEST).name, "adapter")


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far a stage has come. Noise and data order are pure functions of these numbers and the seed."""

    step: int = 0
    updates: int = 0
    position: int = 0  # problems, conversations or tokens taken from the data so far
    share: float = 1.0  # of the last step's groups that taught something: how many to launch
    easy: list[str] = field(default_factory=list)  # ids of problems in the easy pool
    places: dict[str, int] = field(default_factory=dict)  # taken from each level's stratum, or of each corpus
    rows: dict[str, int] = field(default_factory=dict)  # of each corpus, taken of its window of documents
    tokens: dict[str, int] = field(default_factory=dict)  # of each corpus, that were learned from
    rates: dict[str, list[float]] = field(default_factory=dict)  # latest pass rates, where a window is set
    ahead: int = 0  # steps of the curriculum left out, for every answer was right before they came
    day: str = (
        ""  # of the run's start, 2026-11-18 say: chat templates may print it, so a resumed run keeps it
    )
    data: str = ""  # what the problems or conversations were: how many, and a checksum of them
    reference: str = ""  # a checksum of the model that a KL term pulls towards
    teacher: str = ""  # a checksum of the model that is distilled
    rewards: dict[str, str] = field(default_factory=dict)  # checksums of the files of reward functions
    stage: int = 0  # of fine-tuning in stages, from 0; position and places are then counted in the stage
    began: int = 0  # steps that were done when the stage began
    best: Best | None = None  # by checkpoints.best
    entropy: EntropyControl | None = None  # of a bonus that follows a target
    finished: bool = False


def save_checkpoint(
    run: RunDirectory, progress: Progress, save: Callable[[Path], None], settings: Checkpoints
) -> Path:
    """Write aside, rename, then tidy. `save` writes the files of all learners, on all ranks."""
    path = run.checkpoint_path(progress.step)
    run.check_there()
    with staying(run, path):
        if not run.checkpoints_path.is_dir():
            run.warn(
                f"{run.checkpoints_path} was removed; it is made again, without checkpoints of earlier steps"
            )
        with explained(run.checkpoints_path):
            run.checkpoints_path.mkdir(exist_ok=True)
        with replacing_directory(path) as new_folder:
            save(new_folder)
            write_progress(new_folder, progress)
            write_manifest(new_folder)
    tidy(run, progress, settings)
    return path


@contextmanager
def staying(run: RunDirectory, path: Path) -> Iterator[None]:
    """Raises FolderGone if the run's folder is moved while `path` is written, and removes what lies at the old
    place.
    """
    try:
        try:
            yield
        finally:
            run.check_there()
    except FolderGone:
        discard(path)
        for folder in (run.checkpoints_path, run.path):
            with suppress(OSError):  # something else is in it
                folder.rmdir()
        raise


def tidying(run: RunDirectory, progress: Progress, settings: Checkpoints) -> list[Callable[[], None]]:
    """What `tidy` has to do after a step was saved; empty unless the run was killed in between."""
    best, steps = None if progress.best is None else progress.best.step, run.checkpoint_steps()
    kept_steps = [step for step in steps if step in steps[-settings.keep :] or step == best]
    light = [run.checkpoint_path(step) for step in kept_steps[: -min(settings.keep, settings.resumable)]]
    return [
        *([partial(name_best, run, best)] if best_link(run) != best_folder(run, best) else []),
        *(partial(remove_checkpoint, run.checkpoint_path(step)) for step in steps if step not in kept_steps),
        *(partial(keep_weights_only, path) for path in light if state_parts(path)),
    ]


def tidy(run: RunDirectory, progress: Progress, settings: Checkpoints) -> None:
    """Link the best step; remove older steps, and the trainer's state of some, as the recipe says."""
    for task in tidying(run, progress, settings):
        task()


def best_link(run: RunDirectory) -> str | None:
    """The name of the folder that `checkpoints/best` links to."""
    link = run.checkpoints_path / BEST
    return os.readlink(link) if link.is_symlink() else None


def best_folder(run: RunDirectory, step: int | None) -> str | None:
    """The name of the folder that it should link to."""
    return f"step_{step}" if step is not None and run.checkpoint_path(step).is_dir() else None


def name_best(run: RunDirectory, step: int | None) -> None:
    """`checkpoints/best` is a link to the best step's folder, where there is one."""
    link, target = run.checkpoints_path / BEST, best_folder(run, step)
    with explained(run.checkpoints_path):
        if link.is_dir() and not link.is_symlink():  # the run was copied by something that follows links
            shutil.rmtree(link)
        if target is None:
            link.unlink(missing_ok=True)
        elif best_link(run) != target:
            new_link = link.with_name(f"{ASIDE}{BEST}")
            new_link.unlink(missing_ok=True)
            new_link.symlink_to(target)
            os.replace(new_link, link)


def is_resumable(checkpoint: Path) -> bool:
    return bool(state_paths(checkpoint / TRAINER, OPTIMIZER))


def keep_weights_only(checkpoint: Path) -> None:
    """Remove the trainer's state, which only a resume needs. After a kill half-way it can be done again."""
    with explained(checkpoint):
        parts = state_parts(checkpoint)
        forget(checkpoint, (file for part in parts for file in (part, *part.rglob("*"))))
        for part in parts:
            discard(part)


def state_parts(checkpoint: Path) -> list[Path]:
    """Files and folders. The optimiser's come first: without them the rest is never taken for complete."""
    trainer = checkpoint / TRAINER
    others = (path for path in sorted(trainer.glob("*")) if path.name not in SMALL)
    return [*dict.fromkeys([*state_paths(trainer, OPTIMIZER), *others])]


def remove_checkpoint(path: Path) -> None:
    """Renamed to a hidden folder first: a kill half-way must not leave half a checkpoint under its name."""
    hidden = path.with_name(f"{ASIDE}{path.name}")
    with explained(path.parent):
        os.replace(path, hidden)
    discard(hidden)


def latest_checkpoint(run: RunDirectory) -> Path | None:
    steps = run.checkpoint_steps()
    return run.checkpoint_path(steps[-1]) if steps else None


class DamagedCheckpoint(ValueError):
    """A file of the checkpoint is not what was written; the message says how to go on."""


def check_whole(run: RunDirectory, checkpoint: Path) -> None:
    """Read every file once, before any is trusted."""
    damage = list(damages(checkpoint))
    if not damage and is_resumable(checkpoint):
        return
    reason = damage[0] + (f" (and {len(damage) - 1} more)" if len(damage) > 1 else "") if damage else ""
    reason = reason or f"{checkpoint} holds weights only, without the trainer's state"
    older = [step for step in run.checkpoint_steps() if run.checkpoint_path(step) != checkpoint]
    for step in reversed(older):
        candidate = run.checkpoint_path(step)
        if is_resumable(candidate) and not any(damages(candidate)):
            raise DamagedCheckpoint(
                f"{reason}; step {step} is whole: foresail resume {run.path} --from-step {step}"
            )
    raise DamagedCheckpoint(
        f"{reason}; no other checkpoint there can be resumed: restore the file, or start a new run with model.path "
        "set to a checkpoint whose weights are whole"
    )


def write_progress(checkpoint: Path, progress: Progress) -> None:
    text = json.dumps(asdict(progress)) + "\n"
    (checkpoint / PROGRESS).write_text(text, encoding="utf-8")


def read_progress(checkpoint: Path) -> Progress:
    path = checkpoint / PROGRESS
    try:
        text = path.read_text(encoding="utf-8")
        if unknown := sorted(dict(json.loads(text)).keys() - {entry.name for entry in fields(Progress)}):
            raise ValueError(f"unknown {', '.join(unknown)}")
        progress = TypeAdapter(Progress).validate_json(text, strict=True)
    except (OSError, ValueError, TypeError, RecursionError) as error:
        words: object = error
        if isinstance(error, ValidationError):
            words = "; ".join(explain_errors(error, BaseModel, {}))
        raise ValueError(
            f"{path} cannot be read ({words}); remove {checkpoint} to resume from the checkpoint before it"
        ) from error
    if checkpoint.name.startswith("step_") and checkpoint.name != f"step_{progress.step}":
        raise DamagedCheckpoint(
            f"{path} is of step {progress.step}, and not of {checkpoint.name}; give that folder its name back, "
            f"step_{progress.step}, or remove it"
        )
    return progress
