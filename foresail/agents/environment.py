"""The interface of environments: one is reset to a problem and answers every turn of the model.

    class Guess:
        async def reset(self, problem): self.number = int(problem.answer)
        async def step(self, response):
            return Observation(text="higher" if int(response) < self.number else "lower")
        async def close(self): ...

A recipe names such a class as `file.py:Guess`. Its methods may also be plain functions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from foresail.records import Message, Problem


@dataclass(frozen=True, kw_only=True)
class ToolUse:
    """One call of a tool, for the log."""

    tool: str  # "" for a call that could not be read
    seconds: float
    error: str = ""  # what went wrong, in a line


@dataclass(frozen=True, kw_only=True)
class Observation:
    """The answer to a turn: text that follows the model's directly, or messages for the chat template."""

    messages: tuple[Message, ...] = ()
    text: str = ""
    done: bool = False  # the episode has ended
    reward: float | None = None  # of this turn
    uses: tuple[ToolUse, ...] = ()


class Environment(Protocol):
    """The environment of one episode. `close` is always called at its end."""

    async def reset(self, problem: Problem) -> None: ...

    async def step(self, response: str) -> Observation: ...

    async def close(self) -> None: ...


class EnvironmentBroken(Exception):
    """The environment itself failed, not the model's call. The episode gets a failed verdict, never a score."""
