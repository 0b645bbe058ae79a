"""Tools by name."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from foresail.agents.tools.load_tool import load_tool, load_tools
from foresail.agents.tools.tool import Tool
from foresail.records import Message, Problem

PROBLEM = Problem(id="p", prompt=(Message(role="user", content="?"),), answer="!")
FILE = '''
from foresail.agents.tools.tool import tool_of

def add(a: int, b: int) -> int:
    """Add."""
    return a + b

class Counter:
    """Counts."""
    def __init__(self, start: int = 0) -> None:
        self.count = start
    def __call__(self) -> int:
        self.count += 1
        return self.count

shared = Counter(10)
renamed = tool_of(add, name="plus")
'''


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    path = tmp_path / "my_tools.py"
    path.write_text(FILE)
    return path


def call(tool: Tool, **arguments: Any) -> str:
    async def go() -> str:
        opened = await tool.open(PROBLEM)
        await opened.call(arguments)
        return (await opened.call(arguments)).text

    return asyncio.run(go())


def test_a_function_a_class_an_object_and_a_tool_are_found_in_a_file(tools: Path) -> None:
    assert call(load_tool(f"{tools}:add"), a=1, b=2) == "3"
    assert load_tool(f"{tools}:renamed").name == "plus"
    counter = load_tool(f"{tools}:Counter")
    assert [call(counter), call(counter)] == ["2", "2"]  # of each episode its own
    assert call(load_tool(f"{tools}:Counter", start=5)) == "7"
    shared = load_tool(f"{tools}:shared")
    assert [call(shared), call(shared)] == ["12", "14"]  # one for all


def test_built_in_tools_have_names() -> None:
    assert call(load_tool("calculator"), expression="2+3") == "5"


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("calculater", {}, "there is no tool 'calculater'; there are calculator, search, python"),
        (
            "calculator",
            {"depth": 3},
            "the options of the tool calculator: got an unexpected keyword argument 'depth'",
        ),
        ("FILE:nothing", {}, "there is no nothing in"),
        ("FILE:add", {"a": 1}, "takes no options"),
        ("FILE:Counter", {"begin": 1}, "unexpected keyword argument 'begin'"),
    ],
)
def test_a_wrong_name_is_told(tools: Path, name: str, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        load_tool(name.replace("FILE", str(tools)), **options)


def test_several_tools_are_loaded_with_their_options(tools: Path) -> None:
    loaded = load_tools(["calculator", {"tool": f"{tools}:Counter", "start": 5}])
    assert [tool.name for tool in loaded] == ["calculator", "counter"] and call(loaded[1]) == "7"
    with pytest.raises(ValueError, match="names no tool"):
        load_tools([{"corpus": "a"}])
    with pytest.raises(ValueError, match="the options of the tool mcp"):
        load_tools([{"tool": "mcp", "comand": ["a"]}])


def test_a_file_that_does_not_exist_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="does not exist"):
        load_tool(f"{tmp_path}/none.py:add")
