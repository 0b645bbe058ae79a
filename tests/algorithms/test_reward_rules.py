"""The group filter and overlong shaping."""

import pytest

from foresail.algorithms.filtering import has_spread
from foresail.algorithms.shaping import overlong_penalty


@pytest.mark.parametrize(
    ("rewards", "expected"),
    [
        ([1.0, 0.0, 1.0], True),
        ([-1.0, 1.0], True),
        ([1.0, 1.0 - 1 / 4096], True),  # one token into the overlong buffer
        ([1.0, 1.0, 1.0], False),
        ([-1.0, -1.0], False),
        ([0.1 + 0.2, 0.3], False),
        ([1.0], False),
        ([], False),
    ],
)
def test_has_spread(rewards, expected):
    assert has_spread(rewards) is expected


@pytest.mark.parametrize(
    ("num_tokens", "expected"),
    # The buffer starts at 20480 - 4096 = 16384 tokens; 17408 is a quarter into it.
    [(0, 0.0), (16384, 0.0), (16385, -1 / 4096), (17408, -0.25), (20480, -1.0), (30000, -1.0)],
)
def test_overlong_penalty_at_dapo_s_setting(num_tokens, expected):
    assert overlong_penalty(num_tokens, limit=20480, buffer=4096, factor=1.0) == pytest.approx(expected)


def test_overlong_factor_and_off():
    assert overlong_penalty(90, limit=100, buffer=20, factor=0.5) == pytest.approx(-0.25)
    assert overlong_penalty(100, limit=100, buffer=0, factor=1.0) == 0
