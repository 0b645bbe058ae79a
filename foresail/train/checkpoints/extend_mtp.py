"""More MTP layers for a checkpoint: copies of its first one, or fresh ones where it has none.

    extend(Path("base"), Path("base-3"), layers=3)      # foresail mtp extend base --layers 3 --out base-3
    add(Path("dense"), Path("dense-1"), layers=1, seed=0)

Neither changes what the model says. New layers are then trained: copies by SFT or pretraining with
mtp.train = "added", which freezes model and first layer; fresh ones with "mtp", or along with the model.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch

from foresail.model.decoder import Decoder
from foresail.model.hf import empty_model, load_model, locate_tensors, open_weights
from foresail.model.weights import init_weights
from foresail.recipe.shape.model_shape import MAX_MTP, ModelShape
from foresail.runlog.atomic import replacing_directory
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.train.checkpoints.export import find_checkpoint
from foresail.train.learner import save_weights

SAVED = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}


def extend(source: Path, target: Path, *, layers: int) -> ModelShape:
    """The checkpoint with so many MTP layers: those it has, then copies of its first one."""

    def copy_first(model: Decoder, had: int) -> None:
        if had == 0:
            raise ValueError(f"{source} has no MTP layer to copy; see foresail mtp add")
        for layer in model.mtp[had:]:
            layer.load_state_dict(model.mtp[0].state_dict())

    return grow(source, target, layers, copy_first)


def add(source: Path, target: Path, *, layers: int, seed: int) -> ModelShape:
    """The checkpoint with so many fresh MTP layers."""

    def fill(model: Decoder, had: int) -> None:
        if had:
            raise ValueError(f"{source} has {had} MTP layers already; see foresail mtp extend")
        init_weights(model, seed, only="mtp.")

    return grow(source, target, layers, fill)


@torch.no_grad()
def grow(source: Path, target: Path, layers: int, fill: Callable[[Decoder, int], None]) -> ModelShape:
    if target.exists():
        raise FileExistsError(f"{target} is already there; remove it, or choose another folder")
    checkpoint = find_checkpoint(source)
    old = load_model(checkpoint, dtype=dtype_in(checkpoint), device="cpu")
    if not old.shape.mtp < layers <= MAX_MTP:
        raise ValueError(
            f"{source} has {old.shape.mtp} MTP layers; --layers takes more than that and at most {MAX_MTP}"
        )
    model = empty_model(old.shape.model_copy(update={"mtp": layers}), dtype=old.dtype, device="cpu")
    model.load_state_dict(old.state_dict(), strict=False, assign=True)
    model.unused = old.unused
    fill(model, old.shape.mtp)
    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing_directory(target) as aside:
        save_weights(model, Tokenizer.load(checkpoint), aside)
    return model.shape


def dtype_in(checkpoint: Path) -> torch.dtype:
    """The dtype of its embedding in the file."""
    name = "model.embed_tokens.weight"
    with open_weights(locate_tensors(checkpoint)[name]) as weights:
        return SAVED[weights.get_slice(name).get_dtype()]
