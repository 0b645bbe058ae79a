"""Quantiles of a number in metadata, by language."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from foresail.curate.document import Document, Drop
from foresail.curate.recipe import build_curation
from foresail.curate.select.quantiles import Quantiles
from foresail.recipe.reading.load import RecipeError


def decided(documents: list[Document], folder: Path, **settings: Any) -> tuple[list[str], dict[str, Any]]:
    """A word for each document: kept, low or high."""
    step = Quantiles(key="perplexity", **settings)
    middle = len(documents) // 3
    pieces = [documents[:middle], [], documents[middle:]]
    features = [folder / f"{number}.features" for number in range(3)]
    decisions = [folder / f"{number}.decisions" for number in range(3)]
    for file, piece in zip(features, pieces, strict=True):
        step.collect(iter(piece), file)
    figures = step.decide(features, decisions, folder)
    words = []
    for file, piece in zip(decisions, pieces, strict=True):
        settle = step.open(file)
        outcomes = [settle(number, document) for number, document in enumerate(piece)]
        words += [each.reason.partition("_")[0] if isinstance(each, Drop) else "kept" for each in outcomes]
    return words, figures


def corpus(numbers: list[Any], language: str = "id") -> list[Document]:
    return [
        Document(id=str(n), metadata={"perplexity": value, "language": language})
        for n, value in enumerate(numbers)
    ]


def test_shares_of_each_language_are_dropped(tmp_path: Path) -> None:
    numbers = [float(number) for number in range(100)]
    random.Random(0).shuffle(numbers)
    documents = corpus(numbers) + corpus([1000 + number for number in numbers], "th")
    words, figures = decided(documents, tmp_path, least=0.1, most=0.75)
    for document, word in zip(documents, words, strict=True):
        rank = document.metadata["perplexity"] % 1000
        assert word == ("low" if rank < 10 else "high" if rank >= 75 else "kept")
    assert (figures["low"], figures["high"]) == (20, 50)
    assert figures["bounds"]["th"] == [1000.0, 1010.0, 1074.0, 1099.0]


def test_without_bounds_or_numbers_all_stay(tmp_path: Path) -> None:
    words, figures = decided(corpus([1.0, None, "x", float("nan"), 5.0]), tmp_path, least=0.5)
    assert words == ["low", "kept", "kept", "kept", "kept"] and figures["without_the_number"] == 3
    assert decided([], tmp_path)[0] == []
    assert decided(corpus([3.0] * 9), tmp_path, least=0.3, most=0.6)[0] == ["kept"] * 9


def test_bounds_are_checked() -> None:
    entry = {"name": "quantiles", "key": "perplexity", "least": 0.5, "most": 0.5}
    with pytest.raises(RecipeError, match="leave nothing"):
        build_curation({"out": "x", "source": [{"path": "in"}], "step": [entry]})
