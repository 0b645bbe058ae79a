"""Decides which rows `select_diverse` keeps, and says why.

Weights as `diverse.py` has them; the draw without replacement is that of Efraimidis and Spirakis: of u drawn from
the seed and the row's id, the rows with the greatest log(u) / weight stay, in this order, until the budget.

Legend: N rows, K clusters, C components.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from foresail.curate.deduplicate.blocks import Array, BlockWriter
from foresail.curate.deduplicate.collected import Collected, id_check, names_of
from foresail.curate.deduplicate.verdicts import DecidedBlocks
from foresail.curate.document import Document, Drop
from foresail.curate.select.clusters import Clusters, cluster_rows
from foresail.curate.select.membership import Memberships, fuzzy_labels
from foresail.curate.step import Outcome

if TYPE_CHECKING:
    from foresail.curate.select.selection_plan import SelectionPlan

LISTED = 20  # clusters in the figures


@dataclass(frozen=True, eq=False)
class Rows:
    """What was collected, over all pieces."""

    draws_N: Array
    sizes_N: Array
    similarities_N: Array
    foreign: int


def decide_draw(
    settings: SelectionPlan, features: Sequence[Path], decisions: Sequence[Path], scratch: Path
) -> dict[str, Any]:
    collected = Collected.open(features)
    rows = read_rows(collected)
    clusters = cluster_rows(settings, collected, rows.draws_N)
    labels = fuzzy_labels(clusters.points_NC, clusters.density, clusters.eps, settings.memberships)
    weights_N = weigh(settings, labels, clusters.density.counts_N, rows.similarities_N)
    is_drawn_N = draw_rows(settings, weights_N, rows)
    write_drawn(collected, decisions, clusters, labels, weights_N, is_drawn_N)
    return figures(settings, clusters, rows, is_drawn_N)


def read_rows(collected: Collected) -> Rows:
    def column(name: str, kind: type) -> Array:
        parts = [block[name] for _, block in collected.blocks()]
        return np.concatenate(parts).astype(kind) if parts else np.zeros(0, kind)

    return Rows(
        draws_N=column("draws", np.float64),
        sizes_N=column("sizes", np.int64),
        similarities_N=column("similarities", np.float64),
        foreign=int(column("foreign", np.int64).sum()),
    )


def weigh(settings: SelectionPlan, labels: Memberships, counts_N: Array, similarities_N: Array) -> Array:
    """1 on average."""
    sizes_K = np.maximum(labels.sizes(), 1e-12)
    rarity_N = np.sum(labels.weights_NM / sizes_K[labels.clusters_NM] ** settings.balance, axis=1)
    rarity_N += labels.alone_N / counts_N**settings.balance
    ranks_N = ranks_within(labels.clusters_NM[:, 0], similarities_N)
    weights_N = rarity_N / np.maximum(ranks_N, settings.least_rank) ** settings.similarity_power
    weights: Array = weights_N / (weights_N.sum() or 1) * len(weights_N)
    return weights


def ranks_within(groups_N: Array, values_N: Array) -> Array:
    """ranks_within([0, 0, 1], [0.3, 0.9, 0.5]) -> [0.25, 0.75, 0.5]; equal values share a rank, nan has 0.5.

    Ranks, since models differ in what they call similar: hidden states' cosines all lie near 1.
    """
    ranks_N = np.full(len(values_N), 0.5)
    known_N = ~np.isnan(values_N)
    order = np.lexsort((values_N, groups_N))
    order = order[known_N[order]]
    bounds = np.flatnonzero(np.diff(groups_N[order])) + 1
    for own in np.split(order, bounds):
        values = values_N[own]
        below, up_to = (np.searchsorted(values, values, side) for side in ("left", "right"))
        ranks_N[own] = (below + up_to) / (2 * max(len(own), 1))
    return ranks_N


def draw_rows(settings: SelectionPlan, weights_N: Array, rows: Rows) -> Array:
    order = np.argsort(-np.log(rows.draws_N) / weights_N, kind="stable")
    if settings.share is not None or settings.rows is not None:
        sizes_N = np.ones(len(order), np.int64)
        share = 0.0 if settings.share is None else settings.share
        budget = int(share * len(order) + 1e-9) if settings.rows is None else settings.rows
    else:
        sizes_N = rows.sizes_N
        budget = settings.characters if settings.characters is not None else settings.tokens or 0
    fits = np.cumsum(sizes_N[order]) <= budget
    is_drawn_N = np.zeros(len(order), bool)
    is_drawn_N[order[fits]] = True
    return is_drawn_N


def write_drawn(
    collected: Collected,
    decisions: Sequence[Path],
    clusters: Clusters,
    labels: Memberships,
    weights_N: Array,
    is_drawn_N: Array,
) -> None:
    """The cluster that is named is the row's own; of a noise row, the nearest."""
    membership_N = np.sum(
        np.where(labels.clusters_NM == labels.clusters_NM[:, :1], labels.weights_NM, 0), axis=1
    )
    blocks = collected.blocks()
    for sizes, path in zip(collected.block_sizes, decisions, strict=True):
        with BlockWriter(path) as file:
            for _ in sizes:
                start, block = next(blocks)
                rows = slice(start, start + len(block["draws"]))
                file.add(
                    checks=np.array([id_check(name) for name in names_of(block)], np.uint32),
                    drawn=is_drawn_N[rows],
                    clusters=labels.clusters_NM[rows, 0],
                    noise=clusters.density.labels_N[rows] < 0,
                    memberships=membership_N[rows],
                    similarities=block["similarities"],
                    weights=weights_N[rows],
                )


class Drawn:
    """Applies the decisions on a piece."""

    def __init__(self, path: Path) -> None:
        self.blocks = DecidedBlocks(path)

    def __call__(self, n: int, document: Document) -> Outcome:
        block, number = self.blocks.find(n, document)
        similarity = float(block["similarities"][number])
        why: dict[str, Any] = {
            "cluster": int(block["clusters"][number]),
            "cluster_membership": round(float(block["memberships"][number]), 4),
            "cluster_noise": bool(block["noise"][number]),
            "qa_similarity": None if np.isnan(similarity) else round(similarity, 4),
            "selection_weight": float(f"{float(block['weights'][number]):.4g}"),
        }
        if not block["drawn"][number]:
            return Drop("not_selected", ", ".join(f"{name} {value}" for name, value in why.items()))
        return replace(document, metadata=document.metadata | why)


def figures(settings: SelectionPlan, clusters: Clusters, rows: Rows, is_drawn_N: Array) -> dict[str, Any]:
    labels_N = clusters.density.labels_N
    sizes = np.bincount(labels_N[labels_N >= 0], minlength=1)
    noise_N = labels_N < 0
    return {
        "rows": len(is_drawn_N),
        "selected": int(is_drawn_N.sum()),
        "size": int(rows.sizes_N.sum()),
        "size_selected": int(rows.sizes_N[is_drawn_N].sum()),
        "clusters": int(labels_N.max(initial=-1)) + 1,
        "noise": int(noise_N.sum()),
        "noise_selected": int(np.sum(noise_N & is_drawn_N)),
        "eps": float(f"{clusters.eps:.4g}"),
        "eps_chosen": not settings.eps,
        "neighbours": settings.neighbours,
        "variance_kept": round(clusters.variance, 4),
        "cluster_sizes": {f"{q:g} %": int(np.percentile(sizes, q)) for q in (100, 90, 50, 10)},
        "largest_clusters": {
            str(number): {"rows": rows_in, "selected": drawn}
            for number, rows_in, drawn in listed(labels_N, is_drawn_N)
        },
        "qa_similarity": mean(rows.similarities_N),
        "qa_similarity_selected": mean(rows.similarities_N[is_drawn_N]),
        "in_a_language_that_the_model_lacks": rows.foreign,
    }


def listed(labels_N: Array, is_drawn_N: Array) -> Iterator[tuple[int, int, int]]:
    for number in range(min(LISTED, int(labels_N.max(initial=-1)) + 1)):
        own_N = labels_N == number
        yield number, int(own_N.sum()), int(np.sum(own_N & is_drawn_N))


def mean(values: Array) -> float | None:
    known = values[~np.isnan(values)]
    return round(float(known.mean()), 4) if len(known) else None
