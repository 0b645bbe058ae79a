"""The world that a table [environment] describes: tools with their options, and what all episodes share."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import foresail.agents.factory
from foresail.agents.factory import open_factory
from foresail.agents.tools.call_formats import ToolCall
from foresail.agents.tools.tool import Tool, tool_of
from foresail.recipe.reading.dump import to_toml
from foresail.recipe.reading.load import RecipeError, load_recipe
from foresail.recipe.tables.environment import Environment
from foresail.recipe.tables.tools import McpServer as McpSettings
from foresail.recipe.tables.tools import PythonTool, SearchTool
from foresail.records import Message, Problem

PROBLEM = Problem(id="p", prompt=(Message(role="user", content="?"),), answer="!")


def ask(settings: Environment, name: str, **arguments: Any) -> str:
    """What the tool answers in the first turn of an episode."""

    async def go() -> str:
        with open_factory(settings) as factory:
            environment = factory.make()
            await environment.reset(PROBLEM)
            assert factory.format is not None
            seen = await environment.step(factory.format.write(ToolCall(name, arguments)))
            await environment.close()
            return seen.messages[0].content if seen.messages else seen.text

    return asyncio.run(go())


# Options.


def test_options_of_a_recipe_reach_the_tools(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text("".join(json.dumps({"title": f"T{n}", "text": "a river"}) + "\n" for n in range(5)))
    for passages in (1, 4):
        settings = Environment(
            tools=("search",), corpus=str(corpus), search=SearchTool(passages=passages), format="tags"
        )
        assert ask(settings, "search", query="river").count("a river") == passages
    slow = Environment(tools=("python",), python=PythonTool(seconds=0.2))
    assert "0.2 s" in ask(slow, "python", code="while True: pass")


def test_a_class_of_ones_own_is_made_with_its_options(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(
        "class Weather:\n    '''Tells the weather.'''\n    def __init__(self, unit='F', days=1):\n"
        "        self.said = f'{days} days in {unit}'\n    def __call__(self, city: str) -> str:\n"
        "        return self.said\n"
    )
    settings = Environment(tools=(f"{file}:Weather",), tool_options=("Weather.unit=C", "Weather.days=3"))
    assert ask(settings, "weather", city="Paris") == "3 days in C"
    wrong = Environment(tools=(f"{file}:Weather",), tool_options=("Weather.colour=red",))
    with pytest.raises(ValueError, match=r"environment\.tools: .*unexpected keyword argument 'colour'"):
        ask(wrong, "weather", city="Paris")


def test_turns_end_at_the_tags_of_the_tools_as_they_are_called(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text("class WebSearch:\n    '''Search.'''\n    def __call__(self, query: str) -> str: ...\n")
    with open_factory(Environment(tools=(f"{file}:WebSearch",), format="tags")) as factory:
        assert factory.stop == ("</web_search>",)
    with open_factory(Environment(tools=(f"{file}:WebSearch",))) as factory:
        assert factory.stop == ()


# MCP servers.


class Server:
    """Stands in for an MCP server that has the tools add and calculator."""

    opened: list[tuple[Sequence[str], str]] = []  # noqa: RUF012
    open_now = 0

    def __init__(self, *, command: Sequence[str], url: str, only: Sequence[str], env: Sequence[str]) -> None:
        if url == "http://nowhere":
            raise ValueError("the MCP server http://nowhere cannot be used: ConnectError")
        self.only = only
        Server.opened.append((tuple(command), url))
        Server.open_now += 1

    def tools(self) -> list[Tool]:
        def add(a: int, b: int) -> int:
            """Add."""
            return a + b

        def calculator(text: str) -> str:
            """Another one."""
            return text

        if "sub" in self.only:
            raise ValueError("the MCP server has no tool sub; it has: add, calculator")
        tools = [tool_of(add), tool_of(calculator)]
        return [tool for tool in tools if not self.only or tool.name in self.only]

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        Server.open_now -= 1


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> type[Server]:
    monkeypatch.setattr(foresail.agents.factory, "McpServer", Server)
    Server.opened, Server.open_now = [], 0
    return Server


def test_a_server_is_opened_once_for_all_episodes_and_closed_with_the_world(servers: type[Server]) -> None:
    settings = Environment(
        tools=("calculator",), mcp=(McpSettings(command=("program", "-x"), tools=("add",)),)
    )
    with open_factory(settings) as factory:
        assert [tool.name for tool in factory.tools] == ["calculator", "add"]
        for _ in range(3):
            asyncio.run(factory.make().reset(PROBLEM))
        assert servers.opened == [(("program", "-x"), "")] and servers.open_now == 1
    assert servers.open_now == 0


@pytest.mark.parametrize(
    ("server", "words"),
    [
        (
            McpSettings(url="http://nowhere"),
            r"^environment\.mcp#2: the MCP server http://nowhere cannot be used",
        ),
        (McpSettings(url="http://a", tools=("sub",)), r"^environment\.mcp#2: .*has no tool sub; it has: add"),
        (McpSettings(url="http://a"), "two tools are called add"),
    ],
)
def test_what_a_server_lacks_is_told_and_no_server_stays_open(
    servers: type[Server], server: McpSettings, words: str
) -> None:
    settings = Environment(mcp=(McpSettings(command=("program",), tools=("add",)), server))
    with pytest.raises(ValueError, match=words), open_factory(settings):
        pass
    assert servers.open_now == 0


def test_a_missing_package_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    settings = Environment(mcp=(McpSettings(command=("program",)),))
    with (
        pytest.raises(ValueError, match=r'environment\.mcp#1: .*pip install "foresail\[mcp\]"'),
        open_factory(settings),
    ):
        pass


# In a recipe.

RECIPE = """
stage = "rl"
steps = 2
data = { source = "problems.jsonl" }
[model]
path = "model"
[environment]
tools = ["search", "my_tools.py:Weather"]
tool_options = ["Weather.unit=C"]
corpus = "passages.jsonl"
[environment.search]
passages = 5
[[environment.mcp]]
command = ["uvx", "mcp-server-time"]
tools = ["get_current_time"]
[[environment.mcp]]
url = "http://localhost:8000/mcp"
"""


def load(tmp_path: Path, text: str, *overrides: str) -> Any:
    file = tmp_path / "recipe.toml"
    file.write_text(text)
    return load_recipe(file, overrides)


def test_a_recipe_with_options_is_written_and_read_again(tmp_path: Path) -> None:
    recipe = load(tmp_path, RECIPE, "environment.search.passages=7")
    assert recipe.environment.search.passages == 7 and recipe.environment.mcp[1].url is not None
    assert load(tmp_path, to_toml(recipe)) == recipe


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('url = "http', 'command = ["a"]\nurl = "http', "environment.mcp#2 needs a command.*remove one"),
        ('url = "http://localhost:8000/mcp"', "", "environment.mcp#2 needs a command.*set one of them"),
        ("passages = 5", "passages = 0", "environment.search.passages must be at least 1"),
        ("passages = 5", "count = 5", "environment.search.count: unknown key"),
        (
            "[environment.search]\npassages",
            "[environment.python]\nmemory_mb",
            r"environment.python\] is for a tool that environment.tools does not have",
        ),
        ("Weather.unit", "Wether.unit", "Wether is not a class in environment.tools; there: Weather"),
        ("Weather.unit=C", "unit=C", "is not of the form Tool.name=value"),
    ],
)
def test_mistakes_in_options_are_told(tmp_path: Path, old: str, new: str, words: str) -> None:
    with pytest.raises(RecipeError, match=words):
        load(tmp_path, RECIPE.replace(old, new))
