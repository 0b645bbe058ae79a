"""Tools of an MCP server, against a real one that is started here."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from foresail.agents.environment import EnvironmentBroken
from foresail.agents.factory import open_factory
from foresail.agents.tools.call_formats import Hermes, ToolCall
from foresail.agents.tools.mcp_tools import McpServer
from foresail.agents.tools.tool import Tool
from foresail.agents.tools.tool_environment import ToolEnvironment
from foresail.recipe.tables.environment import Environment
from foresail.recipe.tables.tools import McpServer as McpSettings
from foresail.records import Message, Problem

pytest.importorskip("mcp", reason='MCP servers need mcp: pip install "foresail[mcp]"')

COMMAND = [sys.executable, str(Path(__file__).with_name("tiny_mcp_server.py"))]
PROBLEM = Problem(id="p", prompt=(Message(role="user", content="?"),), answer="!")


@pytest.fixture(scope="module")
def server() -> Iterator[McpServer]:
    with McpServer(command=COMMAND) as server:
        yield server


def named(server: McpServer, name: str) -> Tool:
    return next(tool for tool in server.tools() if tool.name == name)


def test_its_tools_are_described_as_it_does(server: McpServer) -> None:
    add = named(server, "add")
    assert add.description == "Add two numbers."
    assert add.parameters["required"] == ["a", "b"]
    assert add.parameters["properties"]["a"]["type"] == "integer"


def test_calls_are_answered_and_mistakes_told_from_any_loop(server: McpServer) -> None:
    add, fail = named(server, "add"), named(server, "fail")
    for _ in range(2):
        assert asyncio.run(add.call({"a": 1, "b": 2}, 60)).text == "3"
    assert "fail" in asyncio.run(fail.call({"why": "no way"}, 60)).error
    wrong = asyncio.run(add.call({"a": "many"}, 60))
    assert wrong.text.startswith("error: ") and wrong.error
    assert asyncio.run(add.call({"a": 2, "b": 2}, 60)).text == "4"


def test_a_slow_call_is_given_up(server: McpServer) -> None:
    assert "took longer" in asyncio.run(named(server, "wait").call({"seconds": 1}, 0.05)).error


def test_it_works_in_an_episode(server: McpServer) -> None:
    async def go() -> list[str]:
        environment = ToolEnvironment(server.tools(), Hermes())
        await environment.reset(PROBLEM)
        calls = "".join(Hermes().write(ToolCall("add", {"a": i, "b": i})) for i in range(5))
        seen = await environment.step(calls)
        await environment.close()
        return [message.content for message in seen.messages]

    assert asyncio.run(go()) == ["0", "2", "4", "6", "8"]


def test_only_some_tools_may_be_wanted() -> None:
    with McpServer(command=COMMAND, only=["add"]) as server:
        assert [tool.name for tool in server.tools()] == ["add"]
        server.only = ("sub",)
        with pytest.raises(ValueError, match="has no tool sub; it has: add, fail"):
            server.tools()


def test_a_recipe_names_a_server_and_some_of_its_tools() -> None:
    settings = Environment(tools=("calculator",), mcp=(McpSettings(command=tuple(COMMAND), tools=("add",)),))
    with open_factory(settings) as factory:
        assert [tool.name for tool in factory.tools] == ["calculator", "add"]
        assert asyncio.run(factory.tools[1].call({"a": 1, "b": 2}, 60)).text == "3"
    with pytest.raises(EnvironmentBroken, match="is gone"):  # closed with the world
        asyncio.run(factory.tools[1].call({"a": 1, "b": 2}, 60))
    lacking = Environment(mcp=(McpSettings(command=tuple(COMMAND), tools=("sub",)),))
    with pytest.raises(ValueError, match=r"environment\.mcp#1: .*has no tool sub"), open_factory(lacking):
        pass
    absent = Environment(mcp=(McpSettings(command=("no-such-program-anywhere",)),))
    with pytest.raises(ValueError, match=r"environment\.mcp#1: .*cannot be used"), open_factory(absent):
        pass


def test_a_server_sees_the_variables_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY_OF_MINE", "secret")
    for env, seen in (((), "not set"), (("KEY_OF_MINE",), "secret")):
        with McpServer(command=COMMAND, env=env) as server:
            assert asyncio.run(named(server, "variable").call({"name": "KEY_OF_MINE"}, 60)).text == seen
    with pytest.raises(ValueError, match="NO_SUCH_KEY is not set"):
        McpServer(command=COMMAND, env=["NO_SUCH_KEY"])


def test_a_server_that_dies_breaks_the_environment() -> None:
    with McpServer(command=COMMAND) as server:
        for name in ("die", "add"):
            with pytest.raises(EnvironmentBroken):
                asyncio.run(named(server, name).call({"a": 1, "b": 2} if name == "add" else {}, 60))


def test_a_server_that_cannot_start_is_told() -> None:
    with pytest.raises(ValueError, match="cannot be used"):
        McpServer(command=["no-such-program-anywhere"])
    with pytest.raises(ValueError, match="cannot be used"):
        McpServer(command=[sys.executable, "-c", "print('hello')"])
    with pytest.raises(ValueError, match="one of them"):
        McpServer()
