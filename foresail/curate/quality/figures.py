"""Held-out figures of a head: rank correlation, accuracy, calibration; beside what a constant answer reaches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from foresail.curate.quality.labels import Head
from foresail.curate.quality.linear import Prediction

BINS = 10


def head_figures(head: Head, predictions: Sequence[Prediction], targets_N: np.ndarray) -> dict[str, Any]:
    labelled = np.flatnonzero(~np.isnan(targets_N))
    chosen, targets_N = [predictions[int(number)] for number in labelled], targets_N[labelled]
    if len(chosen) < 2:
        return {"rows": len(chosen)}
    if head.kind == "classes":
        return class_figures(head, chosen, targets_N)
    span = 1.0 if head.kind == "levels" else head.high - head.low
    return number_figures(head, np.array([float(each.value) for each in chosen]), head.low + targets_N * span)


def number_figures(head: Head, predicted_N: np.ndarray, labels_N: np.ndarray) -> dict[str, Any]:
    figures: dict[str, Any] = {
        "rows": len(labels_N),
        "rank_correlation": round(rank_correlation(predicted_N, labels_N), 4),
        "mean_error": round(float(np.mean(np.abs(predicted_N - labels_N))), 4),
        "mean_error_of_the_median": round(float(np.mean(np.abs(np.median(labels_N) - labels_N))), 4),
    }
    if head.kind == "levels":
        counts = np.unique(labels_N, return_counts=True)[1]
        figures["accuracy"] = round(float(np.mean(np.round(predicted_N) == labels_N)), 4)
        figures["accuracy_of_the_commonest"] = round(float(counts.max() / len(labels_N)), 4)
    figures["calibration"], figures["calibration_error"] = calibration(predicted_N, labels_N)
    return figures


def class_figures(head: Head, predictions: Sequence[Prediction], targets_N: np.ndarray) -> dict[str, Any]:
    predicted_N = np.array([head.names.index(str(each.value)) for each in predictions])
    right_N = predicted_N == targets_N
    table, error = calibration(np.array([each.probability for each in predictions]), right_N.astype(float))
    scores = {}
    for number, name in enumerate(head.names):
        both = np.sum((predicted_N == number) & (targets_N == number))
        either = np.sum(predicted_N == number) + np.sum(targets_N == number)
        if np.any(targets_N == number):
            scores[name] = round(float(2 * both / either), 4)
    return {
        "rows": len(targets_N),
        "accuracy": round(float(right_N.mean()), 4),
        "accuracy_of_the_commonest": round(
            float(np.unique(targets_N, return_counts=True)[1].max() / len(targets_N)), 4
        ),
        "f1": scores,
        "calibration": table,
        "calibration_error": error,
    }


def calibration(predicted_N: np.ndarray, actual_N: np.ndarray) -> tuple[list[list[float]], float]:
    """Rows of [mean prediction, mean label, texts], by tenths of the predictions; and their mean distance."""
    rows, error = [], 0.0
    for part in np.array_split(np.argsort(predicted_N, kind="stable"), min(BINS, len(predicted_N))):
        predicted, actual = float(predicted_N[part].mean()), float(actual_N[part].mean())
        rows.append([round(predicted, 4), round(actual, 4), len(part)])
        error += abs(predicted - actual) * len(part) / len(predicted_N)
    return rows, round(error, 4)


def rank_correlation(first_N: np.ndarray, second_N: np.ndarray) -> float:
    """Spearman's; equal values share their mean rank. rank_correlation([1, 2, 3], [10, 30, 20]) -> 0.5"""
    ranks = [mean_ranks(np.asarray(values)) for values in (first_N, second_N)]
    deviations = [values - values.mean() for values in ranks]
    scale = np.sqrt(np.prod([np.sum(values**2) for values in deviations]))
    return float(np.sum(deviations[0] * deviations[1]) / scale) if scale else 0.0


def mean_ranks(values_N: np.ndarray) -> np.ndarray:
    _, inverse, counts = np.unique(values_N, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return (ends - (counts - 1) / 2)[inverse]


def describe_figures(figures: dict[str, dict[str, Any]]) -> list[str]:
    """One line for each head."""
    lines = []
    for name, head in figures.items():
        words = [
            f"{key.replace('_', ' ')} {value}"
            for key, value in head.items()
            if key not in ("calibration", "f1")
        ]
        lines.append(f"{name}: held-out " + ", ".join(words))
        if "f1" in head:
            lines.append("  F1: " + ", ".join(f"{label} {score}" for label, score in head["f1"].items()))
        if "calibration" in head:
            pairs = ", ".join(f"{predicted:.2f} {actual:.2f}" for predicted, actual, _ in head["calibration"])
            lines.append(f"  predicted and actual, by tenths: {pairs}")
    return lines
