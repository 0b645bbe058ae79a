"""The rows of an engine, one per request, and their states.

    waiting -> filling -> running <-> resting -> parked -> waiting

A filling or running row may return to waiting, and every row can be removed. A row whose chunk is filled by the
tokens that a thinking budget inserts is parked without having run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from foresail.engine.prefixes import Prefix
from foresail.engine.request import Completion, Parked, Request, SavedKV
from foresail.model.router import CHOSEN_EXPERTS
from foresail.records import Finish

NO_SLOT = -1
State = Literal[
    "waiting",  # in the queue, without pages
    "filling",  # owns pages; its prefix is being computed
    "running",  # has a slot, is decoded
    "resting",  # has a slot; its chunk has ended
    "parked",  # its chunk has ended and others needed the slot
    "done",  # removed
]
NEXT_STATES: dict[State, tuple[State, ...]] = {
    "waiting": ("filling", "parked", "done"),
    "filling": ("running", "waiting", "done"),
    "running": ("resting", "waiting", "done"),
    "resting": ("running", "parked", "done"),
    "parked": ("waiting", "done"),
    "done": (),
}


@dataclass(eq=False)
class EngineRow:
    """A request's tokens so far, those it sampled, and its pages, where all tokens but the last are cached.

    Tokens sampled in its slot are in the engine's table until it leaves the slot.
    """

    request: Request
    context: tuple[int, ...]
    chunk_tokens: int | None = None
    logprobs: list[float] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)
    forced: list[int] = field(default_factory=list)  # positions in `sampled` of inserted tokens
    experts: list[Any] = field(default_factory=list)  # of its first tokens, if recorded
    state: State = "waiting"
    slot: int = NO_SLOT
    pages: list[int] = field(default_factory=list)
    prefix: Prefix | None = None  # shared with others, while it is filling
    saved: SavedKV | None = None  # on the host

    @staticmethod
    def of(parked: Parked, policy_version: int, chunk_tokens: int | None) -> EngineRow:
        """The row of a parked request, without keys and values of other weights."""
        return EngineRow(
            request=parked.request,
            context=(*parked.request.prompt, *parked.ids),
            chunk_tokens=chunk_tokens,
            logprobs=list(parked.logprobs),
            versions=list(parked.versions),
            forced=list(parked.forced),
            experts=[experts for experts in parked.side.get(CHOSEN_EXPERTS, ()) if experts is not None],
            saved=parked.kv if parked.policy_version == policy_version else None,
        )

    @property
    def prefix_tokens(self) -> tuple[int, ...]:
        """The tokens that must be cached before it can run."""
        return self.context[:-1]

    @property
    def all_saved(self) -> bool:
        """Whether its whole prefix is saved."""
        return self.saved is not None and self.saved.num_tokens == len(self.context) - 1

    def limit(self, sampled: int = 0) -> int:
        """How many more tokens it may sample after `sampled` tokens in its slot.

        Up to the end of its chunk or its thinking budget, where its thinking is checked.
        """
        left = len(self.request.prompt) + self.request.sampling.max_new_tokens - len(self.context) - sampled
        if self.chunk_tokens is not None:
            left = min(left, self.chunk_tokens - sampled)
        budget = self.request.sampling.thinking_budget
        to_budget = 0 if budget is None else budget - len(self.response) - sampled
        return min(left, to_budget) if to_budget > 0 else left

    @property
    def sampled(self) -> list[int]:
        return list(self.context[len(self.request.prompt) :])

    @property
    def response(self) -> tuple[int, ...]:
        """The response so far, also of earlier requests that this one continues: stop strings may begin in it."""
        return self.context[len(self.request.prompt) - self.request.begun :]

    def extend(self, tokens: list[int], logprobs: list[float], policy_version: int) -> None:
        """Add tokens sampled in a slot."""
        self.context += tuple(tokens)
        self.logprobs = [*self.logprobs, *logprobs]
        self.versions = [*self.versions, *[policy_version] * len(tokens)]
        if self.chunk_tokens is not None:
            self.chunk_tokens -= len(tokens)

    def put_in(self, tokens: Sequence[int], policy_version: int) -> None:
        """Insert these tokens as if they were sampled."""
        first = len(self.context) - len(self.request.prompt)
        self.extend([*tokens], [0.0] * len(tokens), policy_version)
        self.forced = [*self.forced, *range(first, first + len(tokens))]

    @property
    def side(self) -> Mapping[str, list[Any]]:
        """The experts of all its tokens but the last, which was not computed."""
        if not self.experts:
            return {}
        return {CHOSEN_EXPERTS: [*self.experts, *[None] * (len(self.context) - len(self.experts))]}

    def complete(self, finish: Finish) -> Completion:
        return Completion(
            request=self.request,
            ids=self.sampled,
            logprobs=self.logprobs,
            versions=self.versions,
            forced=self.forced,
            side=self.side,
            finish=finish,
        )

    def park(self, policy_version: int) -> Parked:
        return Parked(
            request=self.request,
            ids=self.sampled,
            logprobs=self.logprobs,
            versions=self.versions,
            forced=self.forced,
            side=self.side,
            policy_version=policy_version,
            kv=self.saved,
        )


class EngineRows:
    """All rows of an engine by request id, and the number in each state; states change only here."""

    def __init__(self) -> None:
        self.by_id: dict[str, list[EngineRow]] = {}  # ids need not be unique
        self.count: dict[State, int] = dict.fromkeys(NEXT_STATES, 0)

    def __iter__(self) -> Iterator[EngineRow]:
        return (row for rows in self.by_id.values() for row in rows)

    def add(self, row: EngineRow) -> None:
        assert row.state == "waiting", "a new row waits"
        self.by_id.setdefault(row.request.id, []).append(row)
        self.count["waiting"] += 1

    def move(self, row: EngineRow, state: State) -> None:
        assert state in NEXT_STATES[row.state], f"{row.request.id} was {row.state} and cannot be {state}"
        self.count[row.state] -= 1
        row.state = state
        if state != "done":
            self.count[state] += 1
            return
        rows = self.by_id[row.request.id]
        rows.remove(row)
        if not rows:
            del self.by_id[row.request.id]

    def find(self, request_id: str, *states: State) -> EngineRow | None:
        """The oldest row with this id, in one of these states if given."""
        rows = self.by_id.get(request_id, ())
        return next((row for row in rows if not states or row.state in states), None)
