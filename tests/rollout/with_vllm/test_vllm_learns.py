"""A small run whose samples vLLM draws learns as one of the native engine does.

The task: end on an even digit, which the starting model does about every second time. Judged by the mean reward of
the first and of the last third of the steps. Runs of the native engine with other seeds say how far two honest runs
lie apart; vLLM's must lie within four of their standard deviations of their mean, or 0.08 where those are small.
A run that never gets its new weights, as if rollouts were of a stale policy, must fall outside.
"""

from __future__ import annotations

from pathlib import Path
from statistics import fmean, stdev

from even_digits import STEPS, learn

WIDEST, NARROWEST = 4.0, 0.08


def thirds(rows: list[dict[str, float]]) -> tuple[float, float]:
    """Mean reward of the first and of the last steps."""
    rewards = [row["rollout/reward"] for row in rows]
    return fmean(rewards[: STEPS // 3]), fmean(rewards[-STEPS // 3 :])


def test_a_run_on_vllm_learns_like_one_on_the_native_engine(start: Path, tmp_path: Path) -> None:
    curves = [thirds(learn(start, tmp_path, seed=seed)) for seed in range(1, 6)]
    bands = []
    for values in zip(*curves, strict=True):
        reach = max(WIDEST * stdev(values), NARROWEST)
        bands.append((fmean(values) - reach, fmean(values) + reach))

    def inside(rows: list[dict[str, float]]) -> list[bool]:
        return [low <= value <= high for (low, high), value in zip(bands, thirds(rows), strict=True)]

    stale = learn(start, tmp_path, seed=0, lr=1e-9)
    assert inside(stale) == [True, False] or inside(stale) == [False, False], (bands, thirds(stale))
    ours = learn(start, tmp_path, seed=0, backend="vllm")
    print(bands, curves, thirds(ours), thirds(stale))
    assert inside(ours) == [True, True], (bands, thirds(ours))
    assert max(row["rollout/logprob_abs_diff_max"] for row in ours) < 1e-4
    assert all(row["timing_s/weight_sync"] > 0 for row in ours)
