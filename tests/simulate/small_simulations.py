"""A small cluster to simulate, and the costs that tests of the simulator share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from foresail.simulate.costs import StepCost
from foresail.simulate.settings import Simulation
from foresail.simulate.step import StepResult, simulate

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "benchmarks/measured/h200_step_costs.json"
COST = StepCost(fixed=4e-3, per_entry=2e-5, per_cached_token=1e-8, verify=1e-3)


def small(**changes: Any) -> Simulation:
    """A cluster of four, where memory is short, and twenty groups of four."""
    tables: dict[str, Any] = {
        "cluster": {"instances": 4, "weight_gb": 126.5, "costs": str(TABLE)},
        "workload": {"groups": 20, "samples": 4, "mean_tokens": 600, "max_tokens": 2000, "prompt_tokens": 50},
        "rollout": {"chunk_tokens": 256},
    }
    for key, value in changes.items():
        if isinstance(value, dict):
            tables[key] = tables.get(key, {}) | value
        else:
            tables[key] = value
    return Simulation.model_validate(tables)


def run_one(**changes: Any) -> StepResult:
    return simulate(small(**changes))[0]
