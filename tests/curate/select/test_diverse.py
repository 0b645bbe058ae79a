"""Selection over clusters: the budget, the order of rows and pieces, rare clusters, and why a row stays."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_embedder import WordCounts

from foresail.curate.document import Document, Drop
from foresail.curate.embed.settings import EmbeddingStep
from foresail.curate.recipe import build_curation
from foresail.curate.rows.row import read_row
from foresail.curate.select.diverse import SelectDiverse
from foresail.curate.select.draw import ranks_within
from foresail.recipe.reading.load import RecipeError

SUBJECTS = {"sums": 120, "rivers": 40, "cooking": 20}


@pytest.fixture(autouse=True)
def word_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EmbeddingStep, "open_embedder", lambda self: WordCounts())


def row(id: str, question: str, answer: str) -> Document:
    columns = {"messages": [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]}
    document = read_row(columns, id, "made", "conversations")
    assert isinstance(document, Document)
    return document


def corpus(subjects: dict[str, int] = SUBJECTS) -> list[Document]:
    """Questions of a subject have most words in common; some of each have other answers."""
    rows = []
    for subject, count in subjects.items():
        for number in range(count):
            question = " ".join(f"{subject}-{word}" for word in range(8)) + f" {number % 9}"
            rows.append(row(f"{subject}:{number}", question, question if number % 4 else f"answer {number}"))
    return rows


def decided(
    documents: list[Document], folder: Path, cuts: tuple[int, ...] = (), **keys: Any
) -> tuple[dict[str, Document | Drop], dict[str, Any]]:
    step = SelectDiverse(model="any", **{"neighbours": 4, "components": 8, **keys})
    ends = [0, *cuts, len(documents)]
    pieces = [documents[begin:end] for begin, end in pairwise(ends)]
    features = [folder / f"{number}.features" for number in range(len(pieces))]
    decisions = [folder / f"{number}.decisions" for number in range(len(pieces))]
    for file, piece in zip(features, pieces, strict=True):
        step.collect(iter(piece), file)
    figures = step.decide(features, decisions, folder)
    outcomes = {}
    for file, piece in zip(decisions, pieces, strict=True):
        settle = step.open(file)
        for number, document in enumerate(piece):
            outcome = settle(number, document)
            assert isinstance(outcome, Document | Drop)
            outcomes[document.id] = outcome
    return outcomes, figures


def kept(outcomes: dict[str, Document | Drop]) -> set[str]:
    return {name for name, outcome in outcomes.items() if isinstance(outcome, Document)}


def test_a_kept_row_says_why_and_a_dropped_one_too(tmp_path: Path) -> None:
    outcomes, figures = decided(corpus(), tmp_path, share=0.25, eps=0.8)
    assert figures["clusters"] == 3 and figures["selected"] == 45 == len(kept(outcomes))
    assert not figures["eps_chosen"] and decided(corpus(), tmp_path, share=0.25)[1]["eps"] > 0
    for outcome in outcomes.values():
        if isinstance(outcome, Drop):
            assert outcome.reason == "not_selected" and "selection_weight" in outcome.detail
        else:
            assert {"cluster", "cluster_membership", "qa_similarity", "selection_weight"} <= {
                *outcome.metadata
            }


def test_small_clusters_and_unlike_answers_are_drawn_more_often(tmp_path: Path) -> None:
    outcomes, _ = decided(corpus(), tmp_path, share=0.25, eps=0.8)
    shares = {
        subject: sum(name.startswith(subject) for name in kept(outcomes)) / count
        for subject, count in SUBJECTS.items()
    }
    assert shares["cooking"] > shares["rivers"] > shares["sums"] > 0
    numbers = [int(name.partition(":")[2]) for name in kept(outcomes)]
    assert sum(number % 4 == 0 for number in numbers) > len(numbers) / 4
    plain, _ = decided(corpus(), tmp_path, share=0.25, balance=0.0, similarity_power=0.0)
    weights = {
        outcome.metadata["selection_weight"] for outcome in plain.values() if isinstance(outcome, Document)
    }
    assert weights == {1.0}


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10**6), budget=st.integers(0, 4000), cuts=st.sets(st.integers(0, 180), max_size=3))
def test_the_budget_is_kept_and_neither_order_nor_pieces_matter(
    seed: int, budget: int, cuts: set[int]
) -> None:
    rows = corpus()
    shuffled = random.Random(seed).sample(rows, len(rows))
    with TemporaryDirectory() as one, TemporaryDirectory() as other:
        whole, figures = decided(rows, Path(one), characters=budget)
        parts, _ = decided(shuffled, Path(other), cuts=tuple(sorted(cuts)), characters=budget)
    assert kept(whole) == kept(parts)
    size = sum(len(outcome.text) for outcome in whole.values() if isinstance(outcome, Document))
    assert size == figures["size_selected"] <= budget
    assert budget - size < 200 or len(kept(whole)) == len(rows)  # no row is longer


def test_any_number_of_rows_is_handled(tmp_path: Path) -> None:
    for count in (0, 1, 2, 5):
        outcomes, figures = decided(corpus({"a": count}), tmp_path, rows=3)
        assert len(kept(outcomes)) == figures["selected"] == min(3, count)
    empty = [row(f"x{number}", "", "") for number in range(4)]
    assert len(kept(decided(empty, tmp_path, share=1.0)[0])) == 4
    plain = [Document(id=str(number), text=f"text {number}") for number in range(9)]
    outcomes, figures = decided(plain, tmp_path, rows=4)
    assert len(kept(outcomes)) == 4 and figures["qa_similarity"] is None


def test_rows_that_dbscan_does_not_see_join_the_nearest_cluster(tmp_path: Path) -> None:
    outcomes, figures = decided(corpus(), tmp_path, share=1.0, clustered=90, eps=0.8)
    assert figures["clusters"] == 3 and figures["noise"] == 0
    clusters = {}
    for name, outcome in outcomes.items():
        assert isinstance(outcome, Document)
        clusters.setdefault(name.partition(":")[0], set()).add(outcome.metadata["cluster"])
    assert clusters == {"sums": {0}, "rivers": {1}, "cooking": {2}}


def test_ranks_within_groups() -> None:
    values = np.array([0.1, 0.9, 0.5, np.nan, 0.9, 0.3])
    assert ranks_within(np.array([0, 0, 0, 0, 0, 1]), values).tolist() == [0.125, 0.75, 0.375, 0.5, 0.75, 0.5]


def test_languages_that_the_model_lacks_are_counted(tmp_path: Path) -> None:
    rows = [
        Document(id=str(n), text="a b", metadata={"language": code}) for n, code in enumerate(["en", "th"])
    ]
    assert decided(rows, tmp_path, rows=1)[1]["in_a_language_that_the_model_lacks"] == 1


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({}, "write one budget of share, rows, characters, tokens"),
        ({"share": 0.1, "rows": 5}, "not share and rows"),
        ({"tokens": 5}, "write both, or neither"),
    ],
)
def test_budgets_are_checked(keys: dict[str, Any], words: str) -> None:
    table = {
        "out": "o",
        "source": [{"path": "x.jsonl"}],
        "step": [{"name": "select_diverse", "model": "m", **keys}],
    }
    with pytest.raises(RecipeError, match=words):
        build_curation(table)
