"""The life of an engine away from the trainer: take orders, step while there is work, report what ended.

One loop serves behind a pipe (`worker.py`), in a Ray actor (`ray_actor.py`) and in a thread
(`thread.py`), for the native engine and for vLLM. The other end is `instance.py`.

    order                          message
    submit, cancel, learn          reports, as chunks end, and new tokens; empty ones now and then as a heartbeat
    generate                       answer: completions
    begin                          answer: None, once what an update that was given up has left is forgotten
    join                           answer: None, once the engine is in the group that buckets are sent to
    bucket                         answer: None, once its pieces are in the engine's memory
    weights                        answer: checksums of the parameters, as they lie in the engine's memory
    close                          none

To `join` and `bucket` the answer may also be `NotArrived`. The first message is `ready`, with the instance's state
and what it can do. Where an error ends the loop the last one is `failed`; where the process of vLLM ended, `lost`.
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
HEARTBEAT_SECONDS = 10.0  # seconds without a message after which an engine at work says that it is
POLL_SECONDS = 0.005  # seconds between two looks at an engine that works by itself


class Mailbox(Protocol):
    """The engine's end of what connects it to the trainer."""

    def take(self, seconds: float | None) -> Order | None:
        """The next order, if one comes within so long, None: ever; `close` when the trainer is gone."""

    def send(self, message: Message) -> None: ...


class Loader(Protocol):
    """Where an engine's weights are written; its `update_weights` comes after the last bucket."""

    def begin(self) -> None:
        """Forget what an update that was given up has left."""

    def load(self, content: Content) -> None: ...

    def checksums(self, names: Sequence[str] | None) -> dict[str, int]:
        """Of what the engine computes with; None: of all tensors."""


class Spec(Protocol):
    """How to build an engine where it will run."""

    @property
    def name(self) -> str: ...

    def build(self) -> tuple[Instance, Loader]: ...


@dataclass(frozen=True, kw_only=True)
class EngineSpec:
    """A native engine; `model` makes its model, or opens the one in shared memory."""

    name: str
    model: Callable[[], Decoder]
    options: Mapping[str, Any]
    drafts: bool

    def build(self) -> tuple[NativeInstance, WeightLoader]:
        torch.set_num_threads(1)
        model = self.model()
        choose_library(model.dtype)  # as the trainer did: a process has its own
        kind = DraftingInstance if self.drafts else NativeInstance
        engine = Engine(model, **self.options, mtp=self.drafts and can_draft(model))
        return kind(self.name, engine), WeightLoader(model)


def serve(spec: Spec, mailbox: Mailbox) -> None:
    """Until the order to close. An error of the engine is the trainer's to tell: it has the user's eye."""
    try:
        instance, loader = spec.build()
        with closing(instance):
            mailbox.send(("ready", (instance.state, instance.capabilities)))
            take_orders(instance, loader, mailbox)
    except InstanceLost as lost:
        with suppress(OSError):
            mailbox.send(("lost", lost.why))
    except Exception as error:
        words = str(error) if isinstance(error, RunStopped) else traceback.format_exc()
        with suppress(OSError):  # nobody is there to be told: that may be the error
            mailbox.send(("failed", words))


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
    """How long an order may be waited for: as long as it takes, where there is nothing to do."""
    if not instance.load:
        return None
    return POLL_SECONDS if instance.works_by_itself else 0.0


def take_out(instance: Instance, report: Report | NewTokens) -> Report | NewTokens:
    """A request whose chunk has ended, with its keys and values."""
    if isinstance(report, NewTokens) or report.state != "resting":
        return report
    return replace(report, state="parked", parked=instance.park(report.event.spec.id))
