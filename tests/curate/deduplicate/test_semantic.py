"""Semantic duplicates beside comparison of all pairs; cells; which of several stays."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_embedder import WordCounts

from foresail.curate.deduplicate.cells import find_leaders, split
from foresail.curate.deduplicate.semantic import SemanticDuplicates
from foresail.curate.document import Document, Drop
from foresail.curate.embed.settings import EmbeddingStep


@pytest.fixture(autouse=True)
def word_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EmbeddingStep, "open_embedder", lambda self: WordCounts())


def decided(documents: list[Document], folder: Path, **keys: Any) -> tuple[list[str], dict[str, Any]]:
    """Of each document "" or whom it repeats."""
    step = SemanticDuplicates(model="any", **keys)
    pieces = [documents[: len(documents) // 3], [], documents[len(documents) // 3 :]]
    features = [folder / f"{number}.features" for number in range(3)]
    decisions = [folder / f"{number}.decisions" for number in range(3)]
    for file, piece in zip(features, pieces, strict=True):
        step.collect(iter(piece), file)
    with TemporaryDirectory() as scratch:
        figures = step.decide(features, decisions, Path(scratch))
    words = []
    for file, piece in zip(decisions, pieces, strict=True):
        settle = step.open(file)
        for number, document in enumerate(piece):
            outcome = settle(number, document)
            assert isinstance(outcome, Drop) or outcome.metadata["occurrences"] >= 1  # type: ignore[union-attr]
            words.append(outcome.detail.removeprefix("repeats ") if isinstance(outcome, Drop) else "")
    return words, figures


def all_pairs(vectors: np.ndarray, order: list[int], threshold: float) -> dict[int, int]:
    staying: list[int] = []
    repeats = {}
    for number in order:
        similar = [(float(vectors[number] @ vectors[other]), -place) for place, other in enumerate(staying)]
        best = max(similar, default=(-1.0, 0))
        if best[0] >= threshold:
            repeats[number] = staying[-best[1]]
        else:
            staying.append(number)
    return repeats


@settings(max_examples=25, deadline=None)
@given(
    words=st.lists(st.lists(st.integers(0, 5), max_size=5), max_size=30),
    ranks=st.lists(st.integers(0, 3), min_size=30, max_size=30),
    by_rank=st.booleans(),
)
def test_it_drops_what_comparison_of_all_pairs_drops(
    words: list[list[int]], ranks: list[int], by_rank: bool
) -> None:
    documents = [
        Document(id=str(n), text=" ".join(map(str, own)), metadata={"rank": ranks[n]})
        for n, own in enumerate(words)
    ]
    with TemporaryDirectory() as folder:
        verdicts, figures = decided(documents, Path(folder), threshold=0.8, best="rank" if by_rank else "")
    order = sorted(range(len(words)), key=lambda n: (-ranks[n], n)) if by_rank else [*range(len(words))]
    vectors = WordCounts().embed([document.text for document in documents])
    expected = all_pairs(vectors, order, 0.8)
    assert {n: int(name) for n, name in enumerate(verdicts) if name}.keys() == expected.keys()
    for number, name in enumerate(verdicts):  # of equally similar ones, rounding may choose another
        if name:
            best = vectors[number] @ vectors[expected[number]]
            assert vectors[number] @ vectors[int(name)] == pytest.approx(best, abs=1e-5)
    assert figures["removed"] == len(expected)


def made_vectors(groups: int, each: int, dimensions: int = 16) -> np.ndarray:
    generator = np.random.default_rng(0)
    centres = generator.normal(size=(groups, dimensions)).repeat(each, axis=0)
    vectors = centres + 0.01 * generator.normal(size=centres.shape)
    vectors = vectors[generator.permutation(len(vectors))]
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def test_cells_find_nearly_all_that_comparison_of_all_pairs_finds() -> None:
    vectors = made_vectors(groups=300, each=6)
    numbers = np.arange(len(vectors))
    exact = np.flatnonzero(find_leaders(vectors, numbers, 0.98) != numbers)
    assert len(exact) == 300 * 5
    in_cells: list[int] = []
    cells = list(split(vectors, numbers, 400, np.random.default_rng(0)))
    for own in cells:
        leaders = find_leaders(vectors, own, 0.98)
        in_cells += own[leaders != np.arange(len(own))].tolist()
    assert len(cells) > 4 and max(map(len, cells)) <= 400
    assert {*in_cells} <= {*exact.tolist()} and len(in_cells) > 0.97 * len(exact)
    assert np.array_equal(np.sort(np.concatenate(cells)), numbers)


def test_documents_that_are_all_the_same_are_one_cell() -> None:
    vectors = np.tile(np.eye(1, 8, dtype=np.float32), (500, 1))
    (cell,) = split(vectors, np.arange(500), 100, np.random.default_rng(0))
    assert np.array_equal(find_leaders(vectors, cell, 0.9), np.zeros(500))


def test_the_best_of_those_alike_stays(tmp_path: Path) -> None:
    texts = [("one two three", 1), ("three one two", 5), ("two three one", None), ("other words here", 0)]
    documents = [Document(id=t, text=t, metadata={"score": number}) for t, number in texts]
    assert decided(documents, tmp_path, best="score")[0] == ["three one two", "", "three one two", ""]
    assert decided(documents, tmp_path)[0] == ["", "one two three", "one two three", ""]
    assert decided([], tmp_path)[0] == []


def test_languages_that_the_model_lacks_are_not_compared_and_empty_texts_neither(tmp_path: Path) -> None:
    documents = [
        Document(id=str(n), text=text, metadata={"language": language})
        for n, (text, language) in enumerate(
            [("a b", "th"), ("a b", "th"), ("", "en"), ("", "en"), ("a b", "en")]
        )
    ]
    words, figures = decided(documents, tmp_path)
    assert words == [""] * 5 and figures["not_compared_for_their_language"] == 2
