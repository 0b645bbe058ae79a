"""Simulated instances under the real scheduler, and the judges beside them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from foresail.rollout.plan import Ask, ChunkEnded, Dispatch
from foresail.rollout.scheduler import Scheduler
from foresail.rollout.simulation.clock import VirtualClock
from foresail.rollout.simulation.instance import Row, SimulatedInstance
from foresail.rollout.simulation.workloads import Problems


@dataclass(kw_only=True)
class Progress:
    """What the samples of a group have drawn, as far as reported."""

    generated: list[int]
    ended: list[bool]

    def references(self, sample: int) -> int:
        """Siblings to draft from: those that have ended, and those at least as far as this one."""
        own = max(self.generated[sample], 1)
        return sum(
            ended or generated >= own
            for place, (generated, ended) in enumerate(zip(self.generated, self.ended, strict=True))
            if place != sample
        )


@dataclass(kw_only=True)
class Tally:
    """What the cluster did."""

    ends: list[float] = field(default_factory=list)  # when samples ended
    tokens: int = 0  # of samples that ended
    migrations: int = 0


class Cluster:
    """Takes groups, and calls `ended` for each sample when its last token is drawn."""

    def __init__(
        self,
        scheduler: Scheduler,
        problems: Problems,
        clock: VirtualClock,
        ended: Callable[[Ask], None],
        *,
        migration_seconds_per_token: float,
        drafting: bool,
    ) -> None:
        self.tally = Tally()
        self.spent: dict[str, float] = {}
        self.instances: dict[str, SimulatedInstance] = {}
        self.scheduler = scheduler
        self._problems, self._clock, self._ended = problems, clock, ended
        self._migration, self._drafting = migration_seconds_per_token, drafting
        self._progress: dict[int, Progress] = {}
        self._places: dict[str, str] = {}  # request -> the instance of its last chunk, where its cache is
        self._travelling: dict[str, Row] = {}
        self._asked = False

    def add(self, instance: SimulatedInstance) -> None:
        self.instances[instance.state.name] = instance
        self.scheduler.add_instance(instance.state)

    def launch(self, group: int) -> None:
        asks = self._problems.asks(group)
        self._progress[group] = Progress(generated=[0] * len(asks), ended=[False] * len(asks))
        self.scheduler.launch(asks)
        self._ask_scheduler()

    def cancel(self, groups: Sequence[int]) -> None:
        for group in groups:
            for dispatch in self.scheduler.cancel_group(group):
                if self._travelling.pop(dispatch.ask.id, None) is None:
                    self.instances[dispatch.instance].cancel(dispatch.ask.id)

    def lose(self, name: str) -> None:
        """An instance is gone, with all it had cached; its requests go on elsewhere from their last chunk."""
        self.instances.pop(name).stop()
        for ask in self.scheduler.lose_instance(name):
            self._travelling.pop(ask.id, None)
        self._places = {request: place for request, place in self._places.items() if place != name}
        self._ask_scheduler()

    def chunk_ended(self, event: ChunkEnded) -> None:
        progress, sample = self._progress[event.ask.group], event.ask.sample
        progress.generated[sample] += event.new_tokens
        self.scheduler.chunk_ended(event)
        if event.finished:
            progress.ended[sample] = True
            self.tally.tokens += progress.generated[sample]
            self.tally.ends.append(self._clock.now())
            self._ended(event.ask)
        self._ask_scheduler()

    def _ask_scheduler(self) -> None:
        """Once for all that happens at this moment."""
        if not self._asked:
            self._asked = True
            self._clock.at(self._clock.now(), self._dispatch)

    def _dispatch(self) -> None:
        self._asked = False
        for dispatch in self.scheduler.next_dispatches():
            self._send(dispatch)

    def _send(self, dispatch: Dispatch) -> None:
        """A first chunk computes its prompt; a later one finds its cache there, or waits until it has come."""
        ask = dispatch.ask
        last, self._places[ask.id] = self._places.get(ask.id), dispatch.instance
        row = self._row(dispatch, cached=last is not None)
        instance = self.instances[dispatch.instance]
        if last is None or last == dispatch.instance:
            instance.submit(row)
            return
        self.tally.migrations += 1
        self._travelling[ask.id] = row
        arrival = self._clock.now() + row.context * self._migration
        self._clock.at(arrival, lambda: self._arrive(row, instance))

    def _arrive(self, row: Row, instance: SimulatedInstance) -> None:
        name = row.dispatch.ask.id
        if self._travelling.get(name) is row:  # not cancelled on the way
            del self._travelling[name]
            instance.submit(row)

    def _row(self, dispatch: Dispatch, *, cached: bool) -> Row:
        ask, context = dispatch.ask, dispatch.ask.prompt_tokens + dispatch.generated
        left = self._problems.length(ask) - dispatch.generated
        new_tokens = min(left, dispatch.max_tokens)
        return Row(
            dispatch=dispatch,
            finished=new_tokens == left,
            new_tokens=new_tokens,
            references=self._progress[ask.group].references(ask.sample) if self._drafting else 0,
            to_compute=0 if cached else context,
            context=context,
            left=new_tokens,
        )


class Graders:
    """So many verdicts at once; the others wait in line."""

    def __init__(self, count: int, clock: VirtualClock) -> None:
        self._free, self._clock = count, clock
        self._line: deque[tuple[float, Callable[[], None]]] = deque()

    def submit(self, seconds: float, done: Callable[[], None]) -> None:
        self._line.append((seconds, done))
        self._start()

    def _start(self) -> None:
        while self._free and self._line:
            seconds, done = self._line.popleft()
            self._free -= 1
            self._clock.at(self._clock.now() + seconds, lambda done=done: self._finish(done))  # type: ignore[misc]

    def _finish(self, done: Callable[[], None]) -> None:
        self._free += 1
        done()
        self._start()
