"""The world of an agent in a recipe: tools, or an environment of one's own, and the limits of an episode.

[environment]
tools = ["search", "calculator", "my_tools.py:weather"]
corpus = "passages.jsonl"
max_turns = 8
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, Strict

from foresail.recipe.parts import Part
from foresail.recipe.reward_function import split_name

BUILT_IN = ("calculator", "python", "search")
WORLDS = ("multi-hop",)
PROGRAM = re.compile(r"[^\s:][^:]*:[A-Za-z_]\w*")
Names = Annotated[tuple[str, ...], Strict(False)]


class Environment(Part):
    """What answers the model's turns."""

    name: str | None = Field(
        None, description="multi-hop, or an environment of one's own, file.py:Class, in the place of tools"
    )
    program: str | Names | None = Field(
        None,
        description="an agent that owns its loop, in the place of both: file.py:function, or a command as a list",
    )
    tools: Names = Field(
        (), description="calculator, python, search, or functions of one's own, file.py:function"
    )
    format: Literal["hermes", "tags"] = Field(
        "hermes",
        description="how tools are called: JSON in <tool_call>, as the template says; or <search>…</search>",
    )
    corpus: str | None = Field(
        None,
        description="what search looks through: JSONL rows of title and text, or the address of a search server",
    )
    max_turns: int = Field(8, gt=0, description="times the model may write in an episode")
    step_seconds: float = Field(
        60.0,
        gt=0,
        description="longest a call may take; ten times that for a turn, then the episode has failed",
    )
    max_result_chars: int = Field(4000, gt=0, description="of a tool's result; the rest is cut off")

    @property
    def at_server(self) -> bool:
        """Whether `corpus` is the address of a search server, not a file."""
        return self.corpus is not None and self.corpus.startswith(("http://", "https://"))

    @property
    def tool_names(self) -> tuple[str, ...]:
        """("search", "my_tools.py:weather") -> ("search", "weather")."""
        return tuple(split_name(tool)[1] for tool in self.tools)

    @property
    def stop(self) -> tuple[str, ...]:
        """Texts that end a turn: the closing tags, where calls are tags."""
        return tuple(f"</{tool}>" for tool in self.tool_names) if self.format == "tags" else ()

    def mistakes(self) -> Iterator[str]:
        if self.program is not None:
            yield from self.program_mistakes(self.program)
            return
        if (self.name is None) == (not self.tools):
            yield (
                "[environment] names neither tools nor an environment of one's own; set environment.tools or "
                "environment.name"
                if self.name is None
                else "environment.name is an environment that has its own tools; remove environment.tools"
            )
        if self.name is not None and self.name not in WORLDS and ":" not in self.name:
            yield f"environment.name {self.name} is none of {', '.join(WORLDS)}; one's own is file.py:Class"
        for tool in self.tools:
            if tool not in BUILT_IN and ":" not in tool:
                yield f"environment.tools: {tool} is none of {', '.join(BUILT_IN)}; one's own is file.py:function"
        if len(set(self.tool_names)) < len(self.tools):
            yield "environment.tools has two tools of one name; rename one of the functions"
        if ("search" in self.tools) != (self.corpus is not None):
            yield (
                "environment.corpus is what the tool search looks through; "
                + ("set it" if self.corpus is None else 'add "search" to environment.tools, or remove it')
            )

    def program_mistakes(self, program: str | tuple[str, ...]) -> Iterator[str]:
        for key in ("name", "tools", "corpus", "format", "max_result_chars"):
            if getattr(self, key) != type(self).model_fields[key].default:
                yield f"environment.program brings its own world and tools; remove environment.{key}"
        if isinstance(program, str) and not PROGRAM.fullmatch(program):
            yield (
                f"environment.program {program} is no function; one is file.py:function, and a command is a list: "
                '["python", "agent.py"]'
            )
        if not program or not all(program):
            yield 'environment.program has no command; name one: ["python", "agent.py"]'

    def refusals(self) -> Iterator[str]:
        if self.corpus is not None and not self.at_server and not Path(self.corpus).is_file():
            yield f"environment.corpus {self.corpus} does not exist (looked in {Path.cwd()}); check the path"
        function = self.program if isinstance(self.program, str) else None
        for key in filter(None, (self.name, function, *self.tools)):
            place, _ = split_name(key)
            if place.endswith(".py") and not Path(place).is_file():
                yield f"environment: the file {place} of {key} does not exist (looked in {Path.cwd()})"
