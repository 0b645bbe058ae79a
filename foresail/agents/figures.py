"""What a step's episodes did, for the run log: turns, tool calls, errors, and the time that was waited."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from foresail.agents.environment import Observation, ToolUse


class EpisodeFigures:
    """add episodes as they end; `take` what came together since the last time."""

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self.num_episodes = self.num_turns = self.num_records = 0
        self.seconds = self.waited = 0.0
        self.uses: list[ToolUse] = []

    def add(
        self,
        num_turns: int,
        observations: Sequence[Observation],
        *,
        seconds: float,
        waited: float,
        num_records: int = 1,
    ) -> None:
        """An episode that took so long, and waited so long of it for the world."""
        self.num_episodes += 1
        self.num_records += num_records
        self.num_turns += num_turns
        self.seconds += seconds
        self.waited += waited
        self.uses += [use for observation in observations for use in observation.uses]

    def take(self) -> dict[str, float]:
        """{"agent/turns/mean": 3.1, "agent/tool_calls/mean": 2.1, "agent/tool_seconds/search": 0.02, …}"""
        if not self.num_episodes:
            return {}
        named = [use for use in self.uses if use.tool]
        calls = Counter(use.tool for use in named)
        seconds = dict.fromkeys(calls, 0.0)
        for use in named:
            seconds[use.tool] += use.seconds
        found = {
            "agent/turns/mean": self.num_turns / self.num_episodes,
            "agent/tool_calls/mean": len(self.uses) / self.num_episodes,
            "agent/waiting/share": self.waited / max(self.seconds, 1e-9),
            "agent/tool_errors/share": sum(bool(use.error) for use in self.uses) / max(1, len(self.uses)),
        }
        if self.num_records > self.num_episodes:
            found["agent/records/mean"] = self.num_records / self.num_episodes
        found |= {f"agent/tool_seconds/{tool}": seconds[tool] / count for tool, count in calls.items()}
        self._clear()
        return found
