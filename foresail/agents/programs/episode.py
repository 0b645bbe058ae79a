"""One episode of a program on its way: what it asked and got, who waits for what, and the news of it."""

from __future__ import annotations

import time
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from foresail.agents.programs.chat_request import ChatRequest
from foresail.agents.programs.conversation import ChatTurn, Conversation
from foresail.agents.programs.outcome import ProgramOutcome
from foresail.agents.programs.program import ProgramJob
from foresail.chat.errors import Refusal
from foresail.chat.reply import Reply
from foresail.data.problems.prompts import PromptedProblem
from foresail.engine.request import Request
from foresail.recipe.tables.parts import Sampling
from foresail.rollout.plan import SampleSpec


class Asked(NamedTuple):
    """News: a request that waits for its reply."""

    episode: str
    request: ChatRequest
    reply: Future[Reply]


class ProgramFinished(NamedTuple):
    """News: a program has ended by itself."""

    episode: str
    outcome: ProgramOutcome


@dataclass(kw_only=True, eq=False)
class ProgramEpisode:
    """One sample under way: its program, and all that this asked and got."""

    spec: SampleSpec
    request: Request  # as its problem would be asked: noise, sampling, stop ids
    entry: PromptedProblem
    conversation: Conversation
    key: str
    job: ProgramJob
    began: float  # by the event log's clock
    num_waiting: int = 0  # requests that the engines have
    replied: float = 0.0  # when it last had an answer, by the clock `time.monotonic`
    idle: float = 0.0  # seconds without a request, in all
    cut: bool = False  # the last request was refused for lack of room
    outcome: ProgramOutcome | None = None

    @property
    def since(self) -> float:
        """From when on the program does something of its own; never, before it is started."""
        return float("inf") if self.job.since is None else max(self.replied, self.job.since)

    def rest(self) -> None:
        """The program's own time is over, for a while or for good."""
        self.idle += max(0.0, time.monotonic() - self.since)


class Waiting(NamedTuple):
    """Whose request the fleet has."""

    episode: ProgramEpisode
    turn: ChatTurn
    reply: Future[Reply]


def sampling_of(turn: ChatTurn, sampling: Sampling) -> Sampling:
    """The recipe's, within what is left of the room; a request may ask for less, and for stop texts."""
    left = turn.left if turn.asked.max_tokens is None else min(turn.left, turn.asked.max_tokens)
    stop = (*sampling.stop, *turn.asked.stop)
    return sampling.model_copy(update={"max_new_tokens": left, "stop": stop})


def settle(reply: Future[Reply], answer: Reply | None = None, error: Refusal | None = None) -> None:
    with suppress(InvalidStateError):  # the episode is over, and whoever waited was told
        if error is not None:
            reply.set_exception(error)
        elif answer is not None:
            reply.set_result(answer)
