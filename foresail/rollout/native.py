"""An engine in this process as an instance: polling it is what makes it work."""

from __future__ import annotations

from collections.abc import Sequence

from foresail.engine.engine import Engine
from foresail.engine.request import Completion, Parked
from foresail.rollout.instance import Order, Report
from foresail.rollout.plan import Ask, ChunkEnded, Dispatch, InstanceState


class NativeInstance:
    """One engine step per poll; see `instance.Instance`."""

    works_by_itself = False

    def __init__(self, name: str, engine: Engine) -> None:
        self.engine = engine
        self.state = InstanceState(
            name=name,
            kv_tokens=engine.num_pages * engine.page_size,
            max_running=len(engine.table.lengths_S),
            shares_prompts=True,
        )
        self.running: dict[str, Dispatch] = {}

    @property
    def load(self) -> int:
        return len(self.running)

    def submit(self, order: Order) -> None:
        dispatch, work = order.dispatch, order.work
        if self.engine.holds(dispatch.ask.id):
            self.engine.go_on(dispatch.ask.id, chunk_tokens=dispatch.max_tokens)
        elif isinstance(work, Parked):
            self.engine.resume(work, chunk_tokens=dispatch.max_tokens)
        else:
            self.engine.add(work, chunk_tokens=dispatch.max_tokens)
        self.running[dispatch.ask.id] = dispatch

    def cancel(self, ask_id: str) -> None:
        if self.running.pop(ask_id, None) is not None:
            self.engine.cancel(ask_id)

    def poll(self) -> list[Report]:
        ended = self.step() if self.engine.busy else []
        # One that was cancelled in the moment it ended is nobody's any more.
        return [self._report(completion) for completion in ended if completion.request.id in self.running]

    def park(self, ask_id: str) -> Parked | None:
        self.running.pop(ask_id, None)
        return self.engine.park(ask_id)

    def step(self) -> list[Completion]:
        return self.engine.step()

    def learn(self, ask: Ask, ids: Sequence[int]) -> None: ...

    def take_figures(self) -> dict[str, float]:
        return {}

    def update_weights(self, version: int) -> None:
        assert not self.running, "chunks under way belong to the old weights"
        self.engine.weights_changed(version)

    def close(self) -> None:
        for ask_id in list(self.running):
            self.cancel(ask_id)

    def _report(self, completion: Completion) -> Report:
        dispatch = self.running.pop(completion.request.id)
        event = ChunkEnded(
            ask=dispatch.ask,
            instance=self.state.name,
            generated=dispatch.generated,
            new_tokens=len(completion.ids) - dispatch.generated,
            finished=completion.finish != "chunk",
        )
        return Report(event=event, completion=completion)
