"""From a recipe's [environment] to the episodes of its samples."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from foresail.agents.environments import Environments
from foresail.agents.episodes import EpisodeStream
from foresail.agents.factory import EnvironmentFactory, open_factory
from foresail.agents.figures import EpisodeFigures
from foresail.agents.programs.build import ProgramEpisodes, open_programs
from foresail.data.mixtures.reader import Reader
from foresail.recipe.tables.environment import Environment as Settings
from foresail.recipe.tables.parts import Sampling
from foresail.rollout.stream import StreamKind
from foresail.tokenizer.tokenizer import Tokenizer

PATIENCE = 10  # times the seconds of a single call, for all that happens between two turns


@dataclass(frozen=True, kw_only=True)
class Episodes:
    """The environments of a run, and how their episodes are sampled."""

    factory: EnvironmentFactory
    environments: Environments
    max_turns: int
    names_stops: bool = False  # beside `stop`, in the middle of an episode

    @property
    def stop(self) -> tuple[str, ...]:
        """Texts that end a turn."""
        return self.factory.stop

    def reader(self, tokenizer: Tokenizer) -> Reader:
        """Of problems whose prompts tell of the tools."""
        return self.factory.reader(tokenizer)

    @property
    def figures(self) -> EpisodeFigures:
        return self.environments.figures

    def stream(self, tokenizer: Tokenizer, max_length: int) -> StreamKind:
        return partial(
            EpisodeStream, environments=self.environments, tokenizer=tokenizer, max_turns=self.max_turns
        )


def turn_sampling(sampling: Sampling, episodes: Episodes | ProgramEpisodes | None) -> Sampling:
    """How a turn is sampled: it also ends where a tool is called."""
    calls = () if episodes is None else episodes.stop
    return sampling.model_copy(update={"stop": (*sampling.stop, *calls)})


@contextmanager
def open_episodes(settings: Settings | None) -> Iterator[Episodes | ProgramEpisodes | None]:
    """None where problems are answered at once."""
    if settings is None:
        yield None
        return
    if settings.program is not None:
        seconds = PATIENCE * settings.step_seconds
        with open_programs(
            settings.program,
            max_turns=settings.max_turns,
            turn_seconds=seconds,
            columns=settings.columns,
        ) as programs:
            yield programs
        return
    with open_factory(settings) as factory:
        environments = Environments(factory.make, step_seconds=PATIENCE * settings.step_seconds)
        try:
            yield Episodes(factory=factory, environments=environments, max_turns=settings.max_turns)
        finally:
            environments.close()
