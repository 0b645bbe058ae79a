"""Which tokens have most entropy, against sorting; the bonus that follows a target, against a loop of its own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.algorithms.entropy import EntropyControl, adapt, bonus_weight, entropy_threshold
from foresail.recipe.tables.policy_loss import Loss

ADAPTIVE = Loss(entropy_weight=0.01, entropy_target=0.2, entropy_step=0.005, entropy_weight_max=0.02)


@given(st.lists(st.floats(0, 12, width=32), min_size=1, max_size=60, unique=True), st.floats(0.01, 1))
def test_as_many_tokens_as_asked_for_lie_above_the_threshold(entropies: list[float], share: float) -> None:
    threshold = entropy_threshold(np.array(entropies), share)
    above = [entropy for entropy in entropies if entropy >= threshold]
    assert sorted(entropies)[-len(above) :] == sorted(above)
    assert abs(len(above) - share * len(entropies)) <= 1


def test_an_update_without_tokens_has_some_threshold() -> None:
    assert entropy_threshold(np.zeros(0), 0.2) == 0.0


def test_a_bonus_without_a_target_is_what_it_is() -> None:
    settings = Loss(entropy_weight=0.01)
    assert bonus_weight(None, settings) == 0.01 and adapt(None, 3.0, settings) is None


def test_a_bonus_with_a_target_counts_once_the_entropy_is_known_to_be_low() -> None:
    assert bonus_weight(None, ADAPTIVE) == 0.0
    assert bonus_weight(EntropyControl(weight=0.03, entropy=0.1), ADAPTIVE) == 0.03
    assert bonus_weight(EntropyControl(weight=0.03, entropy=0.3), ADAPTIVE) == 0.0


@given(st.lists(st.floats(0, 0.5), max_size=40))
def test_the_weight_follows_the_entropy_as_in_skyworks_loop(entropies: list[float]) -> None:
    control, weight, last = None, 0.01, float("inf")
    for entropy in entropies:
        assert bonus_weight(control, ADAPTIVE) == pytest.approx(weight if last <= 0.2 else 0.0)
        control = adapt(control, entropy, ADAPTIVE)
        weight = min(weight + 0.005, 0.02) if entropy <= 0.2 else max(weight - 0.005, 0.0)
        last = entropy
        assert control is not None and control.weight == pytest.approx(weight)
