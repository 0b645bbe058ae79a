"""Opens the environments or programs that a recipe's [environment] names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from foresail.agents.environments import Environments
from foresail.agents.episodes import EpisodeStream, forget
from foresail.agents.factory import EnvironmentFactory, open_factory
from foresail.agents.figures import EpisodeFigures
from foresail.agents.programs.build import ProgramEpisodes, open_programs
from foresail.agents.transcripts import Transcripts
from foresail.data.mixtures.reader import Reader
from foresail.recipe.tables.environment import Environment as Settings
from foresail.recipe.tables.parts import Sampling
from foresail.rollout.stream import StreamKind
from foresail.tokenizer.tokenizer import Tokenizer

PATIENCE = 10  # limit of all work between two turns, as a multiple of one call's limit


@dataclass(frozen=True, kw_only=True)
class Episodes:
    """The environments of a run: stop texts, prompts, metrics and the stream that samples episodes.

    `transcripts`, where somebody wants them, get what the environments say.
    """

    factory: EnvironmentFactory
    environments: Environments
    max_turns: int
    transcripts: Transcripts | None = None
    names_stops: bool = False  # whether a request may add stop texts to `stop`

    @property
    def stop(self) -> tuple[str, ...]:
        """Texts that end a turn."""
        return self.factory.stop

    def reader(self, tokenizer: Tokenizer) -> Reader:
        """Reads problems and adds the tools to their prompts."""
        return self.factory.reader(tokenizer)

    @property
    def instructions(self) -> str:
        """The description of the tools that a system prompt may have."""
        factory = self.factory
        return factory.format.instructions(factory.tools) if factory.format is not None else ""

    @property
    def figures(self) -> EpisodeFigures:
        return self.environments.figures

    def stream(self, tokenizer: Tokenizer, max_length: int) -> StreamKind:
        return partial(
            EpisodeStream,
            environments=self.environments,
            tokenizer=tokenizer,
            max_turns=self.max_turns,
            note=forget if self.transcripts is None else self.transcripts.note,
        )

    def with_transcripts(self) -> Episodes:
        return replace(self, transcripts=Transcripts(self.factory.called, self.factory.called_format))


def turn_sampling(sampling: Sampling, episodes: Episodes | ProgramEpisodes | None) -> Sampling:
    """The sampling of one turn, which also ends at a tool call."""
    calls = () if episodes is None else episodes.stop
    return sampling.model_copy(update={"stop": (*sampling.stop, *calls)})


@contextmanager
def open_episodes(settings: Settings | None) -> Iterator[Episodes | ProgramEpisodes | None]:
    """None for a recipe without an environment."""
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


@contextmanager
def open_played(settings: Settings | None) -> Iterator[Episodes | None]:
    """Environments that keep transcripts of their episodes."""
    if settings is not None and settings.program is not None:
        raise ValueError(
            "environment.program: the episodes of programs are not written as conversations yet; use tools or name"
        )
    with open_episodes(settings) as episodes:
        assert not isinstance(episodes, ProgramEpisodes)
        yield None if episodes is None else episodes.with_transcripts()
