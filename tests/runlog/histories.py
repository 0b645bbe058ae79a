"""Made-up metrics: a run that goes well, and what each of its troubles would do to it."""

from __future__ import annotations

import math
import random
from typing import Any


def healthy(steps: int = 40, *, seed: int = 0) -> list[dict[str, Any]]:
    """Accuracy climbs from 0.3 to 0.8, lengths grow with it, entropy falls with the errors; all with noise."""
    numbers = random.Random(seed)

    def near(value: float, spread: float = 0.1) -> float:
        return value * math.exp(numbers.gauss(0, spread))

    records = []
    for step in range(1, steps + 1):
        accuracy = 0.3 + 0.5 * step / steps + numbers.gauss(0, 0.02)
        solved, unsolved = 0.5 * accuracy**2, 0.5 * (1 - accuracy) ** 2
        records.append(
            {
                "step": step,
                "rollout/accuracy": accuracy,
                "rollout/reward": accuracy,
                "critic/rewards/max": 1.0,
                "critic/rewards/min": 0.0,
                "groups/solved": solved,
                "groups/unsolved": unsolved,
                "groups/useful": 1 - solved - unsolved,
                "response_length/mean": near(200 * (1 + accuracy)),
                "response_length/clip_ratio": near(0.03),
                "actor/entropy": near(0.6 * (1 - accuracy)),
                "actor/grad_norm": near(0.4, 0.3),
                "actor/pg_clipfrac": near(0.01, 0.5),
                "rollout/logprob_kl": near(2e-4, 0.3),
                "verdict/timeout": 0.01,
                "router/load_max_over_mean": 1.6,
                "router/dead_experts": 0,
                "router/tokens_per_expert": 4000.0,
                "verdict/crashed": 0.0,
                "verdict/ungradable": 0.0,
            }
        )
    return records


def since(step: int, change: dict[str, Any]) -> list[dict[str, Any]]:
    """A healthy run in which, from a step on, some metrics are others; a function is given the record's step."""
    return [
        record
        | {
            name: value(record["step"]) if callable(value) else value
            for name, value in change.items()
            if record["step"] >= step
        }
        for record in healthy()
    ]
