"""The native engine in this process with speculative decoding: drafts from siblings and MTP layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from foresail.engine.engine import Engine
from foresail.engine.request import Completion, Parked
from foresail.rollout.drafts.speculation import DraftFigures, Speculation
from foresail.rollout.groups import behind_prompt
from foresail.rollout.instance import ChunkOrder
from foresail.rollout.native import NativeInstance
from foresail.rollout.plan import SampleSpec


class DraftingInstance(NativeInstance):
    """Uses drafts while they save time; the tokens are those of a plain instance.

    It takes plain steps until `ready`, since the drafting code may have to be compiled first.
    """

    def __init__(self, name: str, engine: Engine, ready: Callable[[], bool] = lambda: True) -> None:
        super().__init__(name, engine)
        self.speculation = Speculation(engine)
        self.ready, self.awake = ready, False
        # requests that began before speculation was ready: spec, prompt, generated ids
        self.pending: list[tuple[SampleSpec, Sequence[int], Sequence[int]]] = []

    def submit(self, order: ChunkOrder) -> None:
        super().submit(order)
        spec, work = order.dispatch.spec, order.work
        request, ids = (work.request, work.ids) if isinstance(work, Parked) else (work, ())
        self.pending.append((spec, request.prompt[: spec.prompt_tokens], behind_prompt(spec, request, ids)))

    def step(self) -> list[Completion]:
        if not self._wake():
            return super().step()
        ended = self.speculation.step()
        if ended:
            self.speculation.row_drafts.make_room({dispatch.spec.group for dispatch in self.running.values()})
        return ended

    def _wake(self) -> bool:
        """Whether speculation is ready; if so, it learns of the pending requests."""
        self.awake = self.awake or self.ready()
        if self.awake:
            for spec, prompt, ids in self.pending:
                if spec.id in self.running:
                    self.speculation.row_drafts.begin(spec, prompt, ids)
            self.pending.clear()
        return self.awake

    def learn(self, spec: SampleSpec, ids: Sequence[int]) -> None:
        if self._wake():
            self.speculation.row_drafts.learn(spec, ids)

    def take_figures(self) -> dict[str, float]:
        tally, self.speculation.tally = self.speculation.tally, DraftFigures()
        if not tally.steps:
            return {}
        figures = {"rollout/drafted_steps": tally.drafted_steps / tally.steps}
        if tally.rows:
            figures["rollout/tokens_per_drafted_step"] = 1 + tally.accepted / tally.rows
        if self.speculation.sources.num_layers:
            figures["rollout/mtp_drafts"] = tally.mtp_rows / max(1, tally.rows)
            acceptance = self.speculation.sources.take_acceptance()
            figures |= {f"rollout/mtp_acceptance_{layer}": share for layer, share in acceptance.items()}
        return figures

    def update_weights(self, version: int) -> None:
        super().update_weights(version)
        self.speculation.forget()
        self.pending.clear()
