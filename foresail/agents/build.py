"""From a recipe's [environment] to the episodes of its samples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from foresail.agents.environments import Environments
from foresail.agents.episodes import EpisodeStream
from foresail.agents.world import open_world
from foresail.recipe.environment import Environment as Settings
from foresail.recipe.parts import Sampling
from foresail.records import Message
from foresail.rollout.stream import StreamKind
from foresail.tokenizer.tokenizer import Tokenizer

PATIENCE = 10  # times the seconds of a single call, for all that happens between two turns


@dataclass(frozen=True, kw_only=True)
class Episodes:
    """The environments of a run, and how their episodes are sampled."""

    environments: Environments
    max_turns: int
    tools: Sequence[Mapping[str, Any]] = ()  # what the chat template is told of: a JSON schema each
    stop: tuple[str, ...] = ()  # texts that end a turn

    def stream(self, tokenizer: Tokenizer) -> StreamKind:
        if self.tools:
            check_tool_turns(tokenizer)
        return partial(
            EpisodeStream, environments=self.environments, tokenizer=tokenizer, max_turns=self.max_turns
        )


def turn_sampling(sampling: Sampling, episodes: Episodes | None) -> Sampling:
    """How a turn is drawn: it also ends where a tool is called."""
    calls = () if episodes is None else episodes.stop
    return sampling.model_copy(update={"stop": (*sampling.stop, *calls)})


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
def open_episodes(settings: Settings | None) -> Iterator[Episodes | None]:
    """None where problems are answered at once."""
    if settings is None:
        yield None
        return
    with open_world(settings) as world:
        environments = Environments(world.make, step_seconds=PATIENCE * settings.step_seconds)
        try:
            yield Episodes(
                environments=environments,
                max_turns=settings.max_turns,
                tools=[tool.schema() for tool in world.tools] if settings.format == "hermes" else (),
                stop=world.stop,
            )
        finally:
            environments.close()
