"""Makes environments from a recipe's [environment]: loads its tools and chooses their call format.

    with open_factory(settings) as factory:
        environment = factory.make()

What all episodes share, such as a connection to an MCP server or a search index, is opened once and closed with
the factory. Imports no torch: `foresail check` opens the same one before a model loads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

from foresail.agents.environment import Environment
from foresail.agents.multi_hop import MultiHop
from foresail.agents.openenv import open_env
from foresail.agents.opening import OpeningEnvironment, add_openings
from foresail.agents.tools.call_formats import CallFormat, Hermes, Tags
from foresail.agents.tools.load_tool import load_tool
from foresail.agents.tools.mcp_tools import McpServer
from foresail.agents.tools.tool import Tool
from foresail.agents.tools.tool_class import ToolClassEnvironment, may_speak, method_names, method_tools
from foresail.agents.tools.tool_environment import ToolEnvironment, check_names
from foresail.data.mixtures.reader import Reader
from foresail.recipe.tables.environment import OPENENV
from foresail.recipe.tables.environment import Environment as Settings
from foresail.recipe.tables.tools import read_tool_options
from foresail.records import Message
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.user_code import load_user_code, split_name

BUILT_IN: dict[str, type] = {"multi-hop": MultiHop}
TRIAL = Message(role="user", content="trial")
METHODS = ("reset", "step", "close")
TURN_CALLS = (
    4  # calls of full length, one after the other, in a turn; at ten the run counts the environment as broken
)


@dataclass(frozen=True, kw_only=True)
class EnvironmentFactory:
    """`make` returns the environment of a new episode."""

    make: Callable[[], Environment]
    tools: tuple[Tool, ...] = ()
    format: CallFormat | None = None  # of the tools
    opening: Callable[[], OpeningEnvironment] | None = (
        None  # of environments that write the end of the prompt
    )
    instructions: bool | None = None  # as in the recipe
    own_tools: tuple[Tool, ...] = ()  # that an environment calls itself
    own_format: CallFormat | None = None

    @property
    def called(self) -> tuple[Tool, ...]:
        """The tools that an episode's calls are of."""
        return self.tools or self.own_tools

    @property
    def called_format(self) -> CallFormat | None:
        return self.format or self.own_format

    @property
    def stop(self) -> tuple[str, ...]:
        """Texts that end a turn."""
        return () if self.format is None else self.format.stop

    def reader(self, tokenizer: Tokenizer) -> Reader:
        """Reads problems and describes the tools in the chat template or the system prompt."""
        openings = None if self.opening is None else partial(add_openings, self.opening)
        reading, instructions = self._tell(tokenizer)
        return Reader(reading, instructions=instructions, openings=openings)

    def _tell(self, tokenizer: Tokenizer) -> tuple[Tokenizer, str]:
        """The tokenizer whose template describes the tools, or their description for the system prompt."""
        if not self.tools or self.format is None:
            return tokenizer, ""
        if isinstance(self.format, Hermes):
            check_tool_turns(tokenizer)
        by_template = isinstance(self.format, Hermes) and not self.instructions
        with_tools = tokenizer.with_options({"tools": [tool.schema() for tool in self.tools]})
        if by_template and (self.instructions is False or writes_tools(tokenizer, with_tools)):
            return with_tools, ""
        if self.instructions is False:
            return tokenizer, ""
        check_system_prompt(tokenizer)
        return tokenizer, self.format.instructions(self.tools)


def check_tool_turns(tokenizer: Tokenizer) -> None:
    """Check before the first episode that the template writes the results of tools."""
    try:
        tokenizer.encode_next_turn((Message(role="tool", content="4"),), ended=True)
    except ValueError as error:
        raise ValueError(
            f"{error}; tools need a template that takes messages of the role tool (model.chat_template), or "
            'environment.format = "tags", whose results are plain text'
        ) from error


def check_system_prompt(tokenizer: Tokenizer) -> None:
    if tokenizer.chat is None:
        return  # the data's own prompts show it
    try:
        tokenizer.chat.render((Message(role="system", content="trial"), TRIAL), add_generation_prompt=True)
    except ValueError as error:
        raise ValueError(
            f"{error}; so the system prompt cannot tell of the tools: tell of them in the problems' own prompts, "
            "and set environment.instructions = false"
        ) from error


def writes_tools(tokenizer: Tokenizer, with_tools: Tokenizer) -> bool:
    """Whether the chat template describes the tools; many ignore them."""
    if tokenizer.chat is None or with_tools.chat is None:
        return False
    return tokenizer.chat.render([TRIAL], add_generation_prompt=True) != with_tools.chat.render(
        [TRIAL], add_generation_prompt=True
    )


@contextmanager
def open_factory(settings: Settings) -> Iterator[EnvironmentFactory]:
    """Raises ValueError for a tool or environment that cannot be loaded."""
    with ExitStack() as stack:
        if settings.name:
            yield named_factory(settings.name, settings)
            return
        tools = [load_named(name, settings) for name in settings.tools]
        for number, server in enumerate(settings.mcp, start=1):
            with naming(f"environment.mcp#{number}"):
                opened = McpServer(
                    command=server.command, url=server.url or "", only=server.tools, env=server.env
                )
                tools += stack.enter_context(opened).tools()
        yield tool_factory(tools, settings)


@contextmanager
def naming(key: str) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{key}: {error}") from None


def load_named(name: str, settings: Settings) -> Tool:
    """A tool with its options from the recipe."""
    with naming("environment.tools"):
        if name == "search":
            place = {"url" if settings.at_server else "corpus": settings.corpus}
            return load_tool(name, **place, **settings.search.model_dump(exclude_none=True))
        if name == "python":
            return load_tool(name, **settings.python.model_dump())
        return load_tool(name, **read_tool_options(settings.tool_options).get(split_name(name)[1], {}))


def tool_factory(tools: Sequence[Tool], settings: Settings) -> EnvironmentFactory:
    with naming("environment.tools"):
        check_names(tools)
        call_format = choose_format(tools, settings)
    make = partial(make_tool_environment, tools, call_format, settings)
    return EnvironmentFactory(
        make=make, tools=tuple(tools), format=call_format, instructions=settings.instructions
    )


def choose_format(tools: Sequence[Tool], settings: Settings) -> CallFormat:
    return Hermes() if settings.format == "hermes" else Tags(tools)


def make_tool_environment(
    tools: Sequence[Tool], call_format: CallFormat, settings: Settings
) -> ToolEnvironment:
    return ToolEnvironment(
        tools,
        call_format,
        max_turns=settings.max_turns,
        tool_seconds=settings.step_seconds,
        turn_seconds=TURN_CALLS * settings.step_seconds,
        max_result_chars=settings.max_result_chars,
    )


def named_factory(name: str, settings: Settings) -> EnvironmentFactory:
    if name.startswith(OPENENV):
        make = open_env(name.removeprefix(OPENENV), max_result_chars=settings.max_result_chars)
        return EnvironmentFactory(make=make, opening=make)
    kind = load_environment(name)
    if not is_tool_class(kind):
        own = tuple(getattr(kind, "tools", tuple)())
        return EnvironmentFactory(make=kind, own_tools=own, own_format=Tags(own) if own else None)
    with naming(f"environment.name {name}"):
        tools = method_tools(kind)
        call_format = choose_format(tools, settings)
    made = partial(
        ToolClassEnvironment,
        kind,
        tools,
        lambda bound: make_tool_environment(bound, call_format, settings),
    )
    return EnvironmentFactory(
        make=made,
        opening=made if may_speak(kind) else None,
        tools=tuple(tools),
        format=call_format,
        instructions=settings.instructions,
    )


def is_tool_class(kind: type) -> bool:
    """Whether its methods are tools (`tool_class`): it has a reset and no step."""
    return hasattr(kind, "reset") and not hasattr(kind, "step")


def load_environment(name: str) -> type:
    """load_environment("my_world.py:Guess"); the error says what the class lacks."""
    if name in BUILT_IN:
        return BUILT_IN[name]
    place, attribute = split_name(name)
    kind = load_user_code(name)
    if isinstance(kind, type) and is_tool_class(kind) and method_names(kind):
        return kind
    if not isinstance(kind, type) or not all(hasattr(kind, method) for method in METHODS):
        raise ValueError(
            f"environment.name {name}: there is no class {attribute} with the methods {', '.join(METHODS)} in "
            f"{place}, nor one with reset and methods that are tools"
        )
    return kind
