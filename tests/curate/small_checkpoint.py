"""A tiny model with random weights beside its tokenizer, as a checkpoint: a language model, or one with scores."""

from __future__ import annotations

from pathlib import Path

import torch
from tiny_world import make_tokenizer, tiny_shape

from foresail.model.hf import build_model, save_model
from foresail.recipe.shape.hf_config import SpecialIds
from foresail.tokenizer.train import train_bpe


@torch.no_grad()
def write_checkpoint(folder: Path, *, scores: bool = False, digits_only: bool = False) -> Path:
    """With `digits_only` its tokenizer knows only the characters of sums."""
    tokenizer = make_tokenizer() if digits_only else train_bpe(["2 + 2 = 4"] * 4, vocab_size=270)
    shape = tiny_shape(tokenizer.vocab_size).model_copy(update={"max_context": 128})
    model = build_model(shape.with_score() if scores else shape, seed=3)
    generator = torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        if parameter.ndim == 2:
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.3)
    save_model(model, folder, special=SpecialIds(eos=tuple(tokenizer.eos_ids)))
    tokenizer.save(folder)
    return folder
