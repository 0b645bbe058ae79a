"""An engine as the scheduler sees it: chunks go in, tokens come out, and nobody asks where it runs.

Backends: `native` (an engine in this process), `worker` (an engine in a process of its own), `simulated`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from foresail.engine.request import Completion, Draft, Parked, Request
from foresail.rollout.plan import ChunkEnded, Dispatch, InstanceState


@dataclass(frozen=True, kw_only=True)
class Order:
    """A chunk to run: the request when it starts, or what was parked of it by its last chunk."""

    dispatch: Dispatch
    work: Request | Parked


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A chunk that ended, for the scheduler, and what was drawn so far, for the next chunk or the grader."""

    event: ChunkEnded
    completion: Completion


class Instance(Protocol):
    """submit, cancel, poll; `update_weights` between steps."""

    @property
    def state(self) -> InstanceState:
        """Its name and its room."""

    def submit(self, order: Order) -> None: ...

    def cancel(self, ask_id: str) -> None:
        """Forget a chunk; what it drew is of no use to anybody. Fine if it has just ended."""

    def poll(self, drafts: Mapping[str, Draft] | None = None) -> list[Outcome]:
        """What ended since the last call. An engine in this process works here; others work by themselves."""

    def tokens(self, ask_id: str) -> tuple[int, ...] | None:
        """Prompt and response as far as drawn, for drafts; None when it does not run here."""

    def update_weights(self, version: int) -> None:
        """All chunks under way have ended or been cancelled; the weights are those of this version from now on."""

    def close(self) -> None: ...
