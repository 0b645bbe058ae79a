"""The group filter: only groups whose rewards differ teach something."""

import pytest

from foresail.algorithms.advantages import has_spread


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
