"""A simulated engine as an instance: orders and reports as of a real one, on a virtual clock.

Keys and values between two chunks are a note of where they are and how large they would be. A chunk that runs
where its last one ran finds them there; elsewhere it waits until they have come, and without them its whole
context is computed again. The engine works on meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from foresail.engine.request import Completion, Parked, SavedKV
from foresail.records import Finish
from foresail.rollout.instance import Order, Report
from foresail.rollout.plan import Ask, ChunkEnded, Dispatch, InstanceState
from foresail.rollout.simulation.drawn_text import Repeated, ids_of
from foresail.rollout.simulation.engine import Machine, Row, SimulatedEngine
from foresail.rollout.simulation.world import World


@dataclass(frozen=True, kw_only=True)
class SavedThere(SavedKV):
    """Pages that have a size and no content, at the instance that computed them."""

    place: str


class SimulatedInstance:
    """Works by itself, while the clock runs; polling only listens. See `instance.Instance`."""

    works_by_itself = True

    def __init__(self, name: str, machine: Machine, world: World) -> None:
        self.state = InstanceState(
            name=name, kv_tokens=machine.admitted_tokens, max_running=machine.max_running
        )
        self.engine = SimulatedEngine(machine, world.clock, self._chunks_ended, world.spent)
        self.migrations = 0
        self._machine, self._world = machine, world
        self._orders: dict[str, Order] = {}
        self._reports: list[Report] = []
        self._version = 0

    @property
    def load(self) -> int:
        return len(self._orders)

    def submit(self, order: Order) -> None:
        dispatch, ask = order.dispatch, order.dispatch.ask
        kv = self._usable(order)
        context = ask.prompt_tokens + dispatch.generated
        row = Row(
            name=ask.id,
            references=self._count_references(dispatch),
            to_compute=context if kv is None else 0,
            context=context,
            left=self._new_tokens(dispatch),
        )
        self._orders[ask.id] = order
        if kv is None or kv.place == self.state.name:
            self.engine.add(row)
        else:
            self._migrate(order, row)

    def cancel(self, ask_id: str) -> None:
        if self._orders.pop(ask_id, None) is not None:
            self.engine.cancel(ask_id)
            self._reports = [report for report in self._reports if report.event.ask.id != ask_id]

    def poll(self) -> list[Report]:
        if not self._reports:
            return []
        reports, self._reports = self._reports, []
        for report in reports:
            del self._orders[report.event.ask.id]
        return reports

    def park(self, ask_id: str) -> Parked | None:
        """Nothing rests here: keys and values come with every report."""
        return None

    def learn(self, ask: Ask, ids: Sequence[int]) -> None:
        """All simulated instances read the same `world.siblings`."""

    def take_figures(self) -> dict[str, float]:
        """The report has them all."""
        return {}

    def update_weights(self, version: int) -> None:
        assert not self._orders, "chunks under way belong to the old weights"
        self._version = version

    def close(self) -> None:
        self._orders.clear()
        self._reports.clear()
        self.engine.stop()

    # A chunk's beginning and end.

    def _usable(self, order: Order) -> SavedThere | None:
        """Keys and values to go on with."""
        if not isinstance(order.work, Parked):
            assert order.dispatch.generated == 0, f"{order.dispatch} goes on with nothing"
            return None
        assert len(order.work.ids) == order.dispatch.generated, (
            f"{order.dispatch} goes on with something else"
        )
        kv = order.work.kv if order.work.policy_version == self._version else None
        assert kv is None or isinstance(kv, SavedThere), "pages of a real engine"
        return kv

    def _count_references(self, dispatch: Dispatch) -> int:
        if self._machine.gain is None:
            return 0
        return self._world.siblings.references(dispatch.ask, dispatch.generated)

    def _new_tokens(self, dispatch: Dispatch) -> int:
        return min(self._world.length(dispatch.ask) - dispatch.generated, dispatch.max_tokens)

    def _migrate(self, order: Order, row: Row) -> None:
        def arrive() -> None:
            if self._orders.get(row.name) is order:  # not cancelled on the way
                self.engine.add(row)

        self.migrations += 1
        clock = self._world.clock
        clock.at(clock.now() + row.context * self._machine.migration_seconds_per_token, arrive)

    def _chunks_ended(self, names: list[str]) -> None:
        self._reports += [self._report(self._orders[name]) for name in names]
        self._world.clock.wake()

    def _report(self, order: Order) -> Report:
        dispatch, ask = order.dispatch, order.dispatch.ask
        new_tokens = self._new_tokens(dispatch)
        generated = dispatch.generated + new_tokens
        finished = generated == self._world.length(ask)
        self._world.siblings.reported(ask, generated, finished=finished)
        event = ChunkEnded(
            ask=ask,
            instance=self.state.name,
            generated=dispatch.generated,
            new_tokens=new_tokens,
            finished=finished,
        )
        parked = self._park(order, generated)
        finish: Finish = "chunk" if not finished else "length" if generated == ask.max_tokens else "stop"
        completion = Completion(
            request=parked.request,
            ids=parked.ids,
            logprobs=parked.logprobs,
            versions=parked.versions,
            finish=finish,
        )
        return Report(event=event, completion=completion, parked=None if finished else parked)

    def _park(self, order: Order, generated: int) -> Parked:
        """What a request has after its chunk, with its keys and values."""
        request = order.work.request if isinstance(order.work, Parked) else order.work
        ask = order.dispatch.ask
        return Parked(
            request=request,
            ids=ids_of(request.key, ask.sample, generated),
            logprobs=Repeated(0.0, generated),
            versions=Repeated(self._version, generated),
            policy_version=self._version,
            kv=self._save(ask.prompt_tokens + generated),
        )

    def _save(self, tokens: int) -> SavedThere:
        size = tokens * self._machine.kv_bytes
        pages = torch.empty(size, dtype=torch.uint8, device="meta")
        return SavedThere(pages=pages, num_tokens=tokens, place=self.state.name)
