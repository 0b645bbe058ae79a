"""Options of tools in a recipe: those built in have tables of their own, MCP servers are listed.

[environment.search]
passages = 5

[[environment.mcp]]
command = ["uvx", "mcp-server-time"]
tools = ["get_current_time"]
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, Strict

from foresail.recipe.tables.parts import Part
from foresail.recipe.tables.values import Texts, read_options

Words = Annotated[tuple[str, ...], Strict(False)]


def read_tool_options(options: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """read_tool_options(["Weather.unit=C", "Weather.days=3"]) -> {"Weather": {"unit": "C", "days": 3}}."""
    by_tool: dict[str, dict[str, Any]] = {}
    for option in options:
        tool, dot, rest = option.partition(".")
        if not dot or not tool.strip().isidentifier():
            raise ValueError(f'"{option}" is not of the form Tool.name=value, like Weather.unit=C')
        by_tool.setdefault(tool.strip(), {}).update(read_options((rest,)))
    return by_tool


def check_tool_options(options: tuple[str, ...]) -> tuple[str, ...]:
    read_tool_options(options)
    return options


ToolOptions = Annotated[tuple[str, ...], Strict(False), AfterValidator(check_tool_options)]


class SearchTool(Part):
    """The tool search."""

    passages: int = Field(3, ge=1, le=20, description="search: passages that come back")
    kind: Literal["bm25", "dense"] = Field("bm25", description="search: by words, or by meaning")
    model: str | None = Field(
        None,
        description="search, dense: folder of a sentence embedder; default: all-MiniLM-L6-v2, as a package",
    )


class PythonTool(Part):
    """The tool python."""

    packages: Words = Field(
        (), description="python: packages that code may import, beside the standard library"
    )
    seconds: float = Field(5.0, gt=0, description="python: processor time of a call")
    session_seconds: float = Field(60.0, gt=0, description="python: processor time of an episode")
    memory_mb: int = Field(512, gt=0, description="python: memory of an episode")
    sessions: int = Field(
        64, gt=0, description="python: episodes that have one at the same time; others wait"
    )


class McpServer(Part):
    """An MCP server, started by the run or reached over HTTP; all episodes share it."""

    command: Texts = Field((), description='a program and its arguments, like ["uvx", "mcp-server-time"]')
    url: str | None = Field(None, description="of one that runs already, like http://host:8000/mcp")
    env: Words = Field((), description="names of environment variables that a command is given, such as keys")
    tools: Words = Field((), description="those of its tools that the model may call; none named: all")
