"""Checkpoints of random weights for `vs_trl.py`, each made once however many parts and sides read it."""

from __future__ import annotations

import threading
from pathlib import Path

import torch
from load import arithmetic_tokenizer, random_model, save_checkpoint

from foresail.model.hf import load_model
from foresail.recipe.shape.model_shape import ModelShape
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.train.learner import save_weights


class Models:
    def __init__(self, home: Path) -> None:
        self.home, self.lock = home, threading.Lock()

    def language_model(self, shape: ModelShape, device: str, dtype: str) -> Path:
        folder = self.home / f"{shape.num_parameters}-{shape.vocab_size}-{dtype}"
        with self.lock:
            if not folder.exists():
                tokenizer = arithmetic_tokenizer(shape.vocab_size)
                save_checkpoint(folder, random_model(shape, device, dtype), tokenizer)
                torch.cuda.empty_cache()  # the sides need the room
        return folder

    def classifier(self, shape: ModelShape, device: str, dtype: str) -> Path:
        """The same weights, with a head of one score."""
        base = self.language_model(shape, device, dtype)
        folder = base.with_name(f"{base.name}-classifier")
        with self.lock:
            if not folder.exists():
                model = load_model(base, dtype=getattr(torch, dtype), device=device, scores=True)
                save_weights(model, Tokenizer.load(base), folder)
                del model
                torch.cuda.empty_cache()
        return folder
