"""The table [environment]: tools, your own environment or your own agent, and the limits of an episode.

[environment]
tools = ["search", "calculator", "my_tools.py:weather"]
corpus = "passages.jsonl"
max_turns = 8

[environment.search]
passages = 5

[[environment.mcp]]
command = ["uvx", "mcp-server-time"]
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, Strict

from foresail.recipe.reward_function import file_of
from foresail.recipe.tables.part import Part
from foresail.recipe.tables.tools import McpServer, PythonTool, SearchTool, ToolOptions, read_tool_options
from foresail.user_code import split_name

BUILT_IN = ("calculator", "python", "search")
WORLDS = ("multi-hop",)
PROGRAM_KEYS = ("program", "columns", "max_turns", "step_seconds")  # that go with one
PROGRAM = re.compile(r"[^\s:][^:]*:[A-Za-z_]\w*")
OPENENV = "openenv:"  # and the address of a server
Names = Annotated[tuple[str, ...], Strict(False)]


class Environment(Part):
    """The environment: it answers the model's turns."""

    name: str | None = Field(
        None,
        description="instead of tools: multi-hop, your own environment (file.py:Class), or one of an OpenEnv "
        "server (openenv:http://host:8000)",
    )
    program: str | Names | None = Field(
        None,
        description="instead of tools and name: an agent with a loop of its own, file.py:function, or a command "
        "as a list",
    )
    columns: Names = Field(
        (),
        description="program: columns of a row that it gets besides the prompt, like repo or extra_info.index",
    )
    tools: Names = Field(
        (), description="calculator, python, search, or your own functions (file.py:function)"
    )
    tool_options: ToolOptions = Field(
        (), description="constructor arguments of tools that are your own classes, like Weather.unit=C"
    )
    format: Literal["hermes", "tags"] = Field(
        "hermes",
        description="syntax of tool calls. hermes: JSON in <tool_call>, as in the chat template; tags: "
        "<search>…</search>",
    )
    instructions: bool | None = Field(
        None,
        description="append the tools and how to call them to the system prompt; default: only if the chat "
        "template does not",
    )
    corpus: str | None = Field(
        None,
        description="corpus of the tool search: JSONL rows of title and text, or the address of a search server",
    )
    max_turns: int = Field(8, gt=0, description="model turns per episode, at most")
    step_seconds: float = Field(
        60.0,
        gt=0,
        description="time limit of a call, in seconds; a turn has ten times as long, then the episode fails",
    )
    max_result_chars: int = Field(
        4000, gt=0, description="characters of a tool's result; the rest is cut off"
    )
    search: SearchTool = SearchTool()
    python: PythonTool = PythonTool()
    mcp: tuple[McpServer, ...] = Field(
        (),
        strict=False,
        description="MCP servers whose tools the model may call as well, [[environment.mcp]]",
    )

    @property
    def at_server(self) -> bool:
        """Whether `corpus` is the address of a search server, not a file."""
        return self.corpus is not None and self.corpus.startswith(("http://", "https://"))

    @property
    def may_give_rewards(self) -> bool:
        """Whether the environment may give rewards; tools and built-in environments have a grader instead."""
        return self.name is not None and self.name not in WORLDS

    @property
    def tool_names(self) -> tuple[str, ...]:
        """("search", "my_tools.py:weather") -> ("search", "weather")."""
        return tuple(split_name(tool)[1] for tool in self.tools)

    @property
    def files(self) -> tuple[Path, ...]:
        """Files that the environment's answers depend on: code, files in commands, and the corpus."""
        program = (self.program,) if isinstance(self.program, str) else ()
        code = (file_of(name) for name in (self.name, *program, *self.tools) if name and ":" in name)
        commands = (() if program else self.program or (), *(server.command for server in self.mcp))
        words = (word for command in commands for word in command)
        others = (Path(place) for place in (*words, self.corpus) if place)
        return tuple(file for file in (*code, *others) if file is not None and file.is_file())

    def mistakes(self) -> Iterator[str]:
        if self.program is not None:
            yield from self.program_mistakes(self.program)
            return
        if self.columns:
            yield (
                "environment.columns is for environment.program, and an environment gets the whole row; remove it"
            )
        if (self.name is None) == (not self.tools and not self.mcp):
            yield (
                "[environment] names neither tools nor an environment of your own; set environment.tools "
                "or environment.name"
                if self.name is None
                else "environment.name has tools of its own; remove environment.tools and [[environment.mcp]]"
            )
        if self.name is not None and self.name.startswith("verifiers:"):
            yield (
                f"environment.name {self.name}: environments of verifiers have a loop of their own; use "
                "environment.program with the file in docs/agents-from-elsewhere.md"
            )
        if self.name is not None and self.name not in WORLDS and ":" not in self.name:
            yield f"environment.name {self.name} is none of {', '.join(WORLDS)}; your own is file.py:Class"
        for tool in self.tools:
            if tool not in BUILT_IN and ":" not in tool:
                yield f"environment.tools: {tool} is none of {', '.join(BUILT_IN)}; your own is file.py:function"
        if len(set(self.tool_names)) < len(self.tools):
            yield "environment.tools has two tools of one name; rename one of the functions"
        if ("search" in self.tools) != (self.corpus is not None):
            yield (
                "environment.corpus is for the tool search; "
                + ("set it" if self.corpus is None else 'add "search" to environment.tools, or remove it')
            )

        yield from self.option_mistakes()
        for number, server in enumerate(self.mcp, start=1):
            if bool(server.command) == bool(server.url):
                yield (
                    f"environment.mcp#{number} needs a command that starts the server, or its url; "
                    + ("set one of them" if server.url is None else "remove one of them")
                )

    def option_mistakes(self) -> Iterator[str]:
        """Options of tools that the environment does not have."""
        for tool, table in (("search", self.search), ("python", self.python)):
            if tool not in self.tools and table != type(table)():
                yield (
                    f'[environment.{tool}] is for a tool that environment.tools does not have; add "{tool}" '
                    "to environment.tools"
                )
        if self.search.model is not None and self.search.kind != "dense":
            yield 'environment.search.model is for dense search; set environment.search.kind = "dense"'
        if self.at_server and self.search.kind == "dense":
            yield (
                "environment.corpus is a search server, whose kind of search is set when it is started "
                "(--kind dense); remove environment.search.kind"
            )
        own = [split_name(tool)[1] for tool in self.tools if ":" in tool]
        for tool in read_tool_options(self.tool_options):
            if tool not in own:
                yield (
                    f"environment.tool_options: {tool} is not a class in environment.tools; "
                    + (f"there: {', '.join(own)}" if own else 'add it, like "my_tools.py:Weather"')
                )

    def program_mistakes(self, program: str | tuple[str, ...]) -> Iterator[str]:
        for key, field in type(self).model_fields.items():
            if key not in PROGRAM_KEYS and getattr(self, key) != field.default:
                yield f"environment.program has its own environment and tools; remove environment.{key}"
        if isinstance(program, str) and not PROGRAM.fullmatch(program):
            yield (
                f"environment.program {program} is not a function; write a function as file.py:function, "
                'and a command as a list: ["python", "agent.py"]'
            )
        if not all(self.columns):
            yield "environment.columns has a name that is empty; remove it"
        if not program or not all(program):
            yield 'environment.program has no command; name one: ["python", "agent.py"]'

    def refusals(self) -> Iterator[str]:
        if self.corpus is not None and not self.at_server and not Path(self.corpus).is_file():
            yield f"environment.corpus {self.corpus} does not exist (looked in {Path.cwd()}); check the path"
        function = self.program if isinstance(self.program, str) else None
        named = None if self.name is None or self.name.startswith(OPENENV) else self.name
        for key in filter(None, (named, function, *self.tools)):
            place, _ = split_name(key)
            if place.endswith(".py") and not Path(place).is_file():
                yield f"environment: the file {place} of {key} does not exist (looked in {Path.cwd()})"
