"""Runs the engines of a run under one scheduler: groups of requests go in, completions come out.

A request runs in chunks. Between two chunks it waits in the pool, with its keys and values while they fit. When an
instance is lost, its requests restart from their last reported chunk. Tokens do not depend on any of this, since
the noise is keyed by position.

    with fleet.at_work():                            # the caches have their memory
        fleet.launch(specs, requests)
        while fleet.busy:
            for spec, completion in fleet.work(): ...
            for new in fleet.take_new_tokens(): ...      # of requests launched with `stream`

An episode of several turns is launched with `hold`: each turn comes out of `work`, and the request stays open until
`extend` appends the environment's answer, or `release` ends it. Answers may come in any order. `join` adds a single
request to a group.

A request launched with `stream` passes on its tokens as engines report them, each once and in order. A backend
without `partial_output` reports them as chunks end. After the loss of an engine, tokens since the last chunk are
sampled again, and those already passed on are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from statistics import fmean
from typing import NamedTuple, cast

from foresail.engine.request import Completion, Parked, Request
from foresail.recipe.tables.parts import Sampling
from foresail.records import RunStopped
from foresail.rollout.event_log import EventLog
from foresail.rollout.groups import behind_prompt, continue_request
from foresail.rollout.instance import ChunkOrder, Instance, InstanceLost, NewTokens, Report, Work
from foresail.rollout.kv_pool import KVPool
from foresail.rollout.plan import Dispatch, SampleSpec
from foresail.rollout.policies import Policy
from foresail.rollout.remote.replacements import NoReplacements, Replacements
from foresail.rollout.scheduler import Scheduler
from foresail.rollout.sibling_text import SiblingText
from foresail.rollout.weights.sync import Member, WeightSync


class RequestEnded(NamedTuple):
    """A request that has ended, or ended a turn if it is held."""

    spec: SampleSpec
    completion: Completion


class Fleet:
    """launch and cancel groups; `work` until they have ended; `update_weights` between steps."""

    def __init__(
        self,
        instances: Sequence[Instance],
        policy: Policy,
        pool: KVPool,
        *,
        chunk_tokens: int | None,
        event_log: EventLog | None = None,
        weights: WeightSync | None = None,
        replacements: Replacements | None = None,
    ) -> None:
        """`weights` updates all instances together; without it each updates its own weights."""
        self.instances: dict[str, Instance] = {}
        self.weights, self.replacements = weights, replacements or NoReplacements()
        self.version: int | None = None  # of the weights; None before the first update
        self.event_log, self.pool = event_log or EventLog(), pool
        self.scheduler = Scheduler(policy, chunk_tokens=chunk_tokens, record=self.event_log)
        for instance in instances:
            self.add(instance)
        self.next_group = 0  # groups are numbered in launch order, over all steps
        self.open: dict[str, Work] = {}  # without keys and values: to restart after a loss
        self.resting: dict[str, str] = {}  # request -> the instance that still has its slot
        self.held: dict[str, Completion] = {}  # request -> its last turn
        self.streamed: dict[str, int] = {}  # streaming request -> tokens of its turn passed on
        self.new_tokens: list[NewTokens] = []
        self.losses: list[str] = []  # the errors of lost instances
        # group -> instances that ran some of its requests with these weights
        self.visited: dict[int, dict[str, None]] = {}

    @property
    def busy(self) -> bool:
        return bool(self.open or self.held)

    @property
    def only_waits(self) -> bool:
        """Whether the fleet may sleep before the next `work`."""
        return all(instance.works_by_itself or not instance.load for instance in self.instances.values())

    def add(self, instance: Instance) -> None:
        """Add an instance, at any time, and bring it to the current weights."""
        self.instances[instance.state.name] = instance
        self.scheduler.add_instance(instance.state)
        if self.version is not None:
            self._update_instances([instance])

    @property
    def cache_bytes(self) -> int:
        """Device memory that caches hold inside `at_work`, besides PyTorch's own."""
        return sum(instance.cache_bytes for instance in self.instances.values())

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Caches have their memory inside the block; afterwards it is the trainer's."""
        with ExitStack() as stack:
            for instance in self.instances.values():
                stack.enter_context(instance.at_work())
            yield

    def generate(self, requests: Sequence[Request]) -> Sequence[Completion]:
        """Generate all requests on one instance by plain steps: for self-tests and single answers."""
        assert not self.busy, "nothing else runs meanwhile"
        return next(iter(self.instances.values())).generate(requests)

    def launch(
        self, specs: Sequence[SampleSpec], works: Sequence[Work], *, hold: bool = False, stream: bool = False
    ) -> None:
        self.next_group = specs[0].group + 1
        if stream:
            self.streamed |= dict.fromkeys((spec.id for spec in specs), 0)
        self.open |= {spec.id: work for spec, work in zip(specs, works, strict=True)}
        self.scheduler.launch(specs, hold=hold)

    def join(self, spec: SampleSpec, work: Work, *, hold: bool = False, stream: bool = False) -> None:
        """Add one request, at any time, to a group with the same prompt."""
        self.scheduler.join(spec, hold=hold)
        if stream:
            self.streamed[spec.id] = 0
        self.open[spec.id] = work

    def extend(self, request_id: str, appended: Sequence[int], sampling: Sampling | None = None) -> None:
        """Begin a held request's next turn after these tokens, with its own sampling if given."""
        self.scheduler.extend(request_id, len(appended))
        request = continue_request(self.held.pop(request_id), appended)
        self.open[request_id] = request if sampling is None else replace(request, sampling=sampling)

    def release(self, request_id: str) -> None:
        """End a held request."""
        self.scheduler.release(request_id)
        self._forget(request_id)

    def cancel_request(self, spec: SampleSpec) -> None:
        """Cancel one request; its slot and pages become free immediately, its siblings continue."""
        dispatch = self.scheduler.cancel_request(spec)
        if dispatch is not None and dispatch.instance in self.instances:
            with self._handling_loss():
                self.instances[dispatch.instance].cancel(spec.id)
        self._forget(spec.id)

    def cancel(self, group: int, specs: Sequence[SampleSpec]) -> None:
        for dispatch, instance in self._cancelled(group):
            with self._handling_loss():
                instance.cancel(dispatch.spec.id)
        for spec in specs:
            self._forget(spec.id)

    def withdraw(self, group: int, specs: Sequence[SampleSpec]) -> dict[int, Parked]:
        """Cancel a group; returns its unfinished samples by number, without keys and values."""
        for dispatch, instance in self._cancelled(group):
            with self._handling_loss():
                parked = instance.park(dispatch.spec.id)
                if parked is None:  # runs in another process: use its last report
                    instance.cancel(dispatch.spec.id)
                else:
                    self.open[dispatch.spec.id] = parked.without_kv()
        works = {spec.sample: self.open.get(spec.id) for spec in specs}
        for spec in specs:
            self._forget(spec.id)
        return {sample: work for sample, work in works.items() if isinstance(work, Parked) and work.ids}

    def work(self) -> list[RequestEnded]:
        """Poll every instance once, dispatch what fits, return the requests that ended."""
        for instance in self.replacements.ready():
            self.add(instance)
        ended = []
        for report in self._reports():
            if isinstance(report, NewTokens):
                self._stream_tokens(report)
            elif self._note(report):
                ended.append(RequestEnded(report.event.spec, report.completion))
        while dispatches := self.scheduler.next_dispatches():  # again if an instance was found lost
            for dispatch in dispatches:
                self._submit(dispatch)
        for request_id in [*self.resting]:
            self._park(request_id)
        if self.scheduler.stalled and not self.replacements.pending:
            raise RunStopped(
                f"all engines' processes have ended and requests still wait ({'; '.join(self.losses)}); see what "
                "ended them (memory?), set rollout.workers = 0 or lower engine.kv_tokens, and resume the run"
            )
        return ended

    def take_new_tokens(self) -> list[NewTokens]:
        """New tokens of streaming requests since the last call."""
        new_tokens, self.new_tokens = self.new_tokens, []
        return new_tokens

    def update_weights(self, version: int) -> None:
        assert not self.busy, "running requests belong to the old weights"
        self.version = version
        self.visited.clear()
        self._update_instances([*self.instances.values()])

    def take_figures(self) -> dict[str, float]:
        """Metrics of all instances since the last call: the mean over those that have one."""
        by_name: dict[str, list[float]] = {}
        for instance in self.instances.values():
            for name, value in instance.take_figures().items():
                by_name.setdefault(name, []).append(value)
        means = {name: fmean(values) for name, values in by_name.items()}
        syncs = {} if self.weights is None else self.weights.take_figures()
        return means | syncs | self.replacements.take_figures()

    def close(self) -> None:
        for instance in self.instances.values():
            instance.close()
        self.replacements.close()

    def _update_instances(self, instances: Sequence[Instance]) -> None:
        assert self.version is not None
        if self.weights is not None:
            for name in self.weights.push(self.version, cast(Sequence[Member], instances)):
                self._lose(getattr(self.instances[name], "loss", None) or InstanceLost(name))
            return
        for instance in instances:
            with self._handling_loss():
                instance.update_weights(self.version)

    def _cancelled(self, group: int) -> Iterator[tuple[Dispatch, Instance]]:
        """Cancel a group in the scheduler; yields its running dispatches with their instances."""
        for dispatch in self.scheduler.cancel_group(group):
            if dispatch.instance in self.instances:
                yield dispatch, self.instances[dispatch.instance]

    def _submit(self, dispatch: Dispatch) -> None:
        name = dispatch.spec.id
        if dispatch.instance not in self.instances:  # lost at an earlier dispatch; the scheduler knows
            return
        if self.resting.get(name) == dispatch.instance:
            del self.resting[name]
        self._park(name)
        work = self.pool.take(name) if name in self.pool else self.open[name]
        self.visited.setdefault(dispatch.spec.group, {})[dispatch.instance] = None
        try:
            order = ChunkOrder(dispatch=dispatch, work=work, stream=name in self.streamed)
            self.instances[dispatch.instance].submit(order)
        except InstanceLost as lost:
            if isinstance(work, Parked):
                self.pool.put(work)  # keep its keys and values
            self._lose(lost)

    def _poll_order(self) -> Sequence[str]:
        """Names of the instances to poll, in order."""
        return [*self.instances]

    def _reports(self) -> Iterator[Report | NewTokens]:
        for name in self._poll_order():
            try:
                # one may be lost while others are polled
                reports = self.instances[name].poll() if name in self.instances else []
            except InstanceLost as lost:
                self._lose(lost)
            else:
                yield from reports

    def _note(self, report: Report) -> bool:
        """Record a report; whether the request, or its turn, has ended."""
        spec, completion = report.event.spec, report.completion
        if not self.scheduler.chunk_ended(report.event):  # cancelled just as it ended, or a repeated report
            return False
        self._share_text(report)
        streams = spec.id in self.streamed
        if streams:
            ids, logprobs = completion.ids, completion.logprobs
            self._stream_tokens(NewTokens(request_id=spec.id, start=0, ids=ids, logprobs=logprobs))
        if report.state == "finished":
            holds = self.scheduler.holds(spec.id)
            self._forget(spec.id)
            if holds:
                self.held[spec.id] = completion
            if holds and streams:
                self.streamed[spec.id] = 0
            return True
        self.open[spec.id] = to_parked(completion)
        if report.state == "resting":
            self.resting[spec.id] = report.event.instance
        else:
            assert report.parked is not None, "a parked report has the parked request"
            self.pool.put(report.parked)
        return False

    def _stream_tokens(self, tokens: NewTokens) -> None:
        """Pass on new tokens of a streaming request; none of a cancelled one."""
        if (count := self.streamed.get(tokens.request_id)) is None:
            return
        tokens = tokens.after(count)
        if tokens.ids:
            self.streamed[tokens.request_id] += len(tokens.ids)
            self.new_tokens.append(tokens)

    def _park(self, request_id: str) -> None:
        """Move a resting request from its instance to the pool."""
        instance = self.resting.pop(request_id, None)
        if instance in self.instances:
            with self._handling_loss():
                parked = self.instances[instance].park(request_id)
                assert parked is not None, f"request {request_id} does not rest on {instance}"
                self.pool.put(parked)

    def _share_text(self, report: Report) -> None:
        """Send a response's text to the other instances that ran its siblings, for their drafts."""
        spec, completion = report.event.spec, report.completion
        others = [
            self.instances[name]
            for name in self.visited.get(spec.group, ())
            if name in self.instances and name != report.event.instance
        ]
        if not others:
            return
        text = SiblingText(behind_prompt(spec, completion.request, completion.ids))
        for instance in others:
            try:
                instance.learn(spec, text)
            except InstanceLost as lost:
                self._lose(lost)

    @contextmanager
    def _handling_loss(self) -> Iterator[None]:
        """Handle the loss of an instance that a call inside the block finds."""
        try:
            yield
        except InstanceLost as lost:
            self._lose(lost)

    def _lose(self, lost: InstanceLost) -> None:
        if lost.name in self.instances:
            self.losses.append(str(lost))
            self.instances.pop(lost.name).close()
            self.scheduler.lose_instance(lost.name)
            self.replacements.lost(lost.name)

    def _forget(self, request_id: str) -> None:
        self.open.pop(request_id, None)
        self.resting.pop(request_id, None)
        self.held.pop(request_id, None)
        self.streamed.pop(request_id, None)
        self.pool.drop(request_id)


def to_parked(completion: Completion) -> Parked:
    """The request's state without keys and values."""
    return Parked(
        request=completion.request,
        ids=completion.ids,
        logprobs=completion.logprobs,
        versions=completion.versions,
        forced=completion.forced,
        policy_version=completion.versions[-1] if completion.versions else 0,
        side=completion.side,
    )
