"""An engine in this process whose requests draft from their siblings."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from foresail.engine.engine import Engine
from foresail.engine.request import Completion, Parked
from foresail.rollout.drafts.speculation import Speculation, Tally
from foresail.rollout.instance import Order
from foresail.rollout.native import NativeInstance
from foresail.rollout.plan import Ask


class DraftingInstance(NativeInstance):
    """Steps that check drafts, while they pay; the tokens are those of a plain instance.

    It is a plain one until `ready`: what finds drafts may have to be compiled first.
    """

    def __init__(self, name: str, engine: Engine, ready: Callable[[], bool] = lambda: True) -> None:
        super().__init__(name, engine)
        self.speculation = Speculation(engine)
        self.ready, self.awake = ready, False
        self.untold: list[Order] = []  # of which speculation will hear when it begins

    def submit(self, order: Order) -> None:
        super().submit(order)
        self.untold.append(order)

    def step(self) -> list[Completion]:
        return self.speculation.step() if self._wake() else super().step()

    def _wake(self) -> bool:
        """Whether speculation is at work; then it knows of all that run."""
        self.awake = self.awake or self.ready()
        if self.awake:
            for order in self.untold:
                if order.dispatch.ask.id in self.running:
                    self._tell(order)
            self.untold.clear()
        return self.awake

    def _tell(self, order: Order) -> None:
        work = order.work
        request, drawn = (work.request, work.ids) if isinstance(work, Parked) else (work, ())
        self.speculation.listener.begin(order.dispatch.ask, request.prompt, drawn)

    def learn(self, ask: Ask, ids: Sequence[int]) -> None:
        if self._wake():
            self.speculation.listener.learn(ask, ids)

    def take_figures(self) -> dict[str, float]:
        tally, self.speculation.tally = self.speculation.tally, Tally()
        if not tally.steps:
            return {}
        figures = {"rollout/drafted_steps": tally.drafted_steps / tally.steps}
        if tally.rows:
            figures["rollout/tokens_per_drafted_step"] = 1 + tally.accepted / tally.rows
        return figures

    def update_weights(self, version: int) -> None:
        super().update_weights(version)
        self.speculation.forget()
        self.untold.clear()
