"""From a recipe's [environment] to the worlds of its episodes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from foresail.agents.worlds import Worlds
from foresail.recipe.environment import Environment as Settings
from foresail.recipe.reward_function import is_file, split_name
from foresail.rewards.foreign_rewards import load_file, load_module


@contextmanager
def open_worlds(settings: Settings | None) -> Iterator[Worlds | None]:
    """None where problems are answered at once."""
    if settings is None:
        yield None
        return
    assert settings.name is not None, "the recipe's check asks for an environment or tools"
    worlds = Worlds(make=load_class(settings.name), step_seconds=settings.step_seconds)
    try:
        yield worlds
    finally:
        worlds.close()


def load_class(name: str) -> type:
    """load_class("my_world.py:Guess"), with an error that says what is not as it should be."""
    place, wanted = split_name(name)
    module = load_file(Path(place)) if is_file(place) else load_module(place)
    found = getattr(module, wanted, None)
    if not isinstance(found, type) or not all(hasattr(found, method) for method in ("reset", "step")):
        raise ValueError(
            f"environment.name {name}: there is no class {wanted} with the methods reset and step in {place}"
        )
    return found
