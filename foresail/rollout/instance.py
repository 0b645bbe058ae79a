"""The interface of engines to the scheduler: chunks go in, tokens come out.

Backends: `native` (an engine in this process), `vllm/`, either of them in another process (`remote/`), and
simulated ones (`simulate/`). A new backend is one class with these methods that states its `capabilities`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Literal, Protocol

from foresail.engine.request import Completion, Parked, Request
from foresail.records import RunStopped
from foresail.rollout.plan import ChunkEnded, Dispatch, InstanceState, SampleSpec

Work = Request | Parked  # a new request, or one to continue


@dataclass(frozen=True, kw_only=True)
class Capabilities:
    """What a backend can do; for what it cannot see `requirements.py`."""

    keyed_noise: bool  # noise depends on the request's key and the position only, so samples can be repeated
    parking: bool  # a request can stop after a chunk and continue on any instance
    drafts: bool  # it checks drafts from siblings' texts
    memory_lending: bool  # its cache has memory only inside `at_work`; else always
    logprobs: bool  # it returns the log-probability of every token; else 0
    forcing: bool = False  # it inserts the closing tokens at a thinking budget
    partial_output: bool = False  # it reports new tokens while a chunk runs; else at its end


@dataclass(frozen=True, kw_only=True)
class ChunkOrder:
    """A chunk to run: a new request, or one that was parked after its last chunk.

    With `stream` its new tokens are reported while it runs, if the backend can.
    """

    dispatch: Dispatch
    work: Work
    stream: bool = False


@dataclass(frozen=True, kw_only=True)
class NewTokens:
    """Tokens of a response from position `start` on, and their log-probabilities."""

    request_id: str
    start: int
    ids: Sequence[int]
    logprobs: Sequence[float]

    def after(self, count: int) -> NewTokens:
        """The tokens after the response's first `count`."""
        skipped = max(0, count - self.start)
        return NewTokens(
            request_id=self.request_id,
            start=self.start + skipped,
            ids=self.ids[skipped:],
            logprobs=self.logprobs[skipped:],
        )


@dataclass(frozen=True, kw_only=True)
class Report:
    """The end of a chunk, with the tokens so far.

    An unfinished request rests on its instance until the next poll or order, or was parked: then `parked` has its
    keys and values.
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
    """An instance was lost; its requests must run elsewhere."""

    def __init__(self, name: str, why: str = "its process ended") -> None:
        super().__init__(f"instance {name} is gone: {why}")
        self.name, self.why = name, why


class NoAnswer(InstanceLost):
    """An instance does not answer, and counts as lost."""


class EngineFailed(RunStopped):
    """An error ended an engine in another process; `trace` is its traceback."""

    def __init__(self, name: str, trace: str) -> None:
        trace = trace.rstrip()
        super().__init__(
            f"the engine of instance {name} failed:{chr(10) if chr(10) in trace else ' '}{trace}"
        )


class Instance(Protocol):
    """submit, cancel, poll; `update_weights` between steps. Each may raise `InstanceLost`."""

    works_by_itself: bool  # else it works only inside `poll`: never sleep while it has a load

    @property
    def state(self) -> InstanceState:
        """Its name and its capacity."""

    @property
    def capabilities(self) -> Capabilities: ...

    @property
    def cache_bytes(self) -> int:
        """Device memory that the cache holds inside `at_work`, besides PyTorch's own."""

    @property
    def load(self) -> int:
        """Number of chunks, running or queued."""

    def submit(self, order: ChunkOrder) -> None: ...

    def cancel(self, request_id: str) -> None:
        """Drop a chunk and its tokens; allowed if it has just ended."""

    def poll(self) -> Sequence[Report | NewTokens]:
        """Chunks that ended since the last call, and new tokens of chunks with `stream`.

        An engine in this process takes a step here; others work by themselves.
        """

    def park(self, request_id: str) -> Parked | None:
        """Take out a resting or running request; None if that is impossible or it has ended."""

    def learn(self, spec: SampleSpec, ids: Sequence[int]) -> None:
        """Learn the response so far of a request that runs elsewhere, to draft for its siblings here."""

    def generate(self, requests: Sequence[Request]) -> Sequence[Completion]:
        """Generate all requests by plain steps while nothing else runs: for checks and single answers."""

    def at_work(self) -> AbstractContextManager[None]:
        """The cache has its memory inside the block; afterwards it is lent to the trainer if possible."""

    def take_figures(self) -> dict[str, float]:
        """Metrics of its work since the last call."""

    def update_weights(self, version: int) -> None:
        """Use the weights of this version; no chunk may be running."""

    def close(self) -> None: ...
