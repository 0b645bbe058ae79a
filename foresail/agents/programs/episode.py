"""The state of a running program's episode: its conversation, open requests and times."""

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
    """Event: a request that waits for its reply."""

    episode: str
    request: ChatRequest
    reply: Future[Reply]


class ProgramFinished(NamedTuple):
    """Event: a program has ended by itself."""

    episode: str
    outcome: ProgramOutcome


@dataclass(kw_only=True, eq=False)
class ProgramEpisode:
    """One running sample: its program and its conversation."""

    spec: SampleSpec
    request: Request  # of the problem's own prompt: noise, sampling, stop ids
    entry: PromptedProblem
    conversation: Conversation
    key: str
    job: ProgramJob
    began: float  # by the event log's clock
    num_waiting: int = 0  # requests in the engines
    replied: float = 0.0  # `time.monotonic` of the last reply
    idle: float = 0.0  # seconds without a request, in total
    cut: bool = False  # the last request was refused for lack of room
    outcome: ProgramOutcome | None = None

    @property
    def since(self) -> float:
        """Since when the program has had no open request; infinity before it starts."""
        return float("inf") if self.job.since is None else max(self.replied, self.job.since)

    def rest(self) -> None:
        """Add the time since the last reply to `idle`."""
        self.idle += max(0.0, time.monotonic() - self.since)


class Waiting(NamedTuple):
    """The episode, turn and reply of a request in the fleet."""

    episode: ProgramEpisode
    turn: ChatTurn
    reply: Future[Reply]


def sampling_of(turn: ChatTurn, sampling: Sampling) -> Sampling:
    """The recipe's sampling within the tokens left; a request may ask for fewer, and for stop texts."""
    left = turn.left if turn.asked.max_tokens is None else min(turn.left, turn.asked.max_tokens)
    stop = (*sampling.stop, *turn.asked.stop)
    return sampling.model_copy(update={"max_new_tokens": left, "stop": stop})


def settle(reply: Future[Reply], answer: Reply | None = None, error: Refusal | None = None) -> None:
    with suppress(InvalidStateError):  # the episode is over, and the reply already has its error
        if error is not None:
            reply.set_exception(error)
        elif answer is not None:
            reply.set_result(answer)
