"""Trains a linear classifier: AdaGrad over sparse features, all heads in one pass; some rows are held out.

    model, figures = train_classifier(rows, folder, Training(epochs=5))

A row is held out by a checksum of its text, so that a text that occurs twice is never on both sides.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from foresail.curate.quality.feature_store import FeatureStore, store_features
from foresail.curate.quality.figures import head_figures
from foresail.curate.quality.labels import Head, HeadFinder, Label, LabelledText
from foresail.curate.quality.linear import LinearClassifier
from foresail.curate.quality.ngrams import NgramFeatures
from foresail.recipe.tables.part import Part
from foresail.rollout.drafts.compiled import compiled

LEVELS, SCORE, CLASSES = 0, 1, 2
KINDS = {"levels": LEVELS, "score": SCORE, "classes": CLASSES}
FEWEST = 20  # rows to learn from


class Training(Part):
    epochs: int = Field(5, ge=1, le=1000)
    rate: float = Field(0.5, gt=0, description="of AdaGrad at first; it falls to 0 in a line")
    held_out: float = Field(0.1, gt=0, lt=1, description="share of the rows that only measure")
    bits: int = Field(18, ge=10, le=24, description="2**bits features")
    max_chars: int = Field(8000, ge=100, description="read of a text, from four places of a longer one")
    seed: int = Field(0, ge=0, description="of the order and the rows held out")


def train_classifier(
    rows: Iterable[LabelledText], scratch: Path, settings: Training
) -> tuple[LinearClassifier, dict[str, dict[str, Any]]]:
    """The model, and the held-out figures of each head."""
    labels: list[dict[str, Label]] = []
    held_out: list[bool] = []
    finder = HeadFinder()

    def texts() -> Iterator[str]:
        for row in rows:
            finder.add(row.labels)
            labels.append(dict(row.labels))
            held_out.append(unit_interval(row.text, settings.seed) < settings.held_out)
            yield row.text

    features = NgramFeatures(bits=settings.bits, max_chars=settings.max_chars)
    store = store_features(texts(), features, scratch)
    heads = finder.heads()
    targets_NH = np.array([[head.target(row.get(head.name)) for head in heads] for row in labels])
    outside_N = np.array(held_out)
    if (count := int(np.sum(~outside_N))) < FEWEST:
        raise ValueError(f"{count} rows to learn from are too few; bring {FEWEST} at least, better thousands")
    model = fit(store, heads, targets_NH, np.flatnonzero(~outside_N), settings)
    return model, measure(model, store, targets_NH, np.flatnonzero(outside_N))


def unit_interval(text: str, seed: int) -> float:
    """A number from 0 to 1 that the text and the seed decide."""
    digest = hashlib.blake2b(
        text.encode("utf-8", "surrogatepass"), digest_size=8, salt=str(seed).encode()[:16]
    )
    return int.from_bytes(digest.digest(), "big") / 2**64


def fit(
    store: FeatureStore, heads: tuple[Head, ...], targets_NH: np.ndarray, rows: np.ndarray, settings: Training
) -> LinearClassifier:
    weights_FC = np.zeros((1 << settings.bits, sum(head.columns for head in heads)), np.float32)
    biases_B = np.zeros(sum(head.biases for head in heads), np.float64)
    squares_FC, squares_B = np.full_like(weights_FC, 1e-2), np.full_like(biases_B, 1e-2)
    kinds = np.array([KINDS[head.kind] for head in heads])
    columns = np.cumsum([0, *(head.columns for head in heads)])
    biases = np.cumsum([0, *(head.biases for head in heads)])
    generator = np.random.default_rng(settings.seed)
    steps = settings.epochs * len(rows)
    for epoch in range(settings.epochs):
        order = generator.permutation(rows)
        run_epoch(
            store.indices,
            store.values,
            store.ends,
            order,
            targets_NH,
            kinds,
            columns,
            biases,
            weights_FC,
            biases_B,
            squares_FC,
            squares_B,
            settings.rate,
            epoch * len(rows),
            steps,
        )
    return LinearClassifier(
        heads=heads,
        bits=settings.bits,
        max_chars=settings.max_chars,
        weights_FC=weights_FC.astype(np.float16).astype(np.float32),
        biases_B=biases_B.astype(np.float32),
    )


@compiled
def run_epoch(
    indices: np.ndarray,
    values: np.ndarray,
    ends: np.ndarray,
    order: np.ndarray,
    targets_NH: np.ndarray,
    kinds: np.ndarray,
    columns: np.ndarray,
    biases: np.ndarray,
    weights_FC: np.ndarray,
    biases_B: np.ndarray,
    squares_FC: np.ndarray,
    squares_B: np.ndarray,
    rate: float,
    first_step: int,
    steps: int,
) -> None:
    raw_C = np.zeros(weights_FC.shape[1], np.float64)
    slope_C, slope_B = np.zeros(len(raw_C), np.float64), np.zeros(len(biases_B), np.float64)
    for number in range(len(order)):
        row = order[number]
        start = ends[row - 1] if row else 0
        raw_C[:] = 0.0
        for place in range(start, ends[row]):
            for column in range(len(raw_C)):
                raw_C[column] += values[place] * weights_FC[indices[place], column]
        slope_C[:] = 0.0
        slope_B[:] = 0.0
        for head in range(len(kinds)):
            target = targets_NH[row, head]
            if not np.isnan(target):
                own_C = slice(columns[head], columns[head + 1])
                own_B = slice(biases[head], biases[head + 1])
                add_slopes(kinds[head], target, raw_C[own_C], biases_B[own_B], slope_C[own_C], slope_B[own_B])
        step_size = rate * (1.0 - (first_step + number) / steps)
        for place in range(start, ends[row]):
            for column in range(len(raw_C)):
                slope = slope_C[column] * values[place]
                if slope != 0.0:
                    feature = indices[place]
                    squares_FC[feature, column] += slope * slope
                    weights_FC[feature, column] -= step_size * slope / np.sqrt(squares_FC[feature, column])
        for bias in range(len(biases_B)):
            squares_B[bias] += slope_B[bias] * slope_B[bias]
            biases_B[bias] -= step_size * slope_B[bias] / np.sqrt(squares_B[bias])


@compiled
def add_slopes(
    kind: int,
    target: float,
    raw_C: np.ndarray,
    biases_B: np.ndarray,
    slope_C: np.ndarray,
    slope_B: np.ndarray,
) -> None:
    """What the cross-entropy gains by each raw number and bias; the target of a score is a share."""
    if kind == LEVELS:
        for level in range(len(biases_B)):
            above = 1.0 if target > level else 0.0
            slope = 1.0 / (1.0 + np.exp(-(raw_C[0] + biases_B[level]))) - above
            slope_C[0] += slope
            slope_B[level] += slope
    elif kind == SCORE:
        slope_C[0] = slope_B[0] = 1.0 / (1.0 + np.exp(-(raw_C[0] + biases_B[0]))) - target
    else:
        top = np.max(raw_C + biases_B)
        total = np.sum(np.exp(raw_C + biases_B - top))
        for column in range(len(raw_C)):
            probability = np.exp(raw_C[column] + biases_B[column] - top) / total
            slope_C[column] = slope_B[column] = probability - (1.0 if target == column else 0.0)


def measure(
    model: LinearClassifier, store: FeatureStore, targets_NH: np.ndarray, rows: np.ndarray
) -> dict[str, dict[str, Any]]:
    predictions = [model.predict_features(store.of(int(row))) for row in rows]
    return {
        head.name: head_figures(head, [row[head.name] for row in predictions], targets_NH[rows, number])
        for number, head in enumerate(model.heads)
    }
