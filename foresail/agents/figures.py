"""What a step's episodes did, for the run log: turns, tool calls, errors, and the time that was waited.

Only groups that the step was closed on are counted, in launch order: which later ones had ended by then depends on
the machine. So with tools that answer alike twice all figures but the times are those of any other run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from foresail.agents.environment import Observation, ToolUse
from foresail.rollout.plan import SampleSpec


@dataclass(frozen=True, kw_only=True)
class EpisodeFigure:
    """Of one episode."""

    num_turns: int
    num_records: int
    seconds: float
    waited: float  # of them, for the world
    uses: tuple[ToolUse, ...]


class EpisodeFigures:
    """`add` episodes as they end, `close` when their step does, `take` what it came to."""

    def __init__(self) -> None:
        self.ended: dict[tuple[int, int], EpisodeFigure] = {}  # by group and sample, of the step under way
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
        """An episode that took so long, and waited so long of it for the world."""
        self.ended[spec.group, spec.sample] = EpisodeFigure(
            num_turns=num_turns,
            num_records=num_records,
            seconds=seconds,
            waited=waited,
            uses=tuple(use for observation in observations for use in observation.uses),
        )

    def close(self, groups: Collection[int]) -> None:
        """The step has ended, on these groups."""
        counted = set(groups)
        self.counted += [self.ended[place] for place in sorted(self.ended) if place[0] in counted]
        self.ended.clear()

    def take(self) -> dict[str, float]:
        """{"agent/turns/mean": 3.1, "agent/tool_calls/mean": 2.1, "agent/tool_seconds/search": 0.02, …}"""
        episodes, self.counted = self.counted, []
        if not episodes:
            return {}
        uses = [use for episode in episodes for use in episode.uses]
        named = [use for use in uses if use.tool]
        calls = Counter(use.tool for use in named)
        seconds = dict.fromkeys(calls, 0.0)
        for use in named:
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
