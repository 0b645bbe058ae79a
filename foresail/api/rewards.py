"""Rewards of a script: a name, a function in any of the shapes of docs/rewards.md, or several."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Reward = str | Callable[..., Any]  # a grader's name, or a function
Rewards = Reward | Mapping[str, Any] | Sequence[Reward | Mapping[str, Any]]


def name_rewards(reward: Rewards) -> Mapping[str, Any]:
    """The recipe's [reward] for one function or name, for a list of them as in TRL, or for the table itself."""
    if isinstance(reward, Mapping):
        return reward
    if isinstance(reward, list | tuple):
        terms = [dict(term) if isinstance(term, Mapping) else {"grader": term} for term in reward]
        return {"grader": "none", "terms": terms}
    return {"grader": reward}
