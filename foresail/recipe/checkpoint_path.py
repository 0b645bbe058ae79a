"""The path of a checkpoint, from its own folder or the folder of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator


def checkpoint_of(path: str) -> str:
    """A run's best step where one is kept, else its newest; any other folder is itself."""
    steps = Path(path) / "checkpoints"
    if (Path(path) / "config.json").exists() or not steps.is_dir():
        return path
    if (best := steps / "best").is_dir():
        return str(steps / best.resolve().name)
    numbers = [int(name) for step in steps.glob("step_*") if (name := step.name[5:]).isdecimal()]
    return str(steps / f"step_{max(numbers)}") if numbers else path


def trained_checkpoint(run: Path) -> Path:
    """The same, for a run that must have a checkpoint."""
    if (checkpoint := Path(checkpoint_of(str(run)))) == run:
        raise FileNotFoundError(f"{run} has no checkpoint yet; let it finish a step")
    return checkpoint


CheckpointPath = Annotated[str, AfterValidator(checkpoint_of)]
