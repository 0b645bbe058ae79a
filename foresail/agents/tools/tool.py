"""Tools that a model may call, made of typed Python functions.

    def add(a: int, b: int) -> int:
        '''Add two numbers.'''
        return a + b

    tool = tool_of(add)
    await tool.call({"a": 1, "b": 2}, seconds=30) -> ToolAnswer(text="3")
    await tool.call({"a": 1}, seconds=30) -> ToolAnswer(text="error: the argument b is missing", error="…")

Plain functions run in threads, `async` ones on the event loop. A class whose instances have `__call__` is a tool
with state: each episode has its own instance, which may have `reset(problem)` and `close()` and runs its calls in
order.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import math
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.error import URLError

from foresail.agents.environment import EnvironmentBroken
from foresail.agents.threads import THREADS, TooSlow
from foresail.agents.tools.signature import BadArguments, Signature, read_signature
from foresail.records import Problem

LONGEST_ERROR = 500  # characters of an exception's message
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")


@dataclass(frozen=True, kw_only=True)
class ToolAnswer:
    """A call's result. `text` is for the model; `error`, if it failed, is for the log."""

    text: str
    error: str = ""


def failed(why: str) -> ToolAnswer:
    return ToolAnswer(text=f"error: {why}", error=why)


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A tool's name, its description for the model, and the function to call.

    `read` checks a call's arguments and raises BadArguments; `function` takes them by name. `make`, for tools with
    state, returns a new object to call instead of `function`. With `limits_itself` no time limit is set on calls.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]  # a JSON schema
    read: Callable[[Mapping[str, Any]], dict[str, Any]] = field(repr=False)
    function: Callable[..., Any] | None = field(default=None, repr=False)
    make: Callable[[], Any] | None = field(default=None, repr=False)
    limits_itself: bool = False

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise ValueError(f"a tool cannot be called {self.name!r}; use letters, digits and _")

    def schema(self) -> dict[str, Any]:
        """The entry for a chat template's `tools`."""
        function = {"name": self.name, "description": self.description, "parameters": dict(self.parameters)}
        return {"type": "function", "function": function}

    async def open(self, problem: Problem) -> OpenTool:
        """The tool of one episode."""
        if self.make is None:
            assert self.function is not None
            return OpenTool(tool=self, function=self.function)
        state = await self._start(self.make, problem)
        return OpenTool(tool=self, function=state, state=state, turn=asyncio.Lock())

    async def _start(self, make: Callable[[], Any], problem: Problem) -> Any:
        try:
            state = await finish(make, {}, None)
            if hasattr(state, "reset"):
                await finish(state.reset, {"problem": problem}, None)
        except Exception as error:
            raise EnvironmentBroken(f"the tool {self.name} cannot start: {in_a_line(error)}") from error
        return state

    async def call(self, arguments: Mapping[str, Any], seconds: float | None = None) -> ToolAnswer:
        """A call outside of episodes, of a tool without state."""
        assert self.function is not None, "tools with state are opened first"
        return await OpenTool(tool=self, function=self.function).call(arguments, seconds)


@dataclass(frozen=True, kw_only=True)
class OpenTool:
    """A tool in an episode. `call` always answers; it raises only EnvironmentBroken."""

    tool: Tool
    function: Callable[..., Any]
    state: Any = None
    turn: asyncio.Lock | None = None  # a tool with state runs its calls in order

    async def call(
        self, arguments: Mapping[str, Any], seconds: float | None = None, *, begin_by: float = math.inf
    ) -> ToolAnswer:
        """No call starts after `begin_by` (`time.monotonic`): many calls must not pass for a hung tool."""
        try:
            checked = self.tool.read(arguments)
        except BadArguments as error:
            return failed(str(error))
        if self.turn is None:
            return await self._call(checked, seconds)
        async with self.turn:
            if time.monotonic() > begin_by:
                return failed("not called: the calls before it took too long; make fewer in a turn")
            return await self._call(checked, seconds)

    async def _call(self, arguments: dict[str, Any], seconds: float | None) -> ToolAnswer:
        limit = None if self.tool.limits_itself else seconds
        try:
            value = await finish(self.function, arguments, limit)
            return value if isinstance(value, ToolAnswer) else ToolAnswer(text=to_text(value))
        except TooSlow:
            return failed(f"{self.tool.name} took longer than {limit:g} s and was stopped")
        except EnvironmentBroken:
            raise
        except (Exception, SystemExit) as error:
            if is_broken(error):
                raise EnvironmentBroken(f"the tool {self.tool.name}: {in_a_line(error)}") from error
            return failed(in_a_line(error))

    async def close(self) -> None:
        if hasattr(self.state, "close"):
            await finish(self.state.close, {}, None)


async def finish(function: Callable[..., Any], arguments: Mapping[str, Any], seconds: float | None) -> Any:
    """Run a function on the loop or in a thread, and wait for it. Raises TooSlow."""
    if is_async(function):
        return await within(function(**arguments), seconds)
    value = await THREADS.run(lambda: function(**arguments), seconds)
    return await within(value, seconds) if inspect.isawaitable(value) else value


async def within(awaitable: Awaitable[Any], seconds: float | None) -> Any:
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await protected(awaitable)
    except TimeoutError:
        if limit.expired():
            raise TooSlow(f"took longer than {seconds:g} s") from None
        raise


async def protected(awaitable: Awaitable[Any]) -> Any:
    """Turn a cancellation raised by the tool itself into an error; let ours pass."""
    try:
        return await awaitable
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise RuntimeError("the tool cancelled itself") from None


def is_async(function: Callable[..., Any]) -> bool:
    if inspect.isclass(function):
        return False
    called = function if inspect.isroutine(function) else getattr(function, "__call__", function)  # noqa: B004
    return inspect.iscoroutinefunction(inspect.unwrap(called))


def is_broken(error: BaseException) -> bool:
    """Whether the environment failed, not the call: something that the tool needs cannot be reached."""
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        reason = cause.reason if isinstance(cause, URLError) else None
        if isinstance(cause, ConnectionError | EnvironmentBroken) or isinstance(reason, OSError):
            return True
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    return False


def in_a_line(error: BaseException) -> str:
    """in_a_line(KeyError("x")) -> "KeyError: 'x'"."""
    try:
        words = " ".join(str(error)[: 4 * LONGEST_ERROR].split())
    except Exception:  # an exception whose `str` fails
        words = ""
    return f"{type(error).__name__}: {words}"[:LONGEST_ERROR].rstrip(": ")


def to_text(value: Any) -> str:
    """Text unchanged, other values as JSON if possible: to_text({"a": 1}) -> '{"a": 1}'."""
    if isinstance(value, str):
        return value
    if value is None:
        return "(nothing)"
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return str(value)


# Making tools.


def tool_of(thing: Any, *, name: str = "", description: str = "") -> Tool:
    """A tool from a function, an object with `__call__`, a class of such objects, or a tool."""
    if isinstance(thing, Tool):
        return thing
    if not callable(thing):
        raise ValueError(f"{thing!r} is no tool; give a typed function with a docstring")
    if inspect.isclass(thing):
        return tool_with_state(thing, thing, name=name, description=description)
    description = description or ("" if inspect.isroutine(thing) else class_description(type(thing)))
    return make_tool(
        read_signature(thing, description=description), name or name_of(thing), thing, function=thing
    )


def tool_with_state(kind: type, make: Callable[[], Any], *, name: str = "", description: str = "") -> Tool:
    """A tool with state: `make` returns an object for each episode, whose `__call__` is the tool."""
    if not inspect.isfunction(getattr(kind, "__call__", None)):  # noqa: B004
        raise ValueError(f"the class {kind.__name__} has no __call__; a tool with state is called by it")
    bound = kind.__call__.__get__(object.__new__(kind))
    signature = read_signature(bound, description=description or class_description(kind))
    return make_tool(signature, name or name_of(kind), kind, make=make)


def class_description(kind: type) -> str:
    """The first paragraph of the class's docstring, if its `__call__` has none."""
    says_itself = inspect.getdoc(kind.__call__) not in (None, inspect.getdoc(type.__call__))
    return "" if says_itself else (kind.__doc__ or "").strip().split("\n\n")[0]


def make_tool(signature: Signature, name: str, thing: Any, **how: Any) -> Tool:
    return Tool(
        name=name,
        description=signature.description,
        parameters=signature.schema,
        read=signature.read,
        limits_itself=getattr(thing, "limits_itself", False) is True,
        **how,
    )


def name_of(thing: Any) -> str:
    """name_of(WebSearch) -> "web_search"; an object or a class may have a `tool_name` of its own."""
    own = getattr(thing, "tool_name", None)
    if isinstance(own, str):
        return own
    if inspect.isroutine(thing):
        return thing.__name__
    kind = thing if inspect.isclass(thing) else type(thing)
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", kind.__name__).lower()
