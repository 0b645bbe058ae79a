"""Turns and tools of simulated episodes: after each turn but the last a tool answers after some time.

    [workload.tools]
    mean_turns = 4.0
    max_turns = 16
    tokens = 300          # of every answer
    mean_seconds = 2.0
    max_seconds = 30.0

Numbers of turns and seconds have maximum-entropy distributions for their mean and maximum: constant if the mean is
the maximum, uniform if it is half of it. Siblings' numbers of turns are correlated like their lengths; seconds are
independent.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from pydantic import Field

from foresail.recipe.tables.part import Part
from foresail.simulate.distributions import count_at, exponential_quantile, exponential_rate, geometric_shares


class SimulatedTurn(NamedTuple):
    """Generated tokens, then a tool's answer after some time; the last turn has no answer."""

    tokens: int
    tool_tokens: int = 0
    tool_seconds: float = 0.0


class Tools(Part):
    """Episodes of several turns. A workload's tokens are then those of one turn."""

    mean_turns: float = Field(ge=1, description="turns of an episode")
    max_turns: int = Field(gt=1, description="turns of the longest episode")
    tokens: int = Field(64, gt=0, description="of every answer")
    mean_seconds: float = Field(1.0, ge=0, description="until a tool answers")
    max_seconds: float = Field(10.0, ge=0, description="the slowest answer")
    recorded_seconds: tuple[float, ...] = Field(
        (), strict=False, description="measured times to draw from, in place of the mean and the maximum"
    )

    def max_episode_tokens(self, max_tokens: int) -> int:
        """Tokens after the prompt in the longest episode, with turns of `max_tokens`."""
        return self.max_turns * max_tokens + (self.max_turns - 1) * self.tokens

    def mistakes(self) -> Iterator[str]:
        if self.mean_turns > self.max_turns:
            yield (
                f"workload.tools.mean_turns {self.mean_turns:g} is above workload.tools.max_turns "
                f"{self.max_turns}; raise the latter"
            )
        if not self.recorded_seconds and self.mean_seconds > self.max_seconds:
            yield (
                f"workload.tools.mean_seconds {self.mean_seconds:g} is above workload.tools.max_seconds "
                f"{self.max_seconds:g}; raise the latter"
            )
        if min(self.recorded_seconds, default=0.0) < 0:
            yield "workload.tools.recorded_seconds has a time below 0; take it out"


class ToolDraws:
    """Computes the distributions once; the caller provides the random draws."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._shares = geometric_shares(tools.mean_turns, tools.max_turns)
        self._varies = 0 < tools.mean_seconds < tools.max_seconds
        self._rate = exponential_rate(tools.mean_seconds / tools.max_seconds) if self._varies else 0.0

    def count_turns(self, share: float) -> int:
        """Turns of the episode at this quantile."""
        return count_at(share, self._shares)

    def episode(self, lengths: list[int], numbers: np.random.Generator) -> tuple[SimulatedTurn, ...]:
        """Turns of these lengths, with a tool's answer after each but the last."""
        answered = [
            SimulatedTurn(tokens, self._tools.tokens, self._seconds(numbers)) for tokens in lengths[:-1]
        ]
        return (*answered, SimulatedTurn(lengths[-1]))

    def _seconds(self, numbers: np.random.Generator) -> float:
        tools = self._tools
        if tools.recorded_seconds:
            return tools.recorded_seconds[numbers.integers(len(tools.recorded_seconds))]
        if not self._varies:
            return tools.mean_seconds
        return tools.max_seconds * exponential_quantile(numbers.random(), self._rate)
