"""A simulated engine: continuous batching on a virtual clock, in jumps from event to event.

Between two events the rows of an instance do not change, so the time of all its steps up to the next end of
a chunk is a sum in closed form, and nothing is done token by token. Rows with equally many siblings to draft
from advance alike; each such kind has a counter of tokens, and a heap of the rows by where they end on it.

An engine admits a request when its prompt and what it has so far fit, and keeps a hundredth of its room free
as it does, like vLLM. Should the room run out nevertheless, the row that came last is put back, and computed again
when it returns. The scheduler's reservations prevent that; whole groups, which reserve nothing, run into it.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush

from foresail.rollout.plan import ChunkEnded, Dispatch, InstanceState
from foresail.rollout.simulation.clock import VirtualClock
from foresail.rollout.simulation.costs import StepCost
from foresail.rollout.simulation.drafting_gain import DraftingGain

WATERMARK = 0.01  # of the room stays free when a request is admitted
NEARLY = 0.01  # tokens: rounding


@dataclass(kw_only=True)
class Row:
    """A chunk at its engine: `context` tokens are cached when it is admitted, `new_tokens` are to come."""

    dispatch: Dispatch
    finished: bool  # with this chunk
    new_tokens: int
    references: int  # siblings to draft from
    to_compute: float  # tokens of its context whose keys and values are not there
    context: float
    left: float
    start: float = 0.0  # on the counter of its kind
    spent_before: float = 0.0
    alive: bool = True

    def __lt__(self, other: Row) -> bool:
        return self.dispatch.ask.id < other.dispatch.ask.id


@dataclass(kw_only=True)
class Kind:
    """Rows that advance alike."""

    counter: float
    pace: float  # tokens a step
    rows: int
    ends: list[tuple[float, Row]]


class SimulatedInstance:
    """`submit` and `cancel` take effect now; `report` is called when a chunk ends."""

    def __init__(
        self,
        name: str,
        *,
        kv_tokens: int,
        max_running: int,
        cost: StepCost,
        gain: DraftingGain | None,
        clock: VirtualClock,
        report: Callable[[ChunkEnded], None],
        spent: dict[str, float],
    ) -> None:
        self.state = InstanceState(
            name=name, kv_tokens=int(kv_tokens * (1 - WATERMARK)), max_running=max_running
        )
        self.history: list[tuple[float, int]] = [(0.0, 0)]  # rows from a moment on
        self.busy_seconds = self.computed_again = 0.0
        self.preemptions = 0
        self._room, self._cost, self._gain, self._clock = kv_tokens, cost, gain, clock
        self._report, self._spent = report, spent  # seconds by request, a step's time shared by its rows
        self._waiting: deque[Row] = deque()
        self._running: dict[str, Row] = {}  # in the order in which they were admitted
        self._kinds: dict[int, Kind] = {}
        self._cached = 0.0  # tokens of all rows
        self._pace = 0.0  # tokens a step, of all rows
        self._base = 0.0  # seconds a step, but for reading the cache
        self._seen = self._ready = 0.0  # up to when all is worked out; from when rows decode again
        self._share = 0.0  # seconds for each row since the beginning
        self._version = 0

    def submit(self, row: Row) -> None:
        self._waiting.append(row)
        self._touch()

    def cancel(self, ask_id: str) -> None:
        """Forget a chunk; fine if it has just ended."""
        self._advance()
        if ask_id in self._running:
            self._remove(self._running[ask_id])
        else:
            self._waiting = deque(row for row in self._waiting if row.dispatch.ask.id != ask_id)
        self._touch()

    def stop(self) -> None:
        """Forget everything: the machine is gone."""
        self.settle()
        self._running.clear()
        self._waiting.clear()
        self._version += 1
        self.history.append((self._clock.now(), 0))

    def settle(self) -> None:
        """Bring the books up to now: at the end of a step, what still runs has cost something too."""
        self._advance()
        for row in self._running.values():
            self._charge(row)

    # From event to event.

    def _touch(self) -> None:
        """Plan anew once all that happens at this moment has happened."""
        self._version += 1
        self._clock.at(self._clock.now(), self._wake_if(self._version))

    def _wake_if(self, version: int) -> Callable[[], None]:
        def wake() -> None:
            if version == self._version:
                self._wake()

        return wake

    def _wake(self) -> None:
        self._advance()
        ended = self._take_ended()
        self._put_back()
        self._admit()
        self._plan()
        for row in ended:
            self._report(
                ChunkEnded(
                    ask=row.dispatch.ask,
                    instance=self.state.name,
                    new_tokens=row.new_tokens,
                    finished=row.finished,
                )
            )

    def _advance(self) -> None:
        """Work out what happened since the last event."""
        now = self._clock.now()
        if now > self._seen and self._running:
            self.busy_seconds += now - self._seen
            self._share += (now - self._seen) / len(self._running)
            decoding = now - max(self._seen, self._ready)
            if decoding > 0:
                self._step(steps_in(decoding, *self._curve))
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

    def _take_ended(self) -> list[Row]:
        ended = []
        for kind in [*self._kinds.values()]:
            while kind.ends and (not kind.ends[0][1].alive or kind.ends[0][0] <= kind.counter + NEARLY):
                row = heappop(kind.ends)[1]
                if row.alive:
                    self._remove(row)
                    ended.append(row)
        return ended

    def _put_back(self) -> None:
        """Where the room has run out, the row that came last waits for its return, at the front."""
        while self._cached > self._room and len(self._running) > 1:
            row = self._running[next(reversed(self._running))]
            done = self._kinds[row.references].counter - row.start
            self._remove(row)
            context, left = row.context + done, row.left - done
            self._waiting.appendleft(
                Row(
                    dispatch=row.dispatch,
                    finished=row.finished,
                    new_tokens=row.new_tokens,
                    references=row.references,
                    to_compute=context,
                    context=context,
                    left=left,
                )
            )
            self.preemptions += 1
            self.computed_again += context

    def _admit(self) -> None:
        to_compute = 0.0
        while self._waiting and len(self._running) < self.state.max_running:
            row = self._waiting[0]
            if self._running and self._cached + row.context > self.state.kv_tokens:
                break
            self._waiting.popleft()
            to_compute += row.to_compute
            self._add(row)
        if to_compute:
            start = max(self._clock.now(), self._ready)
            self._ready = start + to_compute * self._cost.per_prefilled_token

    def _plan(self) -> None:
        """Choose the drafts' length, and wake when the first row ends or the room runs out."""
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
        # One token more than there is room for, so that it has certainly run out by then.
        full = (self._room + 1 - self._cached) / self._pace
        moment = max(now, self._ready) + seconds_for(max(0.0, min(first, full)), *self._curve)
        self._version += 1
        self._clock.at(moment, self._wake_if(self._version))

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

    # Rows come and go.

    def _add(self, row: Row) -> None:
        kind = self._kinds.get(row.references)
        if kind is None:
            kind = self._kinds[row.references] = Kind(counter=0.0, pace=1.0, rows=0, ends=[])
        row.start, row.spent_before = kind.counter, self._share
        heappush(kind.ends, (kind.counter + row.left, row))
        kind.rows += 1
        self._running[row.dispatch.ask.id] = row
        self._cached += row.context

    def _remove(self, row: Row) -> None:
        kind = self._kinds[row.references]
        kind.rows -= 1
        row.alive = False
        while kind.ends and not kind.ends[0][1].alive:
            heappop(kind.ends)
        self._cached -= row.context + kind.counter - row.start
        self._charge(row)
        del self._running[row.dispatch.ask.id]

    def _charge(self, row: Row) -> None:
        name = row.dispatch.ask.id
        self._spent[name] = self._spent.get(name, 0.0) + self._share - row.spent_before
        row.spent_before = self._share


def seconds_for(steps: float, first: float, longer: float) -> float:
    """Steps of `first` seconds, each `longer` than the one before; fractions of a step count in proportion."""
    return steps * first + longer * steps * steps / 2


def steps_in(seconds: float, first: float, longer: float) -> float:
    """The inverse: steps_in(seconds_for(7.5, …), …) -> 7.5."""
    return 2 * seconds / (first + math.sqrt(first * first + 2 * longer * seconds))
