"""From a recipe's [environment] to the episodes of its samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from foresail.agents.environment import Environment
from foresail.agents.episodes import EpisodeStream
from foresail.agents.worlds import Worlds
from foresail.recipe.environment import Environment as Settings
from foresail.recipe.reward_function import is_file, split_name
from foresail.rewards.foreign_rewards import load_file, load_module
from foresail.rollout.stream import StreamKind
from foresail.tokenizer.tokenizer import Tokenizer


@dataclass(frozen=True, kw_only=True)
class Episodes:
    """The worlds of a run, and how their episodes are sampled."""

    worlds: Worlds
    max_turns: int
    tools: Sequence[Mapping[str, Any]] = ()  # what the chat template is told of: a JSON schema each
    stop: tuple[str, ...] = ()  # texts that end a turn

    def stream(self, tokenizer: Tokenizer) -> StreamKind:
        return partial(EpisodeStream, worlds=self.worlds, tokenizer=tokenizer, max_turns=self.max_turns)


@contextmanager
def open_episodes(settings: Settings | None) -> Iterator[Episodes | None]:
    """None where problems are answered at once."""
    if settings is None:
        yield None
        return
    assert settings.name is not None, "the recipe's check asks for an environment or tools"
    make: Callable[[], Environment] = load_class(settings.name)
    worlds = Worlds(make, step_seconds=settings.step_seconds)
    try:
        yield Episodes(worlds=worlds, max_turns=settings.max_turns, stop=settings.stop)
    finally:
        worlds.close()


def load_class(name: str) -> type:
    """load_class("my_world.py:Guess"), with an error that says what is not as it should be."""
    place, wanted = split_name(name)
    module = load_file(Path(place)) if is_file(place) else load_module(place)
    found = getattr(module, wanted, None)
    if not isinstance(found, type) or not all(
        hasattr(found, method) for method in ("reset", "step", "close")
    ):
        raise ValueError(
            f"environment.name {name}: there is no class {wanted} with the methods reset, step and close in {place}"
        )
    return found
