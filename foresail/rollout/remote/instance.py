"""An engine in another process as an instance: orders go out through a channel, messages come back.

The engine's side is `engine_loop.py`. The channel starts it: a process on this machine (`worker.py`), a Ray actor
on any host (`ray_actor.py`), or, for vLLM, which has its own processes, a thread (`thread.py`).
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import replace
from typing import Any, Protocol

from foresail.engine.request import Completion, Parked, Request
from foresail.rollout.instance import (
    Capabilities,
    ChunkOrder,
    EngineFailed,
    InstanceLost,
    NewTokens,
    NoAnswer,
    Report,
)
from foresail.rollout.plan import Dispatch, InstanceState, SampleSpec
from foresail.rollout.remote.engine_loop import Message
from foresail.rollout.weights.sync import WeightSync
from foresail.runlog.process_log import ProcessLog

PATIENCE = 600.0  # seconds for an engine to start, to answer, or to send a heartbeat


class Channel(Protocol):
    """The trainer's end. Every call except `close` may raise `InstanceLost`."""

    def send(self, order: str, content: Any) -> None: ...

    def receive(self, seconds: float) -> list[Message]:
        """New messages, in order; waits up to `seconds` for the first."""

    def close(self) -> None:
        """End the process, by force if necessary."""


class RemoteInstance:
    """Works by itself; `poll` only receives messages. See `instance.Instance`."""

    works_by_itself = True
    cache_bytes = 0

    def __init__(
        self, name: str, channel: Channel, weights: WeightSync, *, log: ProcessLog | None = None
    ) -> None:
        """`log`: the output of its process."""
        self.name, self.channel, self.weights, self.log = name, channel, weights, log
        self.loss: InstanceLost | None = None  # the error of its loss
        self.running: dict[str, Dispatch] = {}
        self._told: tuple[InstanceState, Capabilities] | None = None
        self.reports: list[Report | NewTokens] = []
        self.answers: deque[Any] = deque()
        self.last_message, self.num_reports = time.monotonic(), 0

    @property
    def state(self) -> InstanceState:
        return self._wait_until_built()[0]

    @property
    def capabilities(self) -> Capabilities:
        """The engine's, without memory lending: its cache belongs to another process."""
        return replace(self._wait_until_built()[1], memory_lending=False)

    def _wait_until_built(self) -> tuple[InstanceState, Capabilities]:
        deadline = time.monotonic() + PATIENCE
        while self._told is None:
            self._listen_until(deadline)
        return self._told

    @property
    def is_ready(self) -> bool:
        """Whether the engine is built, so that its state is known."""
        self._listen(0)
        return self._told is not None

    @property
    def load(self) -> int:
        return len(self.running)

    def submit(self, order: ChunkOrder) -> None:
        if not self.running:
            self.last_message = time.monotonic()  # an idle engine sends nothing
        self.running[order.dispatch.spec.id] = order.dispatch
        self.order("submit", order)

    def cancel(self, request_id: str) -> None:
        if self.running.pop(request_id, None) is not None:
            self.order("cancel", request_id)

    def poll(self) -> Sequence[Report | NewTokens]:
        self._listen(0)
        reports, self.reports = self.reports, []
        mine = [report for report in reports if report.request_id in self.running]
        for report in mine:
            if isinstance(report, Report):
                del self.running[report.request_id]
        if self.running and time.monotonic() > self.last_message + PATIENCE:
            raise NoAnswer(self.name)
        return mine

    def park(self, request_id: str) -> Parked | None:
        """None: the engine parks requests itself, since the next order may take long."""
        return None

    def learn(self, spec: SampleSpec, ids: Sequence[int]) -> None:
        self.order("learn", (spec, ids))

    def generate(self, requests: Sequence[Request]) -> Sequence[Completion]:
        self.order("generate", requests)
        completions: Sequence[Completion] = self.answer(PATIENCE)
        return completions

    def at_work(self) -> AbstractContextManager[None]:
        return nullcontext()

    def take_figures(self) -> dict[str, float]:
        return {}

    def update_weights(self, version: int) -> None:
        if self.weights.push(version, [self]):
            raise InstanceLost(self.name)

    def close(self) -> None:
        with suppress(InstanceLost):
            self.channel.send("close", None)
        self.channel.close()

    def order(self, kind: str, content: Any) -> None:
        assert kind != "weights" or not self.running, "chunks under way belong to the old weights"
        with self._adding_log_end():
            self.channel.send(kind, content)

    def answer(self, seconds: float) -> Any:
        """Wait for an answer; reports of cancelled chunks before it are dropped."""
        deadline = time.monotonic() + seconds
        while not self.answers:
            self._listen_until(deadline)
        if not self.running:
            self.reports.clear()
        return self.answers.popleft()

    def _listen_until(self, deadline: float) -> None:
        if (remaining := deadline - time.monotonic()) <= 0:
            raise NoAnswer(self.name)
        self._listen(remaining)

    @contextmanager
    def _adding_log_end(self) -> Iterator[None]:
        try:
            yield
        except InstanceLost as lost:
            ends = self.log.ends() if self.log is not None else ""
            self.loss = InstanceLost(lost.name, lost.why + ends)
            raise self.loss from lost

    def _listen(self, seconds: float) -> None:
        with self._adding_log_end():
            self._take_messages(seconds)

    def _take_messages(self, seconds: float) -> None:
        for kind, content in self.channel.receive(seconds):
            self.last_message = time.monotonic()
            match kind:
                case "ready":
                    self._told = content
                case "reports":
                    self.reports += content
                    self.num_reports += len(content)
                case "answer":
                    self.answers.append(content)
                case "lost":
                    raise InstanceLost(self.name, content)
                case "failed":
                    raise EngineFailed(self.name, content)
