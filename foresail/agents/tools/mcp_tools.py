"""The tools of an MCP server, either a program started here or a server reached over HTTP.

    with McpServer(command=["uvx", "mcp-server-time"]) as server:
        tools = server.tools()

All episodes share the server. Its connection has an event loop in its own thread, since a connection belongs to the
task that opened it. Needs the package mcp (pip install "foresail[mcp]").
"""

from __future__ import annotations

import asyncio
import importlib
import os
import threading
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future
from contextlib import AsyncExitStack
from typing import Any

from foresail.agents.environment import EnvironmentBroken
from foresail.agents.tools.tool import Tool, ToolAnswer, failed, in_a_line

STARTING_SECONDS = 60.0
CLOSED = -32000  # the error code of a connection that has ended


class McpServer:
    """Connects on construction; raises ValueError if it cannot.

    A started program gets a few environment variables, such as PATH, and those in `env`.
    """

    def __init__(
        self,
        *,
        command: Sequence[str] = (),
        url: str = "",
        only: Sequence[str] = (),
        env: Sequence[str] = (),
    ) -> None:
        if bool(command) == bool(url):
            raise ValueError("an MCP server needs a command that starts it or its url, one of them")
        if missing := [name for name in env if name not in os.environ]:
            raise ValueError(
                f"the environment variable {missing[0]} is not set; set it, or remove it from env"
            )
        self.mcp = load_mcp()
        self.env = {name: os.environ[name] for name in env}
        self.command, self.url, self.only = tuple(command), url, tuple(only)
        self.place = url or " ".join(command)
        self.session: Any = None
        self.described: list[Any] = []
        self.connected: Future[None] = Future()
        self.closing = asyncio.Event()
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._run, name="mcp", daemon=True)
        self.thread.start()
        self._wait_until_connected()

    def _run(self) -> None:
        """Runs until `close`, even if the server ends before, so that later calls get an error."""
        asyncio.set_event_loop(self.loop)
        holder = self.loop.create_task(self._stay_connected())
        self.loop.run_until_complete(self.closing.wait())
        self.session = None
        others = [task for task in asyncio.all_tasks(self.loop) if task is not holder]
        for task in others:
            task.cancel()
        self.loop.run_until_complete(asyncio.gather(holder, *others, return_exceptions=True))
        self.loop.close()

    async def _stay_connected(self) -> None:
        try:
            async with AsyncExitStack() as stack:
                streams = await stack.enter_async_context(self._connect())
                session = await stack.enter_async_context(self.mcp.ClientSession(streams[0], streams[1]))
                await session.initialize()
                self.described = await list_tools(session)
                self.session = session
                self.connected.set_result(None)
                await self.closing.wait()
        except BaseException as error:  # also anyio's groups of errors
            if not self.connected.done():
                self.connected.set_exception(ValueError(in_a_line(first_of(error))))
        finally:
            self.session = None

    def _connect(self) -> Any:
        if self.command:
            parameters = self.mcp.StdioServerParameters(
                command=self.command[0], args=list(self.command[1:]), env=self.env or None
            )
            return self.mcp.stdio_client(parameters)
        http = importlib.import_module("mcp.client.streamable_http")
        # renamed between versions 1 and 2
        client = getattr(http, "streamable_http_client", None) or http.streamablehttp_client
        return client(self.url)

    def _wait_until_connected(self) -> None:
        try:
            self.connected.result(STARTING_SECONDS)
        except TimeoutError:
            self.close()
            seconds = f"{STARTING_SECONDS:g} s"
            raise ValueError(f"the MCP server {self.place} does not answer within {seconds}") from None
        except ValueError as error:
            self.close()
            raise ValueError(f"the MCP server {self.place} cannot be used: {error}") from None

    def tools(self) -> list[Tool]:
        """The server's tools, or those of them in `only`."""
        names = [described.name for described in self.described]
        if missing := [name for name in self.only if name not in names]:
            raise ValueError(
                f"the MCP server {self.place} has no tool {missing[0]}; it has: {', '.join(names)}"
            )
        return [self._tool(each) for each in self.described if not self.only or each.name in self.only]

    def _tool(self, described: Any) -> Tool:
        async def call(**arguments: Any) -> ToolAnswer:
            return await self.call(described.name, arguments)

        schema = field(described, "input_schema", "inputSchema")
        return Tool(
            name=described.name,
            description=described.description or described.name,
            parameters=schema or {"type": "object", "properties": {}},
            read=dict,  # the server checks them
            function=call,
        )

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolAnswer:
        """Call a tool from any loop. A refusal is an answer; a lost server raises EnvironmentBroken."""
        session = self.session
        if session is None:
            raise EnvironmentBroken(f"the MCP server {self.place} is gone")
        try:
            result = await self._on_own_loop(session.call_tool(name, arguments))
        except Exception as error:
            code = getattr(getattr(error, "error", error), "code", None)
            if not isinstance(code, int) or code == CLOSED or self.session is None:
                raise EnvironmentBroken(f"the MCP server {self.place}: {in_a_line(error)}") from error
            return failed(in_a_line(error))
        text = "\n".join(part_text(part) for part in result.content)
        return failed(text) if field(result, "is_error", "isError") else ToolAnswer(text=text or "(nothing)")

    async def _on_own_loop(self, work: Coroutine[Any, Any, Any]) -> Any:
        try:
            future = asyncio.run_coroutine_threadsafe(work, self.loop)
        except RuntimeError as error:  # the loop is closed
            work.close()
            raise EnvironmentBroken(f"the MCP server {self.place} is gone") from error
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        if self.thread.is_alive():
            self.loop.call_soon_threadsafe(self.closing.set)
            self.thread.join(10)

    def __enter__(self) -> McpServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


async def list_tools(session: Any) -> list[Any]:
    """The tools of all pages."""
    page = await session.list_tools()
    tools = list(page.tools)
    while cursor := field(page, "next_cursor", "nextCursor"):
        page = await session.list_tools(params=page_request(cursor))
        tools += page.tools
    return tools


def page_request(cursor: str) -> Any:
    types = importlib.import_module("mcp.types")
    return types.PaginatedRequestParams(cursor=cursor)


def part_text(part: Any) -> str:
    return part.text if getattr(part, "type", "") == "text" else f"[{getattr(part, 'type', 'something')}]"


def field(record: Any, name: str, older: str) -> Any:
    """Fields were renamed between versions 1 and 2 of the package."""
    return getattr(record, name, None) if hasattr(record, name) else getattr(record, older, None)


def first_of(error: BaseException) -> BaseException:
    """The first error inside nested groups of errors."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def load_mcp() -> Any:
    try:
        return importlib.import_module("mcp")
    except ImportError:
        raise ValueError('MCP servers need the package mcp; pip install "foresail[mcp]"') from None
