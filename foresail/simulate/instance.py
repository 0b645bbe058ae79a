"""A simulated engine as an instance, with the orders and reports of a real one, on a virtual clock.

Keys and values between two chunks are only a place and a size. A chunk on the same instance finds them there; on
another it waits for their transfer; without them its whole context is computed again. The engine works on
meanwhile.

Keys and values of an ended turn are not transferred: another instance computes them again.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch

from foresail.engine.request import Completion, Parked, Request, SavedKV
from foresail.records import Finish
from foresail.rollout.instance import Capabilities, ChunkOrder, Report
from foresail.rollout.plan import ChunkEnded, Dispatch, InstanceState, SampleSpec
from foresail.simulate.engine import Machine, RunningChunk, SimulatedEngine
from foresail.simulate.generated_text import Repeated, ids_of
from foresail.simulate.shared_state import SharedState


@dataclass(frozen=True, kw_only=True)
class SavedThere(SavedKV):
    """The place and size of pages without content."""

    place: str


class SimulatedInstance:
    """Advances with the clock; polling only reads its reports. See `instance.Instance`."""

    works_by_itself = True
    capabilities = Capabilities(
        keyed_noise=True, parking=True, drafts=True, memory_lending=False, logprobs=False
    )
    cache_bytes = 0

    def __init__(self, name: str, machine: Machine, shared: SharedState) -> None:
        self.state = InstanceState(
            name=name, kv_tokens=machine.admitted_tokens, max_running=machine.max_running
        )
        self.engine = SimulatedEngine(machine, shared.clock, self._chunks_ended, shared.spent)
        self.migrations = 0
        self._machine, self._shared = machine, shared
        self._orders: dict[str, ChunkOrder] = {}
        self._reports: list[Report] = []
        self._version = 0

    @property
    def load(self) -> int:
        return len(self._orders)

    def submit(self, order: ChunkOrder) -> None:
        dispatch, spec = order.dispatch, order.dispatch.spec
        kv = self._usable(order)
        context = spec.prompt_tokens + dispatch.generated
        row = RunningChunk(
            name=spec.id,
            references=self._count_references(dispatch),
            to_compute=context if kv is None else 0,
            context=context,
            left=self._new_tokens(dispatch),
            cached=self._cached_turn_tokens(order),
        )
        self._orders[spec.id] = order
        if kv is None or kv.place == self.state.name:
            self.engine.add(row)
        else:
            self._migrate(order, row)

    def cancel(self, request_id: str) -> None:
        if self._orders.pop(request_id, None) is not None:
            self.engine.cancel(request_id)
            self._reports = [report for report in self._reports if report.event.spec.id != request_id]

    def poll(self) -> list[Report]:
        if not self._reports:
            return []
        reports, self._reports = self._reports, []
        for report in reports:
            del self._orders[report.event.spec.id]
        return reports

    def park(self, request_id: str) -> Parked | None:
        """Nothing to do: every report has the keys and values."""
        return None

    def learn(self, spec: SampleSpec, ids: Sequence[int]) -> None:
        """Only counts the message: all simulated instances read `shared.siblings`."""
        self._shared.sibling_texts.messages += 1
        self._shared.sibling_texts.tokens += len(ids)

    def generate(self, requests: Sequence[Request]) -> Sequence[Completion]:
        raise NotImplementedError("a simulated engine has no weights to answer with")

    def at_work(self) -> AbstractContextManager[None]:
        return nullcontext()

    def take_figures(self) -> dict[str, float]:
        """Nothing to fetch: the report holds all pages."""
        return {}

    def update_weights(self, version: int) -> None:
        assert not self._orders, "chunks under way belong to the old weights"
        self._version = version
        self.engine.forget_turns()

    def close(self) -> None:
        self._orders.clear()
        self._reports.clear()
        self.engine.stop()

    # A chunk's beginning and end.

    def _usable(self, order: ChunkOrder) -> SavedThere | None:
        """The saved keys and values, if they can be used."""
        behind = begin_of_turn(order)
        if not isinstance(order.work, Parked):
            assert order.dispatch.generated == behind, f"{order.dispatch} goes on with nothing"
            return None
        assert behind + len(order.work.ids) == order.dispatch.generated, (
            f"{order.dispatch} goes on with something else"
        )
        kv = order.work.kv if order.work.policy_version == self._version else None
        assert kv is None or isinstance(kv, SavedThere), "pages of a real engine"
        return kv

    def _cached_turn_tokens(self, order: ChunkOrder) -> int:
        """Cached tokens of the request's earlier turns; 0 unless a tool has answered."""
        dispatch = order.dispatch
        if isinstance(order.work, Parked) or dispatch.generated == 0:
            return 0
        return dispatch.spec.prompt_tokens + self._shared.left_by_turns(dispatch.spec, dispatch.generated)

    def _count_references(self, dispatch: Dispatch) -> int:
        if self._machine.gain is None:
            return 0
        return self._shared.siblings.references(dispatch.spec, dispatch.generated)

    def _new_tokens(self, dispatch: Dispatch) -> int:
        end = self._shared.end_of_turn(dispatch.spec, dispatch.generated)
        return min(end - dispatch.generated, dispatch.max_tokens)

    def _migrate(self, order: ChunkOrder, row: RunningChunk) -> None:
        def arrive() -> None:
            if self._orders.get(row.name) is order:  # not cancelled meanwhile
                self.engine.add(row)

        self.migrations += 1
        clock = self._shared.clock
        clock.at(clock.now() + row.context * self._machine.migration_seconds_per_token, arrive)

    def _chunks_ended(self, names: list[str]) -> None:
        self._reports += [self._report(self._orders[name]) for name in names]
        self._shared.news.add(self.state.name)
        self._shared.clock.wake()

    def _report(self, order: ChunkOrder) -> Report:
        dispatch, spec = order.dispatch, order.dispatch.spec
        new_tokens = self._new_tokens(dispatch)
        generated = dispatch.generated + new_tokens
        finished = generated == self._shared.end_of_turn(spec, dispatch.generated)
        last = generated == self._shared.ends(spec)[-1]
        self._shared.siblings.reported(spec, generated, finished=last)
        if finished and not last:
            self.engine.keep(spec.id, spec.prompt_tokens + generated)
        event = ChunkEnded(
            spec=spec,
            instance=self.state.name,
            generated=dispatch.generated,
            new_tokens=new_tokens,
            finished=finished,
        )
        parked = self._park(order, generated)
        finish: Finish = "chunk" if not finished else "length" if generated == spec.max_tokens else "stop"
        completion = Completion(
            request=parked.request,
            ids=parked.ids,
            logprobs=parked.logprobs,
            versions=parked.versions,
            finish=finish,
        )
        if finished:
            return Report(event=event, completion=completion, state="finished")
        return Report(event=event, completion=completion, state="parked", parked=parked)

    def _park(self, order: ChunkOrder, generated: int) -> Parked:
        """The request's state after its chunk, with its keys and values."""
        request = order.work.request if isinstance(order.work, Parked) else order.work
        spec, count = order.dispatch.spec, generated - begin_of_turn(order)
        tokens = spec.prompt_tokens + generated
        pages = torch.empty(tokens * self._machine.kv_bytes, dtype=torch.uint8, device="meta")
        return Parked(
            request=request,
            ids=ids_of(request.key, spec.sample, count),
            logprobs=Repeated(0.0, count),
            versions=Repeated(self._version, count),
            policy_version=self._version,
            kv=SavedThere(pages=pages, num_tokens=tokens, place=self.state.name),
        )


def begin_of_turn(order: ChunkOrder) -> int:
    """Tokens after the first prompt at the start of the turn; a later turn has them in its prompt."""
    request = order.work.request if isinstance(order.work, Parked) else order.work
    return len(request.prompt) - order.dispatch.spec.prompt_tokens
