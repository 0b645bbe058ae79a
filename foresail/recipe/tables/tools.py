"""Tables of an environment's tools: built-in tools have a table each, MCP servers are listed.

[environment.search]
passages = 5

[[environment.mcp]]
command = ["uvx", "mcp-server-time"]
tools = ["get_current_time"]
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, Strict

from foresail.recipe.tables.part import Part
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

    passages: int = Field(3, ge=1, le=20, description="search: passages per result")
    kind: Literal["bm25", "dense"] = Field("bm25", description="search: bm25: by words; dense: by meaning")
    model: str | None = Field(
        None,
        description="search, dense: folder of a sentence embedding model; default: all-MiniLM-L6-v2, installed as "
        "a package",
    )


class PythonTool(Part):
    """The tool python."""

    packages: Words = Field(
        (), description="python: packages that code may import besides the standard library"
    )
    seconds: float = Field(5.0, gt=0, description="python: CPU seconds per call")
    session_seconds: float = Field(60.0, gt=0, description="python: CPU seconds per episode")
    memory_mb: int = Field(512, gt=0, description="python: memory per episode, in MB")
    sessions: int = Field(
        64, gt=0, description="python: episodes that may use Python at the same time; others wait"
    )


class McpServer(Part):
    """An MCP server, started by the run or reached over HTTP; all episodes share it."""

    command: Texts = Field(
        (),
        description='command that starts the server: a program and its arguments, like ["uvx", "mcp-server-time"]',
    )
    url: str | None = Field(None, description="address of a running server, like http://host:8000/mcp")
    env: Words = Field(
        (), description="names of environment variables passed to the command, such as API keys"
    )
    tools: Words = Field((), description="tools of the server that the model may call; empty: all")
