"""The world of an episode: it is told of a problem, and answers every turn of the model.

    class Guess:
        async def reset(self, problem): self.number = int(problem.answer)
        async def step(self, response):
            return Observation(text="higher" if int(response) < self.number else "lower")
        async def close(self): ...

An environment of one's own is such a class, `file.py:Guess`; its methods may be plain functions as well.
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
    """What the world says to a turn: text right behind the model's, or messages, which the chat template writes."""

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
    """The world itself failed, not the model's call: the episode's verdict is a failure, never a score."""
