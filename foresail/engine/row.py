"""A request on its way through the engine, and the one state it is in.

    waiting -> filling -> running <-> resting -> parked -> waiting

A row that is filling or running may have to wait again, and from every state it can be taken out. One whose chunk
is full with what a thinking budget has put in is parked without having run.
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
    "done",  # not here any more
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
    """Its tokens so far, what was sampled of them, and the pages it owns; all but the last token are cached there.

    What it samples in its slot is in the engine's table until it leaves the slot.
    """

    request: Request
    context: tuple[int, ...]
    chunk_tokens: int | None = None
    logprobs: list[float] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)
    forced: list[int] = field(default_factory=list)  # places of `sampled` that were put in
    experts: list[Any] = field(default_factory=list)  # of its first tokens, where they are recorded
    state: State = "waiting"
    slot: int = NO_SLOT
    pages: list[int] = field(default_factory=list)
    prefix: Prefix | None = None  # shared with others, while it is filling
    saved: SavedKV | None = None  # on the host

    @staticmethod
    def of(parked: Parked, policy_version: int, chunk_tokens: int | None) -> EngineRow:
        """The row of a parked request; keys and values of other weights are left aside."""
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
        """What must be cached before it can run."""
        return self.context[:-1]

    @property
    def all_saved(self) -> bool:
        """Whether nothing of its prefix need be computed."""
        return self.saved is not None and self.saved.num_tokens == len(self.context) - 1

    def limit(self, sampled: int = 0) -> int:
        """How many tokens it may sample from here on, having sampled so many in its slot.

        To the end of its chunk, and to its thinking budget, where it is asked whether it still thinks.
        """
        left = len(self.request.prompt) + self.request.sampling.max_new_tokens - len(self.context) - sampled
        if self.chunk_tokens is not None:
            left = min(left, self.chunk_tokens - sampled)
        budget = self.request.sampling.thinking_budget
        to_budget = 0 if budget is None else budget - len(self.said) - sampled
        return min(left, to_budget) if to_budget > 0 else left

    @property
    def sampled(self) -> list[int]:
        return list(self.context[len(self.request.prompt) :])

    @property
    def said(self) -> tuple[int, ...]:
        """In which a stop string may have begun: what it has sampled, and what it sampled as an earlier request."""
        return self.context[len(self.request.prompt) - self.request.begun :]

    def extend(self, tokens: list[int], logprobs: list[float], policy_version: int) -> None:
        """Take over what was sampled in a slot."""
        self.context += tuple(tokens)
        self.logprobs = [*self.logprobs, *logprobs]
        self.versions = [*self.versions, *[policy_version] * len(tokens)]
        if self.chunk_tokens is not None:
            self.chunk_tokens -= len(tokens)

    def put_in(self, tokens: Sequence[int], policy_version: int) -> None:
        """As if it had sampled these."""
        first = len(self.context) - len(self.request.prompt)
        self.extend([*tokens], [0.0] * len(tokens), policy_version)
        self.forced = [*self.forced, *range(first, first + len(tokens))]

    @property
    def side(self) -> Mapping[str, list[Any]]:
        """Of all its tokens: nothing is known of the last one, which was sampled and not computed."""
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
    """All rows of an engine, by request id, and how many are in each state. Nobody else changes a state."""

    def __init__(self) -> None:
        self.by_id: dict[str, list[EngineRow]] = {}  # requests may have the same id
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
        """The oldest row of that id, in one of these states where any are given."""
        rows = self.by_id.get(request_id, ())
        return next((row for row in rows if not states or row.state in states), None)
