"""Columns of a row by their name, also inside others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def reach(columns: Any, key: str, missing: Any = None) -> Any:
    """reach({"reward_model": {"ground_truth": "4"}}, "reward_model.ground_truth") -> "4"."""
    if isinstance(columns, Mapping) and key in columns:
        return columns[key]
    for part in key.split("."):
        if not isinstance(columns, Mapping) or part not in columns:
            return missing
        columns = columns[part]
    return columns
