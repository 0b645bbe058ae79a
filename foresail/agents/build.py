"""From a recipe's [environment] to the episodes of its samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from foresail.agents.call_formats import CallFormat, Hermes, Tags
from foresail.agents.environment import Environment
from foresail.agents.environments import Environments
from foresail.agents.episodes import EpisodeStream
from foresail.agents.figures import EpisodeFigures
from foresail.agents.load_tool import load_tool
from foresail.agents.multi_hop import MultiHop
from foresail.agents.program_build import ProgramEpisodes, open_programs
from foresail.agents.tool import Tool
from foresail.agents.tool_environment import ToolEnvironment
from foresail.recipe.environment import Environment as Settings
from foresail.recipe.reward_function import is_file, split_name
from foresail.records import Message
from foresail.rewards.foreign_rewards import load_file, load_module
from foresail.rollout.stream import StreamKind
from foresail.tokenizer.tokenizer import Tokenizer

BUILT_IN: dict[str, type] = {"multi-hop": MultiHop}
PATIENCE = 10  # times the seconds of a single call, for all that happens between two turns
METHODS = ("reset", "step", "close")


@dataclass(frozen=True, kw_only=True)
class Episodes:
    """The environments of a run, and how their episodes are sampled."""

    environments: Environments
    max_turns: int
    tools: Sequence[Mapping[str, Any]] = ()  # what the chat template is told of: a JSON schema each
    stop: tuple[str, ...] = ()  # texts that end a turn

    @property
    def figures(self) -> EpisodeFigures:
        return self.environments.figures

    def stream(self, tokenizer: Tokenizer, max_length: int) -> StreamKind:
        if self.tools:
            check_tool_turns(tokenizer)
        return partial(
            EpisodeStream, environments=self.environments, tokenizer=tokenizer, max_turns=self.max_turns
        )


def check_tool_turns(tokenizer: Tokenizer) -> None:
    """Before the first episode rather than in every one: whether the template writes what tools say."""
    try:
        tokenizer.encode_next_turn((Message(role="tool", content="4"),), ended=True)
    except ValueError as error:
        raise ValueError(
            f"{error}; tools need a template that takes messages of the role tool (model.chat_template), or "
            'environment.format = "tags", whose results are plain text'
        ) from error


@contextmanager
def open_episodes(settings: Settings | None) -> Iterator[Episodes | ProgramEpisodes | None]:
    """None where problems are answered at once."""
    if settings is None:
        yield None
        return
    if settings.program is not None:
        seconds = PATIENCE * settings.step_seconds
        with open_programs(settings.program, max_turns=settings.max_turns, turn_seconds=seconds) as programs:
            yield programs
        return
    tools = [load_named(tool, settings) for tool in settings.tools]
    make = load_environment(settings.name) if settings.name else tool_world(tools, settings)
    environments = Environments(make, step_seconds=PATIENCE * settings.step_seconds)
    try:
        yield Episodes(
            environments=environments,
            max_turns=settings.max_turns,
            tools=[tool.schema() for tool in tools] if settings.format == "hermes" else (),
            stop=settings.stop,
        )
    finally:
        environments.close()


def load_named(name: str, settings: Settings) -> Tool:
    if name != "search":
        return load_tool(name)
    return load_tool(name, **{"url" if settings.at_server else "corpus": settings.corpus})


def tool_world(tools: Sequence[Tool], settings: Settings) -> Callable[[], Environment]:
    call_format: CallFormat = Hermes() if settings.format == "hermes" else Tags(tools)
    return partial(
        ToolEnvironment,
        tools,
        call_format,
        max_turns=settings.max_turns,
        tool_seconds=settings.step_seconds,
        max_result_chars=settings.max_result_chars,
    )


def load_environment(name: str) -> Callable[[], Environment]:
    """load_environment("my_world.py:Guess"), with an error that says what is not as it should be."""
    if name in BUILT_IN:
        return BUILT_IN[name]
    place, wanted = split_name(name)
    module = load_file(Path(place)) if is_file(place) else load_module(place)
    found = getattr(module, wanted, None)
    if not isinstance(found, type) or not all(hasattr(found, method) for method in METHODS):
        raise ValueError(
            f"environment.name {name}: there is no class {wanted} with the methods {', '.join(METHODS)} in {place}"
        )
    return found
