"""Who runs where: groups come in as requests, go out as chunks, and come back until each has ended.

    scheduler.launch(asks)                                # all samples of one problem
    for dispatch in scheduler.next_dispatches(): ...      # tell the instances
    scheduler.chunk_ended(event)                          # whenever one reports; then ask for dispatches again

A request runs one chunk at a time and may run each on another instance. It is dispatched only where prompt,
tokens so far and the chunk fit, so no instance runs out of room. The policy says whose turn it is; when that
request fits nowhere the others wait too, or a large one would never find room.

Events in, decisions out: this knows neither torch nor the clock. News of a chunk that was cancelled, or whose
instance was lost, or that was heard before, is ignored, so nothing is lost and nothing counted twice, in
whatever order news arrives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from foresail.rollout.plan import Ask, ChunkEnded, Dispatch, InstanceState
from foresail.rollout.policies import Pick, Policy
from foresail.rollout.rooms import Rooms

Event = dict[str, Any]  # a line of the timeline; whoever writes it adds the step and the time


def write_nowhere(event: Event) -> None:
    pass


class Scheduler:
    """Every request waits, runs, or has ended; `record` is told of each decision."""

    def __init__(
        self, policy: Policy, *, chunk_tokens: int | None, record: Callable[[Event], None] = write_nowhere
    ) -> None:
        if chunk_tokens is not None and chunk_tokens < 1:
            raise ValueError(f"a chunk of {chunk_tokens} tokens; give at least 1, or None to run undivided")
        self.decisions = 0
        self._policy, self._chunk_tokens, self._record = policy, chunk_tokens, record
        self._rooms = Rooms()
        self._open: dict[int, dict[str, None]] = {}  # group -> its requests that wait or run
        self._running: dict[str, Dispatch] = {}
        self._last: dict[str, str] = {}  # request -> where its last chunk ran
        self._homes: dict[int, str] = {}  # group -> its instance, for policies that keep groups whole
        self._num_open = 0
        self._newest = -1

    @property
    def num_running(self) -> int:
        return len(self._running)

    @property
    def num_waiting(self) -> int:
        return self._num_open - len(self._running)

    @property
    def stalled(self) -> bool:
        """After `next_dispatches`: requests wait and none runs, so only another instance can help."""
        return self._num_open > 0 and not self._running

    @property
    def free_tokens(self) -> dict[str, int]:
        """Per instance; below 0 where whole groups queue."""
        return self._rooms.free_tokens

    # What happens.

    def add_instance(self, state: InstanceState) -> None:
        self._rooms.add(state)
        self._record({"event": "add_instance", "instance": state.name, "kv_tokens": state.kv_tokens})

    def lose_instance(self, name: str) -> list[Ask]:
        """An instance is gone: what ran there waits again, at what had been reported."""
        lost = [self._running.pop(request) for request in self._rooms.remove(name)]
        for dispatch in lost:
            self._policy.push(dispatch.ask, dispatch.generated)
        asks = [dispatch.ask for dispatch in lost]
        self._record({"event": "lose_instance", "instance": name, "requests": [ask.id for ask in asks]})
        return asks

    def launch(self, asks: Sequence[Ask]) -> None:
        """All samples of one group. Groups are launched in the order of their numbers, each once."""
        group = asks[0].group
        assert all(ask.group == group for ask in asks), "one group at a time"
        assert group > self._newest, f"group {group} after {self._newest}: late news could be taken for its"
        self._check_room(max(asks, key=lambda ask: ask.prompt_tokens + ask.max_tokens))
        self._newest = group
        self._open[group] = dict.fromkeys(ask.id for ask in asks)
        self._num_open += len(self._open[group])
        assert len(self._open[group]) == len(asks), f"two samples of group {group} have one id"
        for ask in asks:
            self._policy.push(ask, 0)
        self._record({"event": "launch", "group": group, "requests": len(asks)})

    def chunk_ended(self, event: ChunkEnded) -> bool:
        """An unfinished request waits again; a finished one is what the policy learns from.

        False if this is no news: then nobody should act on it.
        """
        dispatch = self._running.get(event.ask.id)
        chunk = (event.instance, event.generated)
        if dispatch is None or (dispatch.instance, dispatch.generated) != chunk:
            self._note_chunk("late", event)
            return False
        del self._running[event.ask.id]
        self._rooms.give_back(dispatch)
        generated = dispatch.generated + event.new_tokens
        assert 0 < event.new_tokens <= dispatch.max_tokens, f"{event} is no part of its chunk"
        self._note_chunk("chunk", event)
        if event.finished:
            self._policy.finished(event.ask, generated)
            self._close(event.ask)
        else:
            assert generated < event.ask.max_tokens, f"{event} is at its limit, and not finished"
            self._policy.push(event.ask, generated)
        return True

    def cancel_group(self, group: int) -> list[Dispatch]:
        """Give a group up. What of it runs comes back, for the instances to be told; none if it has ended."""
        requests = self._open.pop(group, {})
        running = [self._running.pop(request) for request in requests if request in self._running]
        for dispatch in running:
            self._rooms.give_back(dispatch)
        self._num_open -= len(requests)
        self._forget(group, [*requests])
        stopped = [dispatch.ask.id for dispatch in running]
        self._record({"event": "cancel", "group": group, "open": len(requests), "running": stopped})
        return running

    # What to do.

    def next_dispatches(self) -> list[Dispatch]:
        """As many chunks as fit now, each counted as running from here on."""
        dispatches = []
        while pick := self._policy.peek():
            dispatch = self._place(pick)
            if dispatch is None:
                break
            self._policy.pop(dispatch.max_tokens)
            self._start(dispatch, pick.why)
            dispatches.append(dispatch)
        return dispatches

    def _place(self, pick: Pick) -> Dispatch | None:
        ask, generated, _ = pick
        left = ask.max_tokens - generated
        if self._policy.whole_groups:
            max_tokens, instance = left, self._home(ask.group)
        else:
            max_tokens = left if self._chunk_tokens is None else min(self._chunk_tokens, left)
            tokens, home = generated + max_tokens, self._homes.get(ask.group)
            instance = self._rooms.best(ask, tokens, last=self._last.get(ask.id), home=home)
        if instance is None:
            return None
        return Dispatch(ask=ask, instance=instance, generated=generated, max_tokens=max_tokens)

    def _home(self, group: int) -> str | None:
        """Where all samples of a group go, room or not: its engine queues them and puts back what overflows."""
        home = self._homes.get(group)
        return home if home is not None and home in self._rooms else self._rooms.least_loaded()

    def _start(self, dispatch: Dispatch, why: str) -> None:
        ask = dispatch.ask
        self._running[ask.id] = dispatch
        self._rooms.take(dispatch)
        self._last[ask.id] = self._homes[ask.group] = dispatch.instance
        self.decisions += 1
        self._record(
            {
                "event": "dispatch",
                "request": ask.id,
                "instance": dispatch.instance,
                "generated": dispatch.generated,
                "max_tokens": dispatch.max_tokens,
                "why": why,
            }
        )

    # Housekeeping.

    def _close(self, ask: Ask) -> None:
        """A request has ended; with the last one its group is forgotten."""
        requests = self._open[ask.group]
        del requests[ask.id]
        self._num_open -= 1
        self._last.pop(ask.id)
        if not requests:
            del self._open[ask.group]
            self._forget(ask.group, [])

    def _forget(self, group: int, requests: Sequence[str]) -> None:
        self._policy.drop(group)
        self._homes.pop(group, None)
        for request in requests:
            self._last.pop(request, None)

    def _check_room(self, ask: Ask) -> None:
        need, largest = ask.prompt_tokens + ask.max_tokens, self._rooms.largest
        if 0 < largest < need:
            raise ValueError(
                f"request {ask.id} may come to {need} tokens and the largest instance holds {largest}; "
                "raise engine.kv_tokens or lower sampling.max_new_tokens"
            )

    def _note_chunk(self, kind: str, event: ChunkEnded) -> None:
        self._record(
            {
                "event": kind,
                "request": event.ask.id,
                "instance": event.instance,
                "new_tokens": event.new_tokens,
                "finished": event.finished,
            }
        )
