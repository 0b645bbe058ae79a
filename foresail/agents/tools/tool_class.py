"""A class whose public methods are tools, as TRL's `environment_factory` takes it: an object for each episode.

    class Counter:
        def reset(self, **row): self.count = 0
        def add(self, number: int) -> str:
            '''Add to the count.

            Args:
                number: how much
            '''
            self.count += number
            return str(self.count)
        def get_reward(self) -> float: return float(self.count == 10)

`reset` gets the row's columns, and may return text to append to the prompt. `get_reward`, or an attribute `reward`,
is the episode's reward (`reward.grader = "environment"`); it is read after the model's final answer.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from foresail.agents.environment import EnvironmentBroken, Observation
from foresail.agents.opening import check_opening
from foresail.agents.tools.signature import read_signature
from foresail.agents.tools.tool import Tool, finish, in_a_line, make_tool
from foresail.agents.tools.tool_environment import ToolEnvironment
from foresail.records import Problem

NO_TOOLS = ("reset", "get_reward", "close")


def method_tools(kind: type) -> list[Tool]:
    """A tool for each public method. Raises ValueError for parameters that have no schema."""
    blank: Any = object.__new__(kind)
    methods = {name: getattr(blank, name) for name in method_names(kind)}
    return [
        make_tool(read_signature(method), name, kind, function=method) for name, method in methods.items()
    ]


def method_names(kind: type) -> list[str]:
    """The names of methods that are tools."""
    functions = (name for name, _ in inspect.getmembers(kind, inspect.isfunction))
    return [name for name in functions if not name.startswith("_") and name not in NO_TOOLS]


def may_speak(kind: type) -> bool:
    """Whether `reset` may return text for the prompt: yes unless it is annotated `-> None`."""
    return inspect.signature(kind.reset).return_annotation not in (None, "None")  # type: ignore[attr-defined]


class ToolClassEnvironment:
    """The environment of one episode: an object of the class, whose methods `make_environment` takes as tools."""

    def __init__(
        self, kind: type, tools: list[Tool], make_environment: Callable[[list[Tool]], ToolEnvironment]
    ) -> None:
        self.kind, self.tools, self.make_environment = kind, tools, make_environment
        self.object: Any = None
        self.environment: ToolEnvironment | None = None

    async def open(self, problem: Problem) -> str:
        try:
            self.object = await finish(self.kind, {}, None)
            text = await finish(self.object.reset, reset_arguments(self.object.reset, problem), None)
        except EnvironmentBroken:
            raise
        except Exception as error:
            raise EnvironmentBroken(f"{self.kind.__name__}.reset: {in_a_line(error)}") from error
        if text is not None and not isinstance(text, str):
            raise EnvironmentBroken(
                f"{self.kind.__name__}.reset returned {type(text).__name__}; return text or None"
            )
        return text or ""

    async def reset(self, problem: Problem) -> None:
        check_opening(problem, await self.open(problem))
        turn = asyncio.Lock()
        bound = [
            replace(tool, function=one_at_a_time(getattr(self.object, tool.name), turn))
            for tool in self.tools
        ]
        self.environment = self.make_environment(bound)
        await self.environment.reset(problem)

    async def step(self, response: str) -> Observation:
        assert self.environment is not None
        seen = await self.environment.step(response)
        return replace(seen, reward=await self._reward()) if seen.done else seen

    async def _reward(self) -> float | None:
        """The object's reward; None if it has none."""
        name = "get_reward" if hasattr(self.object, "get_reward") else "reward"
        try:
            reward = getattr(self.object, name, None)
            reward = await finish(reward, {}, None) if callable(reward) else reward
            return None if reward is None else float(reward)
        except Exception as error:
            raise EnvironmentBroken(f"{self.kind.__name__}.{name}: {in_a_line(error)}") from error

    async def close(self) -> None:
        if self.environment is not None:
            await self.environment.close()
        if hasattr(self.object, "close"):
            await finish(self.object.close, {}, None)


def one_at_a_time(method: Callable[..., Any], turn: asyncio.Lock) -> Callable[..., Any]:
    """The method with its calls in order: a turn's calls otherwise run at the same time."""

    async def call(**arguments: Any) -> Any:
        async with turn:
            return await finish(method, arguments, None)

    return call


def reset_arguments(reset: Callable[..., Any], problem: Problem) -> dict[str, Any]:
    """The columns of the problem's row that `reset` takes; all for `**row`."""
    prompt = [{"role": message.role, "content": message.content} for message in problem.prompt]
    row = {"prompt": prompt, "answer": problem.answer, **problem.extra}
    parameters = inspect.signature(reset).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return row
    return {parameter.name: row[parameter.name] for parameter in parameters if parameter.name in row}
