"""An engine as the scheduler sees it: chunks go in, tokens come out, wherever it runs.

Backends: `native` (an engine in this process), `vllm/` (vLLM), either of them elsewhere behind `remote`
(`remote/`), and simulated ones (simulate/). A new backend is one class
with these methods that says in its `capabilities` what it can do.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Literal, Protocol

from foresail.engine.request import Completion, Parked, Request
from foresail.records import RunStopped
from foresail.rollout.plan import ChunkEnded, Dispatch, InstanceState, SampleSpec

Work = Request | Parked  # to begin with, or to go on with


@dataclass(frozen=True, kw_only=True)
class Capabilities:
    """What a backend can do. What it cannot is refused or worked around by name: see `requirements.py`."""

    keyed_noise: (
        bool  # a token's noise follows from its request's key and its position, so it can be repeated
    )
    parking: bool  # a request can stop after a chunk and go on from there, here or elsewhere
    drafts: bool  # it checks drafts that are copied from siblings
    memory_lending: bool  # its cache has memory only inside `at_work`; else it keeps it all the time
    logprobs: bool  # it tells the log-probability of every token; else they are 0
    forcing: bool = False  # it puts tokens in where a thinking budget is used up
    partial_output: bool = False  # it reports new tokens while a chunk runs; else they come as chunks end


@dataclass(frozen=True, kw_only=True)
class ChunkOrder:
    """A chunk to run: the request when it starts, or what was parked of it by its last chunk.

    With `stream` its new tokens are reported while it runs, where the backend can.
    """

    dispatch: Dispatch
    work: Work
    stream: bool = False


@dataclass(frozen=True, kw_only=True)
class NewTokens:
    """Tokens of a request's response, the first of them at place `start`, and their log-probabilities."""

    request_id: str
    start: int
    ids: Sequence[int]
    logprobs: Sequence[float]

    def after(self, count: int) -> NewTokens:
        """Without those of the response's first `count` tokens."""
        skipped = max(0, count - self.start)
        return NewTokens(
            request_id=self.request_id,
            start=self.start + skipped,
            ids=self.ids[skipped:],
            logprobs=self.logprobs[skipped:],
        )


@dataclass(frozen=True, kw_only=True)
class Report:
    """A chunk that ended, for the scheduler, and what was generated so far, for the next chunk or the grader.

    A request that is not finished rests where it ran, until the next poll or order, or was parked: then
    `parked` has its keys and values.
    """

    event: ChunkEnded
    completion: Completion
    state: Literal["finished", "resting", "parked"]
    parked: Parked | None = None

    @property
    def request_id(self) -> str:
        return self.event.spec.id

    def __post_init__(self) -> None:
        assert (self.state == "finished") == self.event.finished, f"{self.event} is not {self.state}"
        assert (self.state == "parked") == (self.parked is not None), f"{self.event}: {self.state}"


class InstanceLost(RunStopped):
    """An instance is gone; what it ran must run elsewhere."""

    def __init__(self, name: str, why: str = "its process ended") -> None:
        super().__init__(f"instance {name} is gone: {why}")
        self.name, self.why = name, why


class NoAnswer(InstanceLost):
    """An instance does not answer: as good as gone."""


class EngineFailed(RunStopped):
    """An error ended an engine elsewhere; `trace` is what it left."""

    def __init__(self, name: str, trace: str) -> None:
        trace = trace.rstrip()
        super().__init__(
            f"the engine of instance {name} failed:{chr(10) if chr(10) in trace else ' '}{trace}"
        )


class Instance(Protocol):
    """submit, cancel, poll; `update_weights` between steps. Each may find that it is gone: `InstanceLost`."""

    works_by_itself: bool  # else polling is what makes it work, and nobody should sleep while it has a load

    @property
    def state(self) -> InstanceState:
        """Its name and its capacity."""

    @property
    def capabilities(self) -> Capabilities: ...

    @property
    def cache_bytes(self) -> int:
        """Of the device's memory, beside what PyTorch allocates, while it is at work."""

    @property
    def load(self) -> int:
        """How many chunks it has, running or queued."""

    def submit(self, order: ChunkOrder) -> None: ...

    def cancel(self, request_id: str) -> None:
        """Forget a chunk; what it generated is of no use to anybody. Fine if it has just ended."""

    def poll(self) -> Sequence[Report | NewTokens]:
        """What ended since the last call, and new tokens of chunks that stream.

        An engine in this process works here; others work by themselves.
        """

    def park(self, request_id: str) -> Parked | None:
        """Take out a request that rests here, or runs. None where that cannot be done, or it is gone."""

    def learn(self, spec: SampleSpec, ids: Sequence[int]) -> None:
        """All behind a request's prompt so far, elsewhere: text that its siblings here may be about to say."""

    def generate(self, requests: Sequence[Request]) -> Sequence[Completion]:
        """All of them to their end, by plain steps, while nothing else runs: for checks and single answers."""

    def at_work(self) -> AbstractContextManager[None]:
        """Its cache has its memory inside; afterwards the trainer has it, where it can be lent."""

    def take_figures(self) -> dict[str, float]:
        """Metrics of its work since the last call."""

    def update_weights(self, version: int) -> None:
        """All chunks under way have ended or been cancelled; the weights are those of this version from now on."""

    def close(self) -> None: ...
