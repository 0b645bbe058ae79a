"""Loads tools by name: a built-in one, or a user's own as `file.py:name`.

    load_tool("search", corpus="wiki.jsonl.gz")
    load_tool("my_tools.py:weather")

The name may be of a function, a class (an object for each episode, made with the options), an object with
`__call__`, or a `Tool`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from foresail.agents.tools.calculator import calculator
from foresail.agents.tools.mcp_tools import McpServer
from foresail.agents.tools.python_tool import python_tool
from foresail.agents.tools.search import search_tool
from foresail.agents.tools.tool import Tool, tool_of, tool_with_state
from foresail.user_code import load_user_code, split_name


def calculator_tool() -> Tool:
    return tool_of(calculator)


BUILT_IN: dict[str, Callable[..., Tool]] = {
    "calculator": calculator_tool,
    "search": search_tool,
    "python": python_tool,
}


def load_tool(name: str, **options: Any) -> Tool:
    """Raises ValueError for an unknown name or wrong options."""
    if ":" not in name:
        return built_in(name, options)
    place, attribute = split_name(name)
    entry = load_user_code(name)
    if entry is None:
        raise ValueError(f"there is no {attribute} in {place}; check the name")
    if not options:
        return tool_of(entry)
    if not inspect.isclass(entry):
        raise ValueError(f"{name} takes no options; a class would get them when an episode begins")
    check_options(name, entry, options)
    return tool_with_state(entry, partial(entry, **options))


def load_tools(entries: Sequence[str | Mapping[str, Any]]) -> list[Tool]:
    """load_tools(["calculator", {"tool": "search", "corpus": "wiki.jsonl.gz"}]); the entry `mcp` gives several."""
    tools: list[Tool] = []
    for entry in entries:
        options = {"tool": entry} if isinstance(entry, str) else dict(entry)
        name = options.pop("tool", None)
        if not isinstance(name, str):
            raise ValueError(f'{entry} names no tool; write tool = "…" in it')
        if name == "mcp":
            check_options(name, McpServer, options)
            tools += McpServer(**options).tools()
        else:
            tools.append(load_tool(name, **options))
    return tools


def built_in(name: str, options: dict[str, Any]) -> Tool:
    if name not in BUILT_IN:
        raise ValueError(
            f"there is no tool {name!r}; there are {', '.join(BUILT_IN)}, or name a file: tools.py:{name}"
        )
    check_options(name, BUILT_IN[name], options)
    return BUILT_IN[name](**options)


def check_options(name: str, function: Callable[..., Any], options: dict[str, Any]) -> None:
    try:
        inspect.signature(function).bind(**options)
    except TypeError as error:
        raise ValueError(
            f"the options of the tool {name}: {error}; it takes {inspect.signature(function)}"
        ) from None
