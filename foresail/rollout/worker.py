"""An engine in a process of its own on this machine, on weights in shared memory.

Orders and reports go through a pipe; keys and values of parked requests through shared memory, so the next
chunk can run in any process. The weights are one copy: the trainer updates them in place, and before the first
chunk under a new version each worker proves by a checksum that it sees what the trainer sees.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any

import torch
import torch.multiprocessing as processes

from foresail.engine.engine import Engine
from foresail.engine.request import Completion, Parked, Request
from foresail.model.decoder import Decoder
from foresail.model.device import choose_library
from foresail.model.weights import checksum
from foresail.records import RunStopped
from foresail.rollout.instance import Capabilities, ChunkOrder, InstanceLost, Report
from foresail.rollout.native import NativeInstance
from foresail.rollout.native_drafting import DraftingInstance
from foresail.rollout.plan import Dispatch, InstanceState, SampleSpec

PATIENCE = 600.0  # seconds for a worker to start, or to read its weights
A_MOMENT = 5.0  # seconds for a process whose pipe has ended to be gone


class WeightsDiffer(RunStopped):
    """A worker sees other weights than the trainer."""


@contextlib.contextmanager
def hidden_main() -> Iterator[None]:
    """A process that starts meanwhile does not run the user's script again, whether it has a main guard or not."""
    main = vars(sys.modules["__main__"])
    hidden: dict[str, Any] = {name: main[name] for name in ("__file__", "__spec__") if name in main}
    main.pop("__file__", None)  # not None: whoever looks for the source of a function would stumble over it
    main["__spec__"] = None
    try:
        yield
    finally:
        main.update(hidden)


class WorkerInstance:
    """Works by itself; polling only listens. See `instance.Instance`."""

    works_by_itself = True
    # No lending: its cache is its process's own memory.
    capabilities = Capabilities(
        keyed_noise=True, parking=True, drafts=True, memory_lending=False, logprobs=True
    )
    cache_bytes = 0

    def __init__(
        self, name: str, model: Decoder, engine_options: Mapping[str, Any], *, drafts: bool = False
    ) -> None:
        self.model = model.share_memory()
        self.pipe, theirs = processes.Pipe()
        self.engine_options = dict(engine_options)
        kind = DraftingInstance if drafts else NativeInstance
        arguments = (kind, name, self.model, self.engine_options, theirs)
        self.process = processes.get_context("spawn").Process(target=work, args=arguments, daemon=True)
        with hidden_main():
            self.process.start()
        theirs.close()
        self.running: dict[str, Dispatch] = {}
        self.name = name
        self.state: InstanceState = self._answer()

    @property
    def load(self) -> int:
        return len(self.running)

    def submit(self, order: ChunkOrder) -> None:
        self.running[order.dispatch.spec.id] = order.dispatch
        self._send("submit", order)

    def cancel(self, request_id: str) -> None:
        if self.running.pop(request_id, None) is not None:
            self._send("cancel", request_id)

    def poll(self) -> list[Report]:
        reports: list[Report] = []
        with self._minding_death():
            while self.pipe.poll():
                reports += self.pipe.recv()
        mine = [report for report in reports if report.event.spec.id in self.running]
        for report in mine:
            del self.running[report.event.spec.id]
        return mine

    def park(self, request_id: str) -> Parked | None:
        """Nothing rests over there: the next order may be long in coming."""
        return None

    def learn(self, spec: SampleSpec, ids: Sequence[int]) -> None:
        self._send("learn", (spec, ids))

    def generate(self, requests: Sequence[Request]) -> Sequence[Completion]:
        self._send("generate", requests)
        answer: Sequence[Completion] = self._answer()
        return answer

    def at_work(self) -> AbstractContextManager[None]:
        return nullcontext()

    def take_figures(self) -> dict[str, float]:
        return {}

    def update_weights(self, version: int) -> None:
        assert not self.running, "chunks under way belong to the old weights"
        self._send("weights", version)
        theirs, ours = self._answer(), checksum(self.model)
        if theirs != ours:
            raise WeightsDiffer(
                f"instance {self.name} has weights with checksum {theirs:x} and the trainer {ours:x}, both called "
                f"version {version}; the weights were not updated in place, or not in shared memory"
            )

    def close(self) -> None:
        with contextlib.suppress(InstanceLost):
            self._send("close", None)
        self.process.join(timeout=PATIENCE)
        self.process.kill()
        self.process.join()
        self.pipe.close()

    def _send(self, order: str, content: object) -> None:
        with self._minding_death():
            self.pipe.send((order, content))

    @contextlib.contextmanager
    def _minding_death(self) -> Iterator[None]:
        """A process that was killed ends the pipe between two messages or in the middle of one."""
        try:
            yield
        except (EOFError, ConnectionError) as gone:
            raise InstanceLost(self.name) from gone
        except OSError as gone:
            self.process.join(timeout=A_MOMENT)
            if self.process.is_alive():  # no death: too many open files, say
                raise
            raise InstanceLost(self.name) from gone

    def _answer(self) -> Any:
        """The worker's reply; reports of cancelled chunks may still come before it."""
        while True:
            with self._minding_death():
                if not self.pipe.poll(PATIENCE):
                    raise InstanceLost(self.name)
                answer = self.pipe.recv()
            if not isinstance(answer, list):
                return answer


def work(
    kind: type[NativeInstance],
    name: str,
    model: Decoder,
    engine_options: dict[str, Any],
    pipe: Connection,
) -> None:
    """The worker's life: take orders as they come, step while there is work, report what ended."""
    torch.set_num_threads(1)
    choose_library(model.dtype)  # as the trainer did: a process has its own
    instance = kind(name, Engine(model, **engine_options))
    pipe.send(instance.state)
    while True:
        while pipe.poll(0 if instance.running else None):
            try:
                order, content = pipe.recv()
            except EOFError:  # the trainer is gone
                return
            match order:
                case "submit":
                    instance.submit(content)
                case "cancel":
                    instance.cancel(content)
                case "learn":
                    instance.learn(*content)
                case "generate":
                    pipe.send(instance.generate(content))
                case "weights":
                    instance.update_weights(content)
                    pipe.send(checksum(model))
                case "close":
                    return
        reports = [take_out(instance, report) for report in instance.poll()]
        if reports:
            pipe.send(reports)


def take_out(instance: NativeInstance, report: Report) -> Report:
    """A request whose chunk has ended, with its keys and values."""
    if report.state != "resting":
        return report
    return replace(report, state="parked", parked=instance.park(report.event.spec.id))
