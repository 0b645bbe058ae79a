"""Accuracy and calibration of a reward model on pairs."""

from __future__ import annotations

import numpy as np
import pytest

from foresail.evaluation.interval import wilson_interval
from foresail.evaluation.pair_figures import pair_figures


def test_accuracy_counts_leads_above_zero_with_wilsons_interval():
    figures = pair_figures([0.3, 2.0, -0.1, 0.0])
    assert figures.accuracy == 0.5 and figures.interval == wilson_interval(2, 4)
    assert figures.loss == pytest.approx(np.log1p(np.exp([-0.3, -2.0, 0.1, 0.0])).mean())


def test_a_model_that_is_always_sure_and_half_right_is_off_by_a_half():
    figures = pair_figures([50.0, -50.0] * 100)
    assert figures.ece == pytest.approx(0.5)
    (only,) = figures.bins
    assert (only.count, only.confidence, only.accuracy) == (200, pytest.approx(1.0), 0.5)


def test_drawn_by_its_own_probabilities_a_model_is_calibrated():
    rng = np.random.default_rng(0)
    sure = rng.normal(0, 2, size=20_000)
    better = rng.random(20_000) < 1 / (
        1 + np.exp(-sure)
    )  # whether the first answer is the one that was chosen
    leads = np.where(better, sure, -sure)
    assert pair_figures(leads.tolist()).ece < 0.02
    assert pair_figures((3 * leads).tolist()).ece > 0.08  # as sure as that it is not right
    assert sum(found.count for found in pair_figures(leads.tolist()).bins) == 20_000


def test_no_pairs_are_an_error():
    with pytest.raises(ValueError, match="no pair"):
        pair_figures([])
