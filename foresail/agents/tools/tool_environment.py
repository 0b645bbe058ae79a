"""The environment of tools: parses the calls of a turn, runs them at the same time and returns the results.

    environment = ToolEnvironment([tool_of(search)], Tags([tool_of(search)]), max_turns=4)

A turn without calls is the final answer. A call that is malformed, fails or takes too long is answered with its
error and counted. Only a broken environment (no search server, no sandbox) raises.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from foresail.agents.environment import Observation, ToolUse
from foresail.agents.tools.call_formats import CallFormat, MalformedCall, ToolCall
from foresail.agents.tools.tool import OpenTool, Tool, ToolAnswer, failed
from foresail.records import Problem

LAST_TURN = "No more calls after this: give the final answer now."
NO_TIME = "The time for tools is over: give the final answer now."
SHOWN = 40  # characters of an unknown tool's name
CLOSING_SECONDS = 10.0  # for a tool to close


class ToolEnvironment:
    """`max_turns` counts the model's turns, including the final answer.

    `tool_seconds` limits one call, `episode_seconds` all calls of an episode, in wall-clock time, since a tool may
    wait for another machine; tools with `limits_itself` have their own limits. Calls of a tool with state wait for
    each other and must start within `turn_seconds`. Results are cut to `max_result_chars` characters.
    """

    def __init__(
        self,
        tools: Sequence[Tool],
        format: CallFormat,
        *,
        max_turns: int = 8,
        tool_seconds: float = 30.0,
        turn_seconds: float = 240.0,
        episode_seconds: float = 300.0,
        max_result_chars: int = 4000,
    ) -> None:
        check_names(tools)
        if max_turns < 1 or max_result_chars < 1:
            raise ValueError("max_turns and max_result_chars must be at least 1")
        self.tools = tuple(tools)
        self.format = format
        self.max_turns, self.max_result_chars = max_turns, max_result_chars
        self.tool_seconds, self.episode_seconds = tool_seconds, episode_seconds
        self.turn_seconds = turn_seconds
        self.opened: dict[str, OpenTool] = {}
        self.turns, self.seconds, self.turn_ends = 0, 0.0, math.inf

    async def reset(self, problem: Problem) -> None:
        await self.close()
        self.turns, self.seconds = 0, 0.0
        for tool in self.tools:
            self.opened[tool.name] = await tool.open(problem)

    async def step(self, response: str) -> Observation:
        """The results of the response's calls; `done` if it has none, or was the last turn."""
        self.turns += 1
        calls = self.format.parse(response)
        if not calls or self.turns >= self.max_turns:
            return Observation(done=True, uses=tuple(map(self._not_made, calls)))
        began = time.monotonic()
        self.turn_ends = began + self.turn_seconds
        done = await together([self._answer(call) for call in calls])
        self.seconds += time.monotonic() - began
        results = [shorten(answer.text, self.max_result_chars) for answer, _ in done]
        if self.turns == self.max_turns - 1:
            results[-1] += f"\n{LAST_TURN}"
        elif self.seconds >= self.episode_seconds:
            self.turns = self.max_turns - 1
            results[-1] += f"\n{NO_TIME}"
        return replace(self.format.observe(results), uses=tuple(use for _, use in done))

    async def _answer(self, call: ToolCall | MalformedCall) -> tuple[ToolAnswer, ToolUse]:
        began = time.monotonic()
        name, answer = await self._carry_out(call)
        return answer, ToolUse(tool=name, seconds=time.monotonic() - began, error=answer.error)

    async def _carry_out(self, call: ToolCall | MalformedCall) -> tuple[str, ToolAnswer]:
        if isinstance(call, MalformedCall):
            return "", failed(call.why)
        if call.name not in self.opened:
            known = ", ".join(self.opened) or "none"
            return "", failed(f"there is no tool {call.name[:SHOWN]!r}; there are: {known}")
        left = max(self.episode_seconds - self.seconds, 0.0)
        seconds = min(self.tool_seconds, left)
        return call.name, await self.opened[call.name].call(call.arguments, seconds, begin_by=self.turn_ends)

    def _not_made(self, call: ToolCall | MalformedCall) -> ToolUse:
        """The log entry of a call in the last turn, which is not run. Only known tools are named."""
        name = call.name if isinstance(call, ToolCall) and call.name in self.opened else ""
        return ToolUse(tool=name, seconds=0.0, error="called in the last turn")

    async def close(self) -> None:
        """Close the tools. The episode is over, so a tool that fails to close is ignored."""
        opened, self.opened = self.opened, {}
        for tool in opened.values():
            with suppress(Exception):
                async with asyncio.timeout(CLOSING_SECONDS):
                    await tool.close()


def check_names(tools: Sequence[Tool]) -> None:
    names = [tool.name for tool in tools]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"two tools are called {min(twice)}; give one another name")


async def together(tasks: Sequence[object]) -> list[tuple[ToolAnswer, ToolUse]]:
    """Run all calls at the same time; if one raises, cancel the others first."""
    running = [asyncio.ensure_future(task) for task in tasks]  # type: ignore[call-overload]
    try:
        return list(await asyncio.gather(*running))
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def shorten(text: str, max_chars: int) -> str:
    """A text's beginning and end with a note between: search results matter at the beginning, errors at the end."""
    if len(text) <= max_chars:
        return text
    tail = max_chars // 4
    note = f"\n[… {len(text) - max_chars} of {len(text)} characters left out …]\n"
    return text[: max_chars - tail] + note + text[len(text) - tail :]
