"""Which groups teach: where all samples got the same reward, every advantage is zero."""

from __future__ import annotations

from collections.abc import Sequence

ROUNDING = 1e-6


def has_spread(rewards: Sequence[float]) -> bool:
    """[1, 0, 1] -> True; [1, 1, 1] -> False; [.1 + .2, .3] -> False, for that difference is rounding."""
    return len(rewards) > 0 and max(rewards) - min(rewards) > ROUNDING
