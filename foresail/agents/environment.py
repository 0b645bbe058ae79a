"""The seam between an episode and its world: the model writes a turn, the environment answers it.

environment = factory()                      # one for each episode
await environment.reset(problem)
observation = await environment.step("<search>capital of France</search>")
observation.text -> "\\n<result>Paris …</result>\\n"
await environment.close()
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from foresail.records import Message, Problem


@dataclass(frozen=True, kw_only=True)
class ToolUse:
    """One call of a tool, for the log."""

    tool: str  # its name; "" where the call could not be read
    seconds: float
    error: str = ""  # what went wrong, in a line


@dataclass(frozen=True, kw_only=True)
class Observation:
    """What the world answers to a turn: messages, which the chat template writes, or text right behind it."""

    messages: tuple[Message, ...] = ()
    text: str = ""
    done: bool = False  # the episode has ended; the model is not asked again
    reward: float | None = None  # of this turn, where the environment gives one
    uses: tuple[ToolUse, ...] = ()


class Environment(Protocol):
    """The world of one episode. `close` is called at its end, whatever happened before."""

    async def reset(self, problem: Problem) -> None: ...

    async def step(self, response: str) -> Observation: ...

    async def close(self) -> None: ...


class EnvironmentBroken(Exception):
    """The world itself failed (not the model's call): the episode's verdict is a failure, never a score."""
