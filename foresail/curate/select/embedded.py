"""What `select_diverse` collects of a row: its question's embedding, how similar the answer is, size and draw.

Legend: N rows of a block, D dimensions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from foresail.curate.deduplicate.blocks import Array
from foresail.curate.deduplicate.collected import collect_blocks
from foresail.curate.document import Document
from foresail.curate.embed.texts import part_of

if TYPE_CHECKING:
    from foresail.curate.select.selection_plan import SelectionPlan
    from foresail.model.embedding.embedder import Embedder


def collect_embedded(settings: SelectionPlan, documents: Iterable[Document], features: Path) -> None:
    embedder, size_of = settings.open_embedder(), open_size(settings)
    collect_blocks(documents, features, lambda batch: columns(settings, embedder, size_of, batch))


def columns(
    settings: SelectionPlan, embedder: Embedder, size_of: Callable[[str], int], batch: Sequence[Document]
) -> dict[str, Array]:
    vectors_ND = embedder.embed([part_of(document, settings.of) for document in batch])
    return {
        "vectors": vectors_ND,
        "similarities": similarities(settings, embedder, batch, vectors_ND),
        "sizes": np.array([size_of(document.text) for document in batch], np.int64),
        "draws": np.array([draw(settings.seed, document.id) for document in batch], np.float64),
        "foreign": np.array([settings.is_foreign(document, embedder) for document in batch], np.uint8),
    }


def similarities(
    settings: SelectionPlan, embedder: Embedder, batch: Sequence[Document], vectors_ND: Array
) -> Array:
    """Cosine of question and answer; nan where one of them is missing."""
    cosines = np.full(len(batch), np.nan, np.float32)
    answers = [part_of(document, "answer") for document in batch]
    numbers = [number for number, answer in enumerate(answers) if answer.strip()]
    if numbers:
        answers_MD = embedder.embed([answers[number] for number in numbers])
        asked_MD = vectors_ND[numbers]
        if settings.of != "prompt":
            asked_MD = embedder.embed([part_of(batch[number], "prompt") for number in numbers])
        is_asked = np.any(asked_MD != 0, axis=1)
        cosines[numbers] = np.where(is_asked, np.sum(asked_MD * answers_MD, axis=1), np.nan)
    return cosines


def draw(seed: int, name: str) -> float:
    """Above 0, below 1: by the seed and the row's id, so that no order matters."""
    digest = hashlib.blake2b(f"{seed}:{name}".encode("utf-8", "replace"), digest_size=6).digest()
    return (int.from_bytes(digest, "big") + 0.5) / 2**48


def open_size(settings: SelectionPlan) -> Callable[[str], int]:
    if not settings.tokenizer:
        return len
    from foresail.model.embedding.embedder import printable
    from foresail.tokenizer.documents import DocumentEncoder
    from foresail.tokenizer.tokenizer import Tokenizer

    encoder: Any = DocumentEncoder(Tokenizer.load(settings.tokenizer))
    return lambda text: len(encoder.encode([printable(text)])[0])
