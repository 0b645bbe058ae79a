"""Entropy: the choice of high-entropy tokens, and the weight of an entropy bonus with a target."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from foresail.recipe.tables.policy_loss import Loss


def entropy_threshold(entropies: np.ndarray, share: float) -> float:
    """The entropy from which on a token is among the `share` that have most: of [0, 1, 2, 3], half begin at 1.5.

    Between two tokens it is interpolated, as a quantile is.
    """
    return float(np.quantile(entropies, 1 - share)) if len(entropies) else 0.0


@dataclass(frozen=True, kw_only=True)
class EntropyControl:
    """The state of a bonus with a target: its next weight, and the last update's mean entropy."""

    weight: float
    entropy: float


def bonus_weight(control: EntropyControl | None, settings: Loss) -> float:
    """For the next update. With a target it is 0 unless the entropy is known to be no higher."""
    if settings.entropy_target is None:
        return settings.entropy_weight
    return control.weight if control is not None and control.entropy <= settings.entropy_target else 0.0


def adapt(control: EntropyControl | None, entropy: float, settings: Loss) -> EntropyControl | None:
    """After an update whose tokens had that mean entropy; None without a target (Skywork-OR1).

    Target .2, step .005: entropy .1 takes a weight of .03 to .035, entropy .3 to .025.
    """
    if settings.entropy_target is None:
        return None
    before = settings.entropy_weight if control is None else control.weight
    step = settings.entropy_step if entropy <= settings.entropy_target else -settings.entropy_step
    return EntropyControl(weight=min(max(before + step, 0.0), settings.entropy_weight_max), entropy=entropy)
