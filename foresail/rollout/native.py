"""The native engine in this process as an instance; `poll` runs its steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager

from foresail.engine.engine import Engine
from foresail.engine.request import Completion, Parked, Request
from foresail.rollout.instance import Capabilities, ChunkOrder, NewTokens, Report
from foresail.rollout.plan import ChunkEnded, Dispatch, InstanceState, SampleSpec


class NativeInstance:
    """One engine step per poll; see `instance.Instance`."""

    works_by_itself = False
    capabilities = Capabilities(
        keyed_noise=True,
        parking=True,
        drafts=True,
        memory_lending=True,
        logprobs=True,
        forcing=True,
        partial_output=True,
    )

    def __init__(self, name: str, engine: Engine) -> None:
        self.engine = engine
        self.state = InstanceState(
            name=name,
            kv_tokens=engine.num_pages * engine.page_size,
            max_running=len(engine.table.lengths_S),
            shares_prompts=True,
        )
        self.running: dict[str, Dispatch] = {}
        self.streaming: dict[str, int] = {}  # streaming request -> tokens reported so far

    @property
    def load(self) -> int:
        return len(self.running)

    @property
    def cache_bytes(self) -> int:
        return self.engine.cache_bytes

    def submit(self, order: ChunkOrder) -> None:
        dispatch, work = order.dispatch, order.work
        if self.engine.holds(dispatch.spec.id):
            self.engine.go_on(dispatch.spec.id, chunk_tokens=dispatch.max_tokens)
        elif isinstance(work, Parked):
            self.engine.resume(work, chunk_tokens=dispatch.max_tokens)
        else:
            self.engine.add(work, chunk_tokens=dispatch.max_tokens)
        self.running[dispatch.spec.id] = dispatch
        if order.stream:
            self.streaming[dispatch.spec.id] = len(work.ids) if isinstance(work, Parked) else 0

    def cancel(self, request_id: str) -> None:
        self.streaming.pop(request_id, None)
        if self.running.pop(request_id, None) is not None:
            self.engine.cancel(request_id)

    def poll(self) -> Sequence[Report | NewTokens]:
        ended = self.step() if self.engine.busy else []
        # A request cancelled just as it ended has no dispatch any more.
        reports = [self._report(completion) for completion in ended if completion.request.id in self.running]
        return [*self._new_tokens(), *reports] if self.streaming else reports

    def _new_tokens(self) -> Iterator[NewTokens]:
        for request_id, start in self.streaming.items():
            ids, logprobs = self.engine.sampled(request_id, start)
            if ids:
                self.streaming[request_id] += len(ids)
                yield NewTokens(request_id=request_id, start=start, ids=ids, logprobs=logprobs)

    def park(self, request_id: str) -> Parked | None:
        self.running.pop(request_id, None)
        self.streaming.pop(request_id, None)
        return self.engine.park(request_id)

    def step(self) -> list[Completion]:
        return self.engine.step()

    def learn(self, spec: SampleSpec, ids: Sequence[int]) -> None: ...

    def generate(self, requests: Sequence[Request]) -> Sequence[Completion]:
        return tuple(self.engine.generate(requests))

    def at_work(self) -> AbstractContextManager[None]:
        return self.engine.at_work()

    def take_figures(self) -> dict[str, float]:
        return {}

    def update_weights(self, version: int) -> None:
        assert not self.running, "chunks under way belong to the old weights"
        self.engine.weights_changed(version)

    def close(self) -> None:
        for request_id in list(self.running):
            self.cancel(request_id)

    def _report(self, completion: Completion) -> Report:
        dispatch = self.running.pop(completion.request.id)
        self.streaming.pop(completion.request.id, None)
        generated = len(completion.request.prompt) - dispatch.spec.prompt_tokens + len(completion.ids)
        finished = completion.finish != "chunk"
        event = ChunkEnded(
            spec=dispatch.spec,
            instance=self.state.name,
            generated=dispatch.generated,
            new_tokens=generated - dispatch.generated,
            finished=finished,
        )
        return Report(event=event, completion=completion, state="finished" if finished else "resting")
