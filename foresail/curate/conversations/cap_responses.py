"""The corpus step `cap_responses`: a query with many responses keeps some that are good, and unlike each other.

    [[step]]
    name = "cap_responses"
    limit = 8
    best = "quality"             # key of metadata, or column, with a number

A query is all that stands before the last answer: system prompt, earlier turns, tools. Responses that say the same
are one (`same_response`). Of the others one is chosen at a time, that with the greatest

    quality_weight * quality + (1 - quality_weight) * (1 - similarity to the most similar of those chosen)

until there are `limit`; the others are dropped (`over_limit`). Quality is the rank of the number among all rows,
from 0 to 1: a rating of 1 to 5 and a score of 0 to 1 weigh the same. Similarity is Jaccard's of shingles (MinHash).
Where two are equal the better number goes first, then the smaller id: the order of rows does not matter. Whether
a response is right is for other steps.

Metadata: responses, all that the query had; response_rank, 1 for the one that was chosen first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from foresail.curate.conversations.query import answer_text, query_of
from foresail.curate.conversations.response_fates import Capped, decide_responses
from foresail.curate.deduplicate.blocks import Array
from foresail.curate.deduplicate.collected import collect_blocks, key_of
from foresail.curate.deduplicate.minhash import Minhash
from foresail.curate.deduplicate.semantic import number_of
from foresail.curate.document import Document
from foresail.curate.rows.holds import Holds
from foresail.recipe.tables.part import Part


class CapResponses(Part):
    """Keeps so many responses of each query, by quality and difference."""

    takes: ClassVar[Holds] = ("conversations",)

    limit: int = Field(8, ge=1, description="responses of a query that stay")
    best: str = Field(
        "",
        description="key of metadata, or column, with a number: the quality; rows without it are the worst. "
        "Default: all are equal",
    )
    quality_weight: float = Field(
        0.5, ge=0, le=1, description="0: by difference alone; 1: by quality alone. It matters with best only"
    )
    ngram: int = Field(3, ge=1, le=100, description="words of a shingle")
    ngram_characters: int = Field(
        5,
        ge=1,
        le=100,
        description="characters of a shingle in scripts without spaces between words: Thai, Han",
    )
    permutations: int = Field(128, ge=1, le=4096, description="numbers of a MinHash signature")
    seed: int = Field(1, ge=0, lt=2**32, description="of the permutations")
    memory_gib: float = Field(2.0, gt=0, description="memory for sorting; what is more goes to the disk")

    def collect(self, documents: Iterable[Document], features: Path) -> None:
        signer = Minhash(
            permutations=self.permutations,
            ngram=self.ngram,
            ngram_characters=self.ngram_characters,
            seed=self.seed,
        )

        def columns(batch: Sequence[Document]) -> dict[str, Array]:
            rows = [document.row or {} for document in batch]
            queries = [query_of(row) for row in rows]
            signatures_nP, _ = signer.signatures([answer_text(row) for row in rows])
            return {
                "keys": np.array([key_of(query.asked.encode()) for query in queries], np.uint64),
                "answers": np.array([key_of(query.answered.encode()) for query in queries], np.uint64),
                "quality": np.array([number_of(document, self.best) for document in batch], np.float64),
                "signatures": signatures_nP,
            }

        collect_blocks(documents, features, columns)

    def decide(self, features: Sequence[Path], decisions: Sequence[Path], scratch: Path) -> dict[str, Any]:
        return decide_responses(
            features,
            decisions,
            scratch,
            limit=self.limit,
            quality_weight=self.quality_weight,
            memory=int(self.memory_gib * 2**30),
        )

    def open(self, decisions: Path) -> Capped:
        return Capped(decisions, self.limit)
