"""Opens the programs that a recipe's environment.program names, and their endpoint."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from foresail.agents.figures import EpisodeFigures
from foresail.agents.programs.endpoint import Endpoint
from foresail.agents.programs.episodes import ProgramStream
from foresail.agents.programs.program import Programs, load_program
from foresail.data.mixtures.reader import Reader
from foresail.rollout.stream import StreamKind
from foresail.tokenizer.tokenizer import Tokenizer


@dataclass(frozen=True, kw_only=True)
class ProgramEpisodes:
    """The programs of a run, their endpoint, and the stream that samples their episodes."""

    programs: Programs
    endpoint: Endpoint
    max_turns: int
    turn_seconds: float
    columns: tuple[str, ...] = ()
    figures: EpisodeFigures = field(default_factory=EpisodeFigures)
    stop_sets: set[tuple[str, ...]] = field(default_factory=set)
    stop: tuple[()] = ()
    names_stops: bool = True  # any request may add stop texts

    def reader(self, tokenizer: Tokenizer) -> Reader:
        """Adds no tools to prompts: programs bring their own."""
        return Reader(tokenizer)

    def stream(self, tokenizer: Tokenizer, max_length: int) -> StreamKind:
        return partial(
            ProgramStream,
            programs=self.programs,
            endpoint=self.endpoint,
            figures=self.figures,
            stop_sets=self.stop_sets,
            tokenizer=tokenizer,
            max_turns=self.max_turns,
            max_length=max_length,
            turn_seconds=self.turn_seconds,
            columns=self.columns,
        )


@contextmanager
def open_programs(
    program: str | Sequence[str], *, max_turns: int, turn_seconds: float, columns: Sequence[str] = ()
) -> Iterator[ProgramEpisodes]:
    """Serve the endpoint, and let programs be started, inside the block."""
    programs = Programs(load_program(program))
    endpoint = Endpoint()
    try:
        yield ProgramEpisodes(
            programs=programs,
            endpoint=endpoint,
            max_turns=max_turns,
            turn_seconds=turn_seconds,
            columns=tuple(columns),
        )
    finally:
        endpoint.close()
        programs.close()
