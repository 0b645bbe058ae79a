"""Schedules requests on instances, chunk by chunk.

    scheduler.launch(specs)                               # all samples of one problem
    for dispatch in scheduler.next_dispatches(): ...      # submit them
    scheduler.chunk_ended(event)                          # at each report; then ask for dispatches again

A request runs one chunk at a time, each on any instance. It is dispatched only where prompt, tokens so far and the
chunk fit, so no instance runs out of memory. The policy chooses the next request; when it fits nowhere the others
wait too, else a large one would wait for ever.

Events in, decisions out: no torch, no clock. Reports of cancelled chunks and of lost instances, and repeated
reports, are ignored, so reports may arrive in any order.

In a group launched with `hold`, a request that ended stays open without capacity, until `extend` (it continues with
appended tokens, such as a tool's answer) or `release` (it was the last turn).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from foresail.rollout.capacity import Capacities
from foresail.rollout.plan import ChunkEnded, Dispatch, InstanceState, SampleSpec
from foresail.rollout.policies import Pick, Policy

Event = dict[str, Any]  # a line of the timeline, without step and time


def write_nowhere(event: Event) -> None:
    pass


class Scheduler:
    """Every request waits, runs, is held, or has ended; `record` gets each decision."""

    def __init__(
        self, policy: Policy, *, chunk_tokens: int | None, record: Callable[[Event], None] = write_nowhere
    ) -> None:
        if chunk_tokens is not None and chunk_tokens < 1:
            raise ValueError(f"a chunk of {chunk_tokens} tokens; give at least 1, or None to run undivided")
        self.decisions = 0
        self._policy, self._chunk_tokens, self._record = policy, chunk_tokens, record
        self._capacities = Capacities()
        self._open: dict[int, dict[str, None]] = {}  # group -> its waiting and running requests
        self._running: dict[str, Dispatch] = {}
        self._holding: set[int] = set()  # groups whose requests are held when they end
        self._held: dict[
            str, tuple[SampleSpec, int]
        ] = {}  # request -> its spec, and its tokens after the prompt
        self._extended: set[str] = set()  # requests that wait for their next turn
        self._last: dict[str, str] = {}  # request -> where its last chunk ran
        self._homes: dict[int, str] = {}  # group -> its instance, for policies that keep groups whole
        self._num_open = 0
        self._newest = -1

    @property
    def num_running(self) -> int:
        return len(self._running)

    @property
    def num_waiting(self) -> int:
        return self._num_open - len(self._running) - len(self._held)

    def holds(self, request_id: str) -> bool:
        """Whether a request is held after a turn."""
        return request_id in self._held

    @property
    def stalled(self) -> bool:
        """After `next_dispatches`: requests wait and none runs, so another instance is needed."""
        return self.num_waiting > 0 and not self._running

    @property
    def free_tokens(self) -> dict[str, int]:
        """Per instance; below 0 where whole groups queue."""
        return self._capacities.free_tokens

    # Events.

    def add_instance(self, state: InstanceState) -> None:
        self._capacities.add(state)
        self._record({"event": "add_instance", "instance": state.name, "kv_tokens": state.kv_tokens})

    def lose_instance(self, name: str) -> list[SampleSpec]:
        """Remove an instance; its requests wait again, with the tokens last reported."""
        lost = [self._running.pop(request) for request in self._capacities.remove(name)]
        for dispatch in lost:
            self._policy.push(dispatch.spec, dispatch.generated)
        specs = [dispatch.spec for dispatch in lost]
        self._record({"event": "lose_instance", "instance": name, "requests": [spec.id for spec in specs]})
        return specs

    def launch(self, specs: Sequence[SampleSpec], *, hold: bool = False) -> None:
        """Add all samples of one group. Groups are launched once, in the order of their numbers."""
        group = specs[0].group
        assert all(spec.group == group for spec in specs), "one group at a time"
        assert group > self._newest, f"group {group} after {self._newest}: late news could be taken for its"
        self._check_capacity(max(specs, key=lambda spec: spec.prompt_tokens + spec.max_tokens))
        self._newest = group
        self._open[group] = dict.fromkeys(spec.id for spec in specs)
        self._num_open += len(self._open[group])
        assert len(self._open[group]) == len(specs), f"two samples of group {group} have one id"
        if hold:
            self._holding.add(group)
        for spec in specs:
            self._policy.push(spec, 0)
        self._record({"event": "launch", "group": group, "requests": len(specs)})

    def join(self, spec: SampleSpec, *, hold: bool = False) -> None:
        """Add one request to a group, at any time. All of a group have the same prompt.

        Its id must be new, else late reports of another request could be taken for its own.
        """
        self._check_capacity(spec)
        self._newest = max(self._newest, spec.group)
        requests = self._open.setdefault(spec.group, {})
        assert spec.id not in requests, f"request {spec.id} has joined already"
        requests[spec.id] = None
        self._num_open += 1
        if hold:
            self._holding.add(spec.group)
        self._policy.push(spec, 0)
        self._record({"event": "join", "group": spec.group, "request": spec.id})

    def chunk_ended(self, event: ChunkEnded) -> bool:
        """An unfinished request waits again; a finished one is what the policy learns from.

        False for an outdated report, which must be ignored.
        """
        dispatch = self._running.get(event.spec.id)
        chunk = (event.instance, event.generated)
        if dispatch is None or (dispatch.instance, dispatch.generated) != chunk:
            self._note_chunk("late", event)
            return False
        del self._running[event.spec.id]
        self._capacities.give_back(dispatch)
        generated = dispatch.generated + event.new_tokens
        assert 0 < event.new_tokens <= dispatch.max_tokens, f"{event} is no part of its chunk"
        self._note_chunk("chunk", event)
        if event.finished and event.spec.group in self._holding:
            self._held[event.spec.id] = event.spec, generated
        elif event.finished:
            self._policy.finished(event.spec, generated)
            self._close(event.spec)
        else:
            assert generated < event.spec.max_tokens, f"{event} is at its limit, and not finished"
            self._policy.push(event.spec, generated)
        return True

    def extend(self, request_id: str, appended: int) -> None:
        """Continue a held request with `appended` more tokens."""
        spec, generated = self._held[request_id]
        if appended < 1 or generated + appended >= spec.max_tokens:
            raise ValueError(
                f"request {request_id} has {generated} of at most {spec.max_tokens} tokens behind its prompt, and "
                f"{appended} more leave nothing to generate; append fewer, at least one, or release it"
            )
        del self._held[request_id]
        self._extended.add(request_id)
        self._policy.push(spec, generated + appended)
        self._record({"event": "extend", "request": request_id, "appended": appended})

    def release(self, request_id: str) -> None:
        """End a held request."""
        spec, generated = self._held.pop(request_id)
        self._policy.finished(spec, generated)
        self._close(spec)
        self._record({"event": "release", "request": request_id})

    def cancel_group(self, group: int) -> list[Dispatch]:
        """Cancel a group; returns its running dispatches, which the instances must stop."""
        requests = self._open.pop(group, {})
        running = [self._running.pop(request) for request in requests if request in self._running]
        for dispatch in running:
            self._capacities.give_back(dispatch)
        self._num_open -= len(requests)
        self._forget(group, [*requests])
        stopped = [dispatch.spec.id for dispatch in running]
        self._record({"event": "cancel", "group": group, "open": len(requests), "running": stopped})
        return running

    def cancel_request(self, spec: SampleSpec) -> Dispatch | None:
        """Cancel one request, if it has not ended; returns its dispatch if it runs."""
        if spec.id not in self._open.get(spec.group, ()):
            return None
        dispatch = self._running.pop(spec.id, None)
        if dispatch is not None:
            self._capacities.give_back(dispatch)
        else:
            self._policy.remove(spec)
        self._record(
            {"event": "cancel", "group": spec.group, "open": 1, "running": [spec.id] if dispatch else []}
        )
        self._close(spec)
        return dispatch

    # Decisions.

    def next_dispatches(self) -> list[Dispatch]:
        """As many chunks as fit now; they count as running."""
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
        spec, generated, _ = pick
        left = spec.max_tokens - generated
        if self._policy.whole_groups:
            max_tokens, instance = left, self._home(spec.group)
        else:
            max_tokens = left if self._chunk_tokens is None else min(self._chunk_tokens, left)
            tokens, home = generated + max_tokens, self._homes.get(spec.group)
            last = self._last.get(spec.id)
            if spec.id in self._extended and self._capacities.fits(last, spec, tokens):
                instance = last  # it has the keys and values of the turns so far
            else:
                instance = self._capacities.best(spec, tokens, last=last, home=home)
        if instance is None:
            return None
        return Dispatch(spec=spec, instance=instance, generated=generated, max_tokens=max_tokens)

    def _home(self, group: int) -> str | None:
        """The instance of a whole group, even if it does not fit: the engine queues and preempts rows."""
        home = self._homes.get(group)
        return home if home is not None and home in self._capacities else self._capacities.least_loaded()

    def _start(self, dispatch: Dispatch, why: str) -> None:
        spec = dispatch.spec
        self._running[spec.id] = dispatch
        self._extended.discard(spec.id)
        self._capacities.take(dispatch)
        self._last[spec.id] = self._homes[spec.group] = dispatch.instance
        self.decisions += 1
        self._record(
            {
                "event": "dispatch",
                "request": spec.id,
                "instance": dispatch.instance,
                "generated": dispatch.generated,
                "max_tokens": dispatch.max_tokens,
                "why": why,
            }
        )

    # Housekeeping.

    def _close(self, spec: SampleSpec) -> None:
        """End a request; after the last one forget its group."""
        requests = self._open[spec.group]
        del requests[spec.id]
        self._num_open -= 1
        self._forget_requests([spec.id])
        if not requests:
            del self._open[spec.group]
            self._forget(spec.group, [])

    def _forget(self, group: int, requests: Sequence[str]) -> None:
        self._policy.drop(group)
        self._homes.pop(group, None)
        self._holding.discard(group)
        self._forget_requests(requests)

    def _forget_requests(self, requests: Sequence[str]) -> None:
        for request in requests:
            self._last.pop(request, None)
            self._held.pop(request, None)
            self._extended.discard(request)

    def _check_capacity(self, spec: SampleSpec) -> None:
        need, largest = spec.prompt_tokens + spec.max_tokens, self._capacities.largest
        if 0 < largest < need:
            raise ValueError(
                f"request {spec.id} may come to {need} tokens and the largest instance holds {largest}; "
                "raise engine.kv_tokens or lower sampling.max_new_tokens"
            )

    def _note_chunk(self, kind: str, event: ChunkEnded) -> None:
        self._record(
            {
                "event": kind,
                "request": event.spec.id,
                "instance": event.instance,
                "new_tokens": event.new_tokens,
                "finished": event.finished,
            }
        )
