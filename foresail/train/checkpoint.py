"""Checkpoints: a Hugging Face directory with the trainer's state beside it, whole or not there at all.

checkpoints/step_12/   config.json, model.safetensors, tokenizer.json, …: loads anywhere
checkpoints/step_12/trainer/   optimizer.safetensors, progress.json, critic/, adapter/: what going on exactly needs
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Protocol

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from foresail.model.decoder import Decoder
from foresail.model.hf import load_model, save_model
from foresail.recipe.hf_config import SpecialIds
from foresail.runlog.atomic import ASIDE, discard, explained, replacing_directory
from foresail.runlog.directory import RunDirectory
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.train.optimizer import AdamW


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far a stage has come. Noise and data order are pure functions of these numbers and the seed."""

    step: int = 0
    updates: int = 0
    position: int = 0  # problems or conversations taken from the data so far
    share: float = 1.0  # of the last step's groups that taught something: how many to launch
    easy: list[str] = field(default_factory=list)  # ids of problems in the easy pool
    places: dict[str, int] = field(default_factory=dict)  # problems taken from each level's deck
    rates: dict[str, list[float]] = field(default_factory=dict)  # latest pass rates, where a window is set
    ahead: int = 0  # steps of the curriculum left out, for every answer was right before they came
    data: str = ""  # what the problems or conversations were: how many, and a checksum of them
    reference: str = ""  # a checksum of the model that a KL term pulls towards
    finished: bool = False


class Companion(Protocol):
    """What a stage trains beside its model; every checkpoint holds it as well."""

    def save(self, trainer: Path) -> None: ...


def save_checkpoint(
    run: RunDirectory,
    progress: Progress,
    model: Decoder,
    tokenizer: Tokenizer,
    optimizer: AdamW,
    *,
    companions: Sequence[Companion] = (),
    keep: int,
) -> Path:
    """Write aside, rename, then remove the oldest beyond `keep`."""
    path = run.checkpoint_path(progress.step)
    with explained(run.checkpoints_path):
        run.checkpoints_path.mkdir(parents=True, exist_ok=True)
    with replacing_directory(path) as aside:
        save_weights(model, tokenizer, aside)
        trainer = aside / "trainer"
        trainer.mkdir()
        tensors = {name: tensor.contiguous() for name, tensor in optimizer.state().items()}
        save_file(tensors, trainer / "optimizer.safetensors")
        for companion in companions:
            companion.save(trainer)
        (trainer / "progress.json").write_text(json.dumps(asdict(progress)) + "\n", encoding="utf-8")
    for step in run.checkpoint_steps()[:-keep]:
        remove_checkpoint(run.checkpoint_path(step))
    return path


def remove_checkpoint(path: Path) -> None:
    """Hidden first: a kill half-way must not leave half a checkpoint under its name."""
    hidden = path.with_name(f"{ASIDE}{path.name}")
    with explained(path.parent):
        os.replace(path, hidden)
    discard(hidden)


def save_weights(model: Decoder, tokenizer: Tokenizer, directory: Path) -> None:
    """A directory that transformers and vLLM load as it is."""
    special = SpecialIds(bos=tokenizer.bos_id, eos=tokenizer.eos_ids, pad=tokenizer.pad_id)
    save_model(model, directory, special=special)
    tokenizer.save(directory)


def latest_checkpoint(run: RunDirectory) -> Path | None:
    steps = run.checkpoint_steps()
    return run.checkpoint_path(steps[-1]) if steps else None


def read_progress(checkpoint: Path) -> Progress:
    path = checkpoint / "trainer" / "progress.json"
    try:
        return Progress(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise ValueError(
            f"{path} cannot be read ({error}); remove {checkpoint} to resume from the checkpoint before it"
        ) from error


def load_weights(checkpoint: Path, *, dtype: torch.dtype, device: torch.device) -> tuple[Decoder, Tokenizer]:
    return load_model(checkpoint, dtype=dtype, device=device), Tokenizer.load(checkpoint)


def read_state(checkpoint: Path, file: str) -> dict[str, Tensor]:
    path = checkpoint / "trainer" / file
    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise ValueError(
            f"{path} cannot be read ({error}); remove {checkpoint} to resume from the checkpoint before it"
        ) from error


def load_optimizer(checkpoint: Path, optimizer: AdamW, *, file: str = "optimizer.safetensors") -> None:
    path, tensors = checkpoint / "trainer" / file, read_state(checkpoint, file)
    try:
        optimizer.load_state(tensors)
    except ValueError as error:
        raise ValueError(
            f"{path} does not fit: {error}; set optimizer.states and [lora] in the run's recipe.toml as they were, "
            "and model.dtype to that of the machine the run came from (auto is bfloat16 on CUDA, else float32), or "
            f"remove {checkpoint}"
        ) from error
