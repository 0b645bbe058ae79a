"""Metrics of a reward model on pairs: accuracy, loss, and calibration.

    pair_figures([0.3, 2.0, -0.1]) -> accuracy 2/3 with its interval, ECE, …

A lead is the chosen answer's score less the rejected one's. The model holds the answer with the higher score to be
better, with confidence sigmoid(|lead|), from 0.5 to 1; calibration compares that with how often it is right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from foresail.evaluation.interval import wilson_interval

BINS = 10  # of confidences, equally wide


@dataclass(frozen=True, kw_only=True)
class Bin:
    """Pairs whose confidences lie in one range."""

    low: float
    high: float
    count: int
    confidence: float
    accuracy: float


@dataclass(frozen=True, kw_only=True)
class PairFigures:
    """`ece` is the expected calibration error: how far confidence and accuracy lie apart, a mean over pairs."""

    count: int
    accuracy: float
    interval: tuple[float, float]
    loss: float
    ece: float
    bins: tuple[Bin, ...]


def pair_figures(leads: Sequence[float]) -> PairFigures:
    """Equal scores are wrong: such a model does not tell the answers apart."""
    if not leads:
        raise ValueError("there is no pair to measure on")
    leads_P = np.asarray(leads, dtype=np.float64)
    right_P, confidence_P = leads_P > 0, 1 / (1 + np.exp(-np.abs(leads_P)))
    edges = np.linspace(0.5, 1.0, BINS + 1)
    place_P = np.clip(np.searchsorted(edges, confidence_P, side="right") - 1, 0, BINS - 1)
    bins = []
    for number in range(BINS):
        mine = place_P == number
        if mine.any():
            low, high = edges[number], edges[number + 1]
            means = {"confidence": confidence_P[mine].mean(), "accuracy": right_P[mine].mean()}
            bins.append(Bin(low=float(low), high=float(high), count=int(mine.sum()), **floats(means)))
    gaps = [bin.count * abs(bin.confidence - bin.accuracy) for bin in bins]
    return PairFigures(
        count=len(leads),
        accuracy=float(right_P.mean()),
        interval=wilson_interval(int(right_P.sum()), len(leads)),
        loss=float(np.logaddexp(0, -leads_P).mean()),
        ece=sum(gaps) / len(leads),
        bins=tuple(bins),
    )


def floats(values: dict[str, np.floating]) -> dict[str, float]:
    return {name: float(value) for name, value in values.items()}
