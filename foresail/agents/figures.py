"""Metrics of a step's episodes: turns, tool calls, errors and waiting times.

Only the groups up to the step's end are counted: which later ones had also ended depends on the machine. So with
deterministic tools all metrics but the times repeat in every run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from foresail.agents.environment import Observation, ToolUse
from foresail.rollout.plan import SampleSpec


@dataclass(frozen=True, kw_only=True)
class EpisodeFigure:
    """The numbers of one episode."""

    num_turns: int
    num_records: int
    seconds: float
    waited: float  # of them, for the environment
    uses: tuple[ToolUse, ...]


class EpisodeFigures:
    """`add` each episode as it ends, `close` the step, `take` its metrics."""

    def __init__(self) -> None:
        self.ended: dict[tuple[int, int], EpisodeFigure] = {}  # by group and sample, of the current step
        self.counted: list[EpisodeFigure] = []

    def add(
        self,
        spec: SampleSpec,
        num_turns: int,
        observations: Sequence[Observation],
        *,
        seconds: float,
        waited: float,
        num_records: int = 1,
    ) -> None:
        """Add an episode of `seconds`, `waited` of them for the environment."""
        self.ended[spec.group, spec.sample] = EpisodeFigure(
            num_turns=num_turns,
            num_records=num_records,
            seconds=seconds,
            waited=waited,
            uses=tuple(use for observation in observations for use in observation.uses),
        )

    def close(self, groups: Collection[int]) -> None:
        """Count the episodes of these groups, with which the step ended."""
        counted = set(groups)
        self.counted += [self.ended[place] for place in sorted(self.ended) if place[0] in counted]
        self.ended.clear()

    def take(self) -> dict[str, float]:
        """{"agent/turns/mean": 3.1, "agent/tool_calls/mean": 2.1, "agent/tool_seconds/search": 0.02, …}"""
        episodes, self.counted = self.counted, []
        if not episodes:
            return {}
        uses = [use for episode in episodes for use in episode.uses]
        known_uses = [use for use in uses if use.tool]
        calls = Counter(use.tool for use in known_uses)
        seconds = dict.fromkeys(calls, 0.0)
        for use in known_uses:
            seconds[use.tool] += use.seconds
        lasted, waited = (sum(getattr(each, name) for each in episodes) for name in ("seconds", "waited"))
        figures = {
            "agent/turns/mean": sum(episode.num_turns for episode in episodes) / len(episodes),
            "agent/tool_calls/mean": len(uses) / len(episodes),
            "agent/waiting/share": waited / max(lasted, 1e-9),
            "agent/tool_errors/share": sum(bool(use.error) for use in uses) / max(1, len(uses)),
        }
        num_records = sum(episode.num_records for episode in episodes)
        if num_records > len(episodes):
            figures["agent/records/mean"] = num_records / len(episodes)
        return figures | {
            f"agent/tool_seconds/{tool}": seconds[tool] / count for tool, count in calls.items()
        }
