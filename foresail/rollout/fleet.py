"""The instances of a run under one scheduler: requests go in by groups, finished ones come out.

A request lives in chunks. Between two of them it waits in the pool, with its keys and values as long as there
is room; when an instance dies, what it ran is begun again from the last chunk that was reported. Tokens do not
depend on any of this: the noise is keyed by position.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

from foresail.engine.engine import Engine
from foresail.engine.request import Completion
from foresail.rollout.instance import Instance, InstanceLost, Order, Report, Work
from foresail.rollout.kv_pool import KVPool
from foresail.rollout.native import NativeInstance
from foresail.rollout.plan import Ask, Dispatch
from foresail.rollout.policies import Policy, build_policy
from foresail.rollout.scheduler import Event, Scheduler

HOST_BYTES = 8 * 2**30  # for keys and values between two chunks


class Ended(NamedTuple):
    """A request that has drawn its last token."""

    ask: Ask
    completion: Completion


class Diary:
    """The scheduler's decisions with their times, for the timeline."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def __call__(self, event: Event) -> None:
        what = event.pop("event")
        now = round(time.time(), 4)
        self.events.append({"what": what, "start": now, "end": now, **event})

    def take(self) -> list[Event]:
        """All since the last call."""
        taken, self.events = self.events, []
        return taken


class Fleet:
    """launch and cancel groups; `work` until they have ended."""

    def __init__(
        self, instances: Sequence[Instance], policy: Policy, pool: KVPool, *, chunk_tokens: int | None
    ) -> None:
        self.instances = {instance.state.name: instance for instance in instances}
        self.diary, self.pool = Diary(), pool
        self.scheduler = scheduler = Scheduler(policy, chunk_tokens=chunk_tokens, record=self.diary)
        for instance in instances:
            scheduler.add_instance(instance.state)
        self.next_group = 0  # groups are numbered in launch order, over all steps
        self.open: dict[str, Work] = {}  # without keys and values: where to begin again after a loss

    @property
    def busy(self) -> bool:
        return bool(self.open)

    @property
    def only_waits(self) -> bool:
        """Whether nothing is gained by asking again at once."""
        return all(instance.works_by_itself or not instance.load for instance in self.instances.values())

    def launch(self, asks: Sequence[Ask], works: Sequence[Work]) -> None:
        self.next_group = asks[0].group + 1
        self.open |= {ask.id: work for ask, work in zip(asks, works, strict=True)}
        self.scheduler.launch(asks)

    def cancel(self, group: int, asks: Sequence[Ask]) -> None:
        for dispatch in self.scheduler.cancel_group(group):
            self.instances[dispatch.instance].cancel(dispatch.ask.id)
        for ask in asks:
            self._forget(ask.id)

    def work(self) -> list[Ended]:
        """Hand out what fits, ask every instance once, return what has ended."""
        for dispatch in self.scheduler.next_dispatches():
            self._submit(dispatch)
        if self.scheduler.stalled:
            raise RuntimeError("requests wait and no instance is left to run them")
        ended: list[Ended] = []
        for name in list(self.instances):
            ended += [Ended(r.event.ask, r.completion) for r in self._poll(name) if self._note(r)]
        return ended

    def update_weights(self, version: int) -> None:
        assert not self.busy, "requests under way belong to the old weights"
        for instance in self.instances.values():
            instance.update_weights(version)

    def close(self) -> None:
        for instance in self.instances.values():
            instance.close()

    def _submit(self, dispatch: Dispatch) -> None:
        name = dispatch.ask.id
        work = self.pool.take(name) if name in self.pool else self.open[name]
        try:
            self.instances[dispatch.instance].submit(Order(dispatch=dispatch, work=work))
        except InstanceLost as lost:
            self._lose(lost.name)

    def _poll(self, name: str) -> list[Report]:
        if name not in self.instances:
            return []
        try:
            return self.instances[name].poll()
        except InstanceLost as lost:
            self._lose(lost.name)
            return []

    def _note(self, report: Report) -> bool:
        """Tell the scheduler; whether the request has ended."""
        ask, completion = report.event.ask, report.completion
        if ask.id not in self.open:  # cancelled in the moment it ended
            return False
        self.scheduler.chunk_ended(report.event)
        self._tell_others(report)
        if report.event.finished:
            self._forget(ask.id)
            return True
        assert completion.parked is not None, "a chunk that is not the last comes back parked"
        self.open[ask.id] = completion.parked.without_kv()
        self.pool.put(completion.parked)
        return False

    def _tell_others(self, report: Report) -> None:
        """Siblings may run anywhere, and draft from what this one said."""
        for name in [*self.instances]:
            if name != report.event.instance:
                try:
                    self.instances[name].learn(report.event.ask, report.completion.ids)
                except InstanceLost:
                    self._lose(name)

    def _lose(self, name: str) -> None:
        if name in self.instances:
            self.instances.pop(name).close()
            self.scheduler.lose_instance(name)

    def _forget(self, request_id: str) -> None:
        self.open.pop(request_id, None)
        self.pool.drop(request_id)


CHUNKS = 8  # of a full response, where it must be divided


def one_engine(engine: Engine, *, max_length: int, max_new_tokens: int) -> Fleet:
    """The embedded default: one engine in this process, asked in chunks only if its cache cannot hold all rows."""
    instance = NativeInstance("engine", engine)
    state = instance.state
    fits = state.kv_tokens >= state.max_running * max_length
    chunk_tokens = None if fits else max(engine.page_size, -(-max_new_tokens // CHUNKS))
    pool = KVPool(max_bytes=HOST_BYTES)
    return Fleet([instance], build_policy("context"), pool, chunk_tokens=chunk_tokens)
