"""Checkpoints: a Hugging Face directory with the trainer's state beside it, whole or not there at all.

checkpoints/step_12/   config.json, model.safetensors, tokenizer.json, …: loads anywhere
checkpoints/step_12/trainer/   optimizer.safetensors, progress.json, critic/, adapter/, next_step.jsonl.gz: what
                               going on exactly needs; manifest.json: checksums
checkpoints/best               a link to the best step, with checkpoints.best
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

from pydantic import BaseModel, TypeAdapter, ValidationError

from foresail.recipe.parts import Checkpoints
from foresail.recipe.validation_errors import explain_errors
from foresail.runlog.atomic import ASIDE, discard, explained, replacing_directory
from foresail.runlog.directory import RunDirectory
from foresail.train.best import Best
from foresail.train.learner import OPTIMIZER, TRAINER
from foresail.train.manifest import PROGRESS, damages, renew, write_manifest
from foresail.train.state_files import state_paths

BEST = "best"
SMALL = (
    PROGRESS,
    "manifest.json",
    "adapter",
)  # of the trainer's folder: kept beside weights without their state


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far a stage has come. Noise and data order are pure functions of these numbers and the seed."""

    step: int = 0
    updates: int = 0
    position: int = 0  # problems, conversations or tokens taken from the data so far
    share: float = 1.0  # of the last step's groups that taught something: how many to launch
    easy: list[str] = field(default_factory=list)  # ids of problems in the easy pool
    places: dict[str, int] = field(default_factory=dict)  # taken from each level's deck, or of each corpus
    rows: dict[str, int] = field(default_factory=dict)  # of each corpus, taken of its window of documents
    tokens: dict[str, int] = field(default_factory=dict)  # of each corpus, that were learned from
    rates: dict[str, list[float]] = field(default_factory=dict)  # latest pass rates, where a window is set
    ahead: int = 0  # steps of the curriculum left out, for every answer was right before they came
    day: str = (
        ""  # on which the run began, 2026-11-18 say: chat templates may name it, and prompts stay the same
    )
    data: str = ""  # what the problems or conversations were: how many, and a checksum of them
    reference: str = ""  # a checksum of the model that a KL term pulls towards
    teacher: str = ""  # a checksum of the model that is distilled
    rewards: dict[str, str] = field(default_factory=dict)  # checksums of the files of reward functions
    stage: int = 0  # of fine-tuning in stages, from 0; position and places are then counted in the stage
    began: int = 0  # steps that were done when the stage began
    best: Best | None = None  # by checkpoints.best
    finished: bool = False


def save_checkpoint(
    run: RunDirectory, progress: Progress, save: Callable[[Path], None], settings: Checkpoints
) -> Path:
    """Write aside, rename, then remove what is not to be kept: older steps, and the trainer's state of some.

    `save` writes the files of all learners, on all ranks.
    """
    path = run.checkpoint_path(progress.step)
    with explained(run.checkpoints_path):
        run.checkpoints_path.mkdir(parents=True, exist_ok=True)
    with replacing_directory(path) as aside:
        save(aside)
        write_progress(aside, progress)
        write_manifest(aside)
    best = None if progress.best is None else progress.best.step
    name_best(run, best)
    steps = run.checkpoint_steps()
    for step in steps[: -settings.keep]:
        if step != best:
            remove_checkpoint(run.checkpoint_path(step))
    for step in run.checkpoint_steps()[: -min(settings.keep, settings.resumable)]:
        keep_weights_only(run.checkpoint_path(step))
    return path


def name_best(run: RunDirectory, step: int | None) -> None:
    """`checkpoints/best` is a link to the best step's folder, where there is one."""
    link = run.checkpoints_path / BEST
    there = step is not None and run.checkpoint_path(step).is_dir()
    with explained(run.checkpoints_path):
        if not there:
            link.unlink(missing_ok=True)
        elif not link.is_symlink() or os.readlink(link) != f"step_{step}":
            aside = link.with_name(f"{ASIDE}{BEST}")
            aside.unlink(missing_ok=True)
            aside.symlink_to(f"step_{step}")
            os.replace(aside, link)


def is_resumable(checkpoint: Path) -> bool:
    return bool(state_paths(checkpoint / TRAINER, OPTIMIZER))


def keep_weights_only(checkpoint: Path) -> None:
    """Take out what only going on needs. The optimiser goes first: without it nobody takes the rest for whole."""
    trainer = checkpoint / TRAINER
    files = state_paths(trainer, OPTIMIZER)
    if not files:
        return
    with explained(checkpoint):
        for file in files:
            file.unlink()
        renew(checkpoint, [str(file.relative_to(checkpoint)) for file in files])
        for path in sorted(trainer.iterdir()):
            if path.name not in SMALL:
                names = [str(file.relative_to(checkpoint)) for file in [path, *path.rglob("*")]]
                discard(path)
                renew(checkpoint, names)


def remove_checkpoint(path: Path) -> None:
    """Hidden first: a kill half-way must not leave half a checkpoint under its name."""
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
    found = list(damages(checkpoint))
    if not found and is_resumable(checkpoint):
        return
    told = found[0] + (f" (and {len(found) - 1} more)" if len(found) > 1 else "") if found else ""
    told = told or f"{checkpoint} holds weights only, without the trainer's state"
    older = [step for step in run.checkpoint_steps() if run.checkpoint_path(step) != checkpoint]
    for step in reversed(older):
        there = run.checkpoint_path(step)
        if is_resumable(there) and not any(damages(there)):
            raise DamagedCheckpoint(
                f"{told}; step {step} is whole: foresail resume {run.path} --from-step {step}"
            )
    raise DamagedCheckpoint(
        f"{told}; no other checkpoint there can be resumed: restore the file, or start a new run with model.path "
        "set to a checkpoint whose weights are whole"
    )


def write_progress(checkpoint: Path, progress: Progress) -> None:
    text = json.dumps(asdict(progress)) + "\n"
    (checkpoint / TRAINER / PROGRESS).write_text(text, encoding="utf-8")


def read_progress(checkpoint: Path) -> Progress:
    path = checkpoint / TRAINER / PROGRESS
    try:
        text = path.read_text(encoding="utf-8")
        if unknown := sorted(dict(json.loads(text)).keys() - {entry.name for entry in fields(Progress)}):
            raise ValueError(f"unknown {', '.join(unknown)}")
        return TypeAdapter(Progress).validate_json(text, strict=True)
    except (OSError, ValueError, TypeError, RecursionError) as error:
        words: object = error
        if isinstance(error, ValidationError):
            words = "; ".join(explain_errors(error, BaseModel, {}, told=()))
        raise ValueError(
            f"{path} cannot be read ({words}); remove {checkpoint} to resume from the checkpoint before it"
        ) from error
