"""The loop of an engine outside the trainer's process: takes orders, steps while there is work, sends reports.

One loop serves behind a pipe (`worker.py`), in a Ray actor (`ray_actor.py`) and in a thread
(`thread.py`), for the native engine and for vLLM. The other end is `instance.py`.

    order                          message
    submit, cancel, learn          reports, as chunks end, and new tokens; empty ones now and then as a heartbeat
    generate                       answer: completions
    begin                          answer: None, once the rest of an abandoned update is forgotten
    join                           answer: None, once the engine is in the broadcast group
    bucket                         answer: None, once its pieces are in the engine's memory
    weights                        answer: checksums of the parameters, as they lie in the engine's memory
    close                          none

`join` and `bucket` may also be answered by `NotArrived`. The first message is `ready`, with the instance's state
and capabilities. The last is `failed` after an error, and `lost` if vLLM's process ended.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import torch

from foresail.engine.engine import Engine
from foresail.engine.runner import can_draft
from foresail.model.decoder import Decoder
from foresail.model.device import choose_library
from foresail.records import RunStopped
from foresail.rollout.instance import Instance, InstanceLost, NewTokens, Report
from foresail.rollout.native import NativeInstance
from foresail.rollout.native_drafting import DraftingInstance
from foresail.rollout.weights.buckets import Content, NotArrived, WeightLoader

Order = tuple[str, Any]
Message = tuple[Literal["ready", "reports", "answer", "failed", "lost"], Any]
HEARTBEAT_SECONDS = 10.0  # seconds after which a working engine sends an empty message
POLL_SECONDS = 0.005  # seconds between two polls of an engine that works by itself


class Mailbox(Protocol):
    """The engine's end of its channel to the trainer."""

    def take(self, seconds: float | None) -> Order | None:
        """The next order within `seconds` (None: no limit); `close` when the trainer has ended."""

    def send(self, message: Message) -> None: ...


class Loader(Protocol):
    """Writes an engine's weights; `update_weights` follows the last bucket."""

    def begin(self) -> None:
        """Forget the rest of an abandoned update."""

    def load(self, content: Content) -> None: ...

    def checksums(self, names: Sequence[str] | None) -> dict[str, int]:
        """Checksums of the tensors that the engine computes with; None: of all."""


class Spec(Protocol):
    """Builds an engine in its process."""

    @property
    def name(self) -> str: ...

    def build(self) -> tuple[Instance, Loader]: ...


@dataclass(frozen=True, kw_only=True)
class EngineSpec:
    """Builds a native engine; `model` creates its model or opens the one in shared memory."""

    name: str
    model: Callable[[], Decoder]
    options: Mapping[str, Any]
    drafts: bool

    def build(self) -> tuple[NativeInstance, WeightLoader]:
        torch.set_num_threads(1)
        model = self.model()
        choose_library(model.dtype)  # as the trainer did: the choice is per process
        kind = DraftingInstance if self.drafts else NativeInstance
        engine = Engine(model, **self.options, mtp=self.drafts and can_draft(model))
        return kind(self.name, engine), WeightLoader(model)


def serve(spec: Spec, mailbox: Mailbox) -> None:
    """Run until the order to close. An error is sent to the trainer, which shows it to the user."""
    try:
        instance, loader = spec.build()
        with closing(instance):
            mailbox.send(("ready", (instance.state, instance.capabilities)))
            take_orders(instance, loader, mailbox)
    except InstanceLost as lost:
        with suppress(OSError):
            mailbox.send(("lost", lost.why))
    except Exception as error:
        message = str(error) if isinstance(error, RunStopped) else traceback.format_exc()
        with suppress(OSError):  # the trainer may have ended: that may be the error
            mailbox.send(("failed", message))


def take_orders(instance: Instance, loader: Loader, mailbox: Mailbox) -> None:
    spoke = time.monotonic()
    while True:
        while (order := mailbox.take(pause(instance))) is not None:
            match order:
                case "submit", chunk:
                    instance.submit(chunk)
                case "cancel", request_id:
                    instance.cancel(request_id)
                case "learn", (sample, ids):
                    instance.learn(sample, ids)
                case "generate", requests:
                    mailbox.send(("answer", instance.generate(requests)))
                case "begin", _:
                    loader.begin()
                    mailbox.send(("answer", None))
                case "join", invitation:
                    mailbox.send(("answer", attempt(lambda: invitation.accept(instance.state.name))))
                case "bucket", bucket:
                    mailbox.send(("answer", attempt(lambda: loader.load(bucket.open()))))
                case "weights", (version, names):
                    instance.update_weights(version)
                    mailbox.send(("answer", loader.checksums(names)))
                case "close", _:
                    return
        reports = [take_out(instance, report) for report in instance.poll()]
        if reports or time.monotonic() > spoke + HEARTBEAT_SECONDS:
            mailbox.send(("reports", reports))
            spoke = time.monotonic()


def attempt(work: Callable[[], None]) -> NotArrived | None:
    try:
        work()
    except NotArrived as error:
        return error
    return None


def pause(instance: Instance) -> float | None:
    """How long to wait for an order; None, without limit, if there is nothing to do."""
    if not instance.load:
        return None
    return POLL_SECONDS if instance.works_by_itself else 0.0


def take_out(instance: Instance, report: Report | NewTokens) -> Report | NewTokens:
    """The report with the resting request's keys and values."""
    if isinstance(report, NewTokens) or report.state != "resting":
        return report
    return replace(report, state="parked", parked=instance.park(report.event.spec.id))
