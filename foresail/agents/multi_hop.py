"""The generated multi-hop world as an environment: `environment.name = "multi-hop"`.

The model searches with a tag and gets the result as a message of the role `tool`, as in the SFT episodes of the
same source. A turn without a search is the answer.
"""

from __future__ import annotations

import time

from foresail.agents.environment import Observation, ToolUse
from foresail.agents.tools.call_formats import MalformedCall, Tags
from foresail.agents.tools.tool import Tool, tool_of
from foresail.data.made.multi_hop_world import NOTHING, WorldSearch
from foresail.records import Message, Problem


class MultiHop:
    """One search a turn; of several only the last is run."""

    @staticmethod
    def tools() -> tuple[Tool, ...]:
        """For transcripts: what its calls are of, whatever the world."""
        world: WorldSearch = object.__new__(WorldSearch)
        return (tool_of(world.search),)

    async def reset(self, problem: Problem) -> None:
        self.world = WorldSearch(problem)
        self.format = Tags([tool_of(self.world.search)])

    async def step(self, response: str) -> Observation:
        calls = self.format.parse(response)
        if not calls:
            return Observation(done=True)
        call, began = calls[-1], time.monotonic()
        if isinstance(call, MalformedCall):
            passage, error = NOTHING, call.why  # in words that tiny tokenizers have
        else:
            passage, error = self.world.search(str(call.arguments["query"])), ""
        use = ToolUse(tool="search", seconds=time.monotonic() - began, error=error)
        return Observation(messages=(Message(role="tool", content=passage),), uses=(use,))

    async def close(self) -> None: ...
