"""An engine as the scheduler sees it: chunks go in, tokens come out, and nobody asks where it runs.

Backends: `native` (an engine in this process), `worker` (an engine in a process of its own), `simulated`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from foresail.engine.request import Completion, Parked, Request
from foresail.rollout.plan import Ask, ChunkEnded, Dispatch, InstanceState

Work = Request | Parked  # to begin with, or to go on with


@dataclass(frozen=True, kw_only=True)
class Order:
    """A chunk to run: the request when it starts, or what was parked of it by its last chunk."""

    dispatch: Dispatch
    work: Work


@dataclass(frozen=True, kw_only=True)
class Report:
    """A chunk that ended, for the scheduler, and what was drawn so far, for the next chunk or the grader.

    Of a request that is not finished, its keys and values come too, or none: then it rests where it ran.
    """

    event: ChunkEnded
    completion: Completion
    parked: Parked | None = None


class InstanceLost(Exception):
    """An instance is gone; what it ran must run elsewhere."""

    def __init__(self, name: str) -> None:
        super().__init__(f"instance {name} is gone: its process ended")
        self.name = name


class Instance(Protocol):
    """submit, cancel, poll; `update_weights` between steps. Each may find that it is gone: `InstanceLost`."""

    works_by_itself: bool  # else polling is what makes it work, and nobody should sleep while it has a load

    @property
    def state(self) -> InstanceState:
        """Its name and its room."""

    @property
    def load(self) -> int:
        """How many chunks it has, running or queued."""

    def submit(self, order: Order) -> None: ...

    def cancel(self, ask_id: str) -> None:
        """Forget a chunk; what it drew is of no use to anybody. Fine if it has just ended."""

    def poll(self) -> list[Report]:
        """What ended since the last call. An engine in this process works here; others work by themselves."""

    def park(self, ask_id: str) -> Parked | None:
        """Take out a request that rests here, or runs. None where that cannot be done, or it is gone."""

    def learn(self, ask: Ask, ids: Sequence[int]) -> None:
        """What a request has drawn so far, elsewhere: text that its siblings here may be about to say."""

    def take_figures(self) -> dict[str, float]:
        """Metrics of its work since the last call."""

    def update_weights(self, version: int) -> None:
        """All chunks under way have ended or been cancelled; the weights are those of this version from now on."""

    def close(self) -> None: ...
