"""A simulated engine: continuous batching on a virtual clock, from event to event.

Between two events an engine's rows do not change, so the time of all steps up to the next end of a chunk is a
closed formula. Rows with the same number of siblings to draft from advance at the same pace; each such kind has a
token counter, and a heap of rows by where they end on it.

An engine admits a request when its prompt and its tokens so far fit, with a hundredth of the cache left free, like
vLLM. When the cache is full the newest row is preempted, and computed again later. The scheduler's reservations
prevent that, except for whole groups, which reserve nothing.

The cache of an ended turn stays, as in the real engine, until rows need the space; the oldest is dropped first.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from heapq import heappop, heappush

from foresail.simulate.clock import VirtualClock
from foresail.simulate.costs import StepCost
from foresail.simulate.drafting_gain import DraftingGain

WATERMARK = 0.01  # of the cache stays free when a request is admitted
NEARLY = 0.01  # tokens: rounding


@dataclass(frozen=True, kw_only=True)
class Machine:
    """An engine's capacity and speed."""

    kv_tokens: int  # capacity of the cache
    max_running: int
    cost: StepCost
    gain: DraftingGain | None = None  # of drafts, if any
    kv_bytes: int = 1  # of a token
    migration_seconds_per_token: float = 0.0

    @property
    def admitted_tokens(self) -> int:
        return int(self.kv_tokens * (1 - WATERMARK))


@dataclass(kw_only=True)
class RunningChunk:
    """A chunk in an engine: `context` tokens are cached at its admission, `left` are to be generated."""

    name: str  # of the request
    references: int  # siblings to draft from
    to_compute: float  # tokens of its context that are not cached
    context: float
    left: float
    cached: float = 0.0  # of `to_compute`, tokens of its last turn in the cache, unless overwritten
    start: float = 0.0  # on the counter of its kind
    spent_before: float = 0.0
    alive: bool = True

    def __lt__(self, other: RunningChunk) -> bool:
        return self.name < other.name


@dataclass(kw_only=True)
class Kind:
    """Rows with the same pace."""

    counter: float
    pace: float  # tokens per step
    rows: int
    ends: list[tuple[float, RunningChunk]]


class SimulatedEngine:
    """`add` and `cancel` take effect immediately; `ended` is called with the names of ended rows.

    `spent` sums seconds by request: a step's time is divided among its rows.
    """

    def __init__(
        self,
        machine: Machine,
        clock: VirtualClock,
        ended: Callable[[list[str]], None],
        spent: dict[str, float],
    ) -> None:
        self.history: list[tuple[float, int]] = [
            (clock.now(), 0)
        ]  # time, and the number of rows from then on
        self.busy_seconds = self.computed_again = 0.0
        self.preemptions = 0
        self._machine, self._cost, self._gain = machine, machine.cost, machine.gain
        self._clock, self._ended, self._spent = clock, ended, spent
        self._waiting: deque[RunningChunk] = deque()
        self._running: dict[str, RunningChunk] = {}  # in the order of admission
        self._kinds: dict[int, Kind] = {}
        self._turns: dict[str, float] = {}  # request -> cached tokens of its ended turns; oldest first
        self._num_turn_tokens = 0.0  # total
        self._cached = 0.0  # tokens of all rows
        self._pace = 0.0  # tokens per step, of all rows
        self._base = 0.0  # seconds per step without reading the cache
        self._seen = self._ready = 0.0  # time of the last update; time from which rows decode again
        self._share = 0.0  # seconds for each row since the beginning
        self._version = 0

    def add(self, row: RunningChunk) -> None:
        self._waiting.append(row)
        self._touch()

    def cancel(self, name: str) -> None:
        """Remove a row, if it has not just ended."""
        self._advance()
        if name in self._running:
            self._remove(self._running[name])
        else:
            self._waiting = deque(row for row in self._waiting if row.name != name)
        self._touch()

    def keep(self, name: str, tokens: float) -> None:
        """Keep the cache of a row that ended a turn, until the space is needed."""
        self._take_turns(name)
        self._turns[name] = tokens
        self._num_turn_tokens += tokens
        self._overwrite()

    def forget_turns(self) -> None:
        """Drop all cached turns, which belong to old weights."""
        self._turns.clear()
        self._num_turn_tokens = 0.0

    def stop(self) -> None:
        """Drop everything, since the machine is lost."""
        self._advance()
        for row in self._running.values():
            self._charge(row)
        self._running.clear()
        self._waiting.clear()
        self.forget_turns()
        self._version += 1
        self.history.append((self._clock.now(), 0))

    # From event to event.

    def _touch(self) -> None:
        """Plan the next event after all events of this time."""
        self._wake_at(self._clock.now())

    def _wake_at(self, moment: float) -> None:
        self._version += 1
        self._clock.at(moment, partial(self._wake, self._version))

    def _wake(self, version: int) -> None:
        """Act on the plan, unless a newer one was made."""
        if version != self._version:
            return
        self._advance()
        ended = self._take_ended()
        self._preempt()
        self._admit()
        self._plan()
        if ended:
            self._ended(ended)

    def _advance(self) -> None:
        """Advance all rows to the present."""
        now = self._clock.now()
        if now > self._seen and self._running:
            self.busy_seconds += now - self._seen
            self._share += (now - self._seen) / len(self._running)
            decoding = now - max(self._seen, self._ready)
            if decoding > 0:
                self._step(steps_in(decoding, *self._curve))
                self._overwrite()
        self._seen = now

    def _step(self, steps: float) -> None:
        for kind in self._kinds.values():
            kind.counter += steps * kind.pace
        self._cached += steps * self._pace

    @property
    def _curve(self) -> tuple[float, float]:
        """The next step's seconds, and by how much each step is longer than the one before."""
        read = self._cost.per_cached_token
        return self._base + read * self._cached, read * self._pace

    def _take_ended(self) -> list[str]:
        ended = []
        for kind in [*self._kinds.values()]:
            while kind.ends and (not kind.ends[0][1].alive or kind.ends[0][0] <= kind.counter + NEARLY):
                row = heappop(kind.ends)[1]
                if row.alive:
                    self._remove(row)
                    ended.append(row.name)
        return ended

    def _preempt(self) -> None:
        """If the cache is full, move the newest row to the front of the queue."""
        while self._cached > self._machine.kv_tokens and len(self._running) > 1:
            row = self._running[next(reversed(self._running))]
            done = self._kinds[row.references].counter - row.start
            self._remove(row)
            context = row.context + done
            self._waiting.appendleft(
                replace(
                    row, to_compute=context, context=context, left=row.left - done, cached=0.0, alive=True
                )
            )
            self.preemptions += 1
            self.computed_again += context

    def _admit(self) -> None:
        to_compute = 0.0
        while self._waiting and len(self._running) < self._machine.max_running:
            row = self._waiting[0]
            if self._running and self._cached + row.context > self._machine.admitted_tokens:
                break
            self._waiting.popleft()
            reused = min(row.cached, self._take_turns(row.name))
            to_compute += row.to_compute - reused
            self.computed_again += row.cached - reused
            self._add(row)
            self._overwrite()
        if to_compute:
            start = max(self._clock.now(), self._ready)
            self._ready = start + to_compute * self._cost.per_prefilled_token

    def _take_turns(self, name: str) -> float:
        tokens = self._turns.pop(name, 0.0)
        self._num_turn_tokens -= tokens
        return tokens

    def _overwrite(self) -> None:
        """Free cached turns for rows, the oldest first, from their ends."""
        while self._turns and (excess := self._cached + self._num_turn_tokens - self._machine.kv_tokens) > 0:
            name = next(iter(self._turns))
            tokens = self._turns[name]
            if tokens > excess:
                self._turns[name] -= excess
                self._num_turn_tokens -= excess
            else:
                self._take_turns(name)

    def _plan(self) -> None:
        """Choose the draft length, and wake when the first row ends or the cache is full."""
        now, num_rows = self._clock.now(), len(self._running)
        if self.history[-1][1] != num_rows:
            self.history.append((now, num_rows))
        if not num_rows:
            self._cached = 0.0  # rounding
            self._kinds.clear()
            return
        self._set_pace(num_rows)
        first = min(
            (kind.ends[0][0] - kind.counter) / kind.pace for kind in self._kinds.values() if kind.rows
        )
        # One token too many, so that the cache is certainly full at that event.
        full = (self._machine.kv_tokens + 1 - self._cached) / self._pace
        self._wake_at(max(now, self._ready) + seconds_for(max(0.0, min(first, full)), *self._curve))

    def _set_pace(self, num_rows: int) -> None:
        rows = {references: kind.rows for references, kind in self._kinds.items() if kind.rows}
        if self._gain is None:
            self._base, self._pace = self._cost.base(num_rows), float(num_rows)
            return
        draft = self._gain.best_draft(rows, self._cached, self._cost)
        self._base = self._gain.base(self._cost, num_rows, draft)
        for references in rows:
            self._kinds[references].pace = self._gain.tokens(references, draft)
        self._pace = sum(count * self._kinds[references].pace for references, count in rows.items())

    # Adding and removing rows.

    def _add(self, row: RunningChunk) -> None:
        kind = self._kinds.setdefault(row.references, Kind(counter=0.0, pace=1.0, rows=0, ends=[]))
        row.start, row.spent_before = kind.counter, self._share
        heappush(kind.ends, (kind.counter + row.left, row))
        kind.rows += 1
        self._running[row.name] = row
        self._cached += row.context

    def _remove(self, row: RunningChunk) -> None:
        kind = self._kinds[row.references]
        kind.rows -= 1
        row.alive = False
        while kind.ends and not kind.ends[0][1].alive:
            heappop(kind.ends)
        self._cached -= row.context + kind.counter - row.start
        self._charge(row)
        del self._running[row.name]

    def _charge(self, row: RunningChunk) -> None:
        self._spent[row.name] = self._spent.get(row.name, 0.0) + self._share - row.spent_before
        row.spent_before = self._share


def seconds_for(steps: float, first: float, longer: float) -> float:
    """Seconds of steps, each `longer` than the one before; fractions of a step count in proportion."""
    return steps * first + longer * steps * steps / 2


def steps_in(seconds: float, first: float, longer: float) -> float:
    """The inverse: steps_in(seconds_for(7.5, …), …) -> 7.5."""
    return 2 * seconds / (first + math.sqrt(first * first + 2 * longer * seconds))
