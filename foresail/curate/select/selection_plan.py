"""Settings of the selection over clusters: what is embedded, the budget, clusters, weights."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from foresail.curate.embed.settings import EmbeddingStep
from foresail.curate.embed.texts import PART, PartName

BUDGETS = ("share", "rows", "characters", "tokens")


class SelectionPlan(EmbeddingStep):
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
