"""The life of an engine in a process of its own: take orders, step while there is work, report what ended.

One loop serves behind a pipe (`worker.py`) and in a Ray actor (`ray_instance.py`). The other end is `remote.py`.

    order                          message
    submit, cancel, learn          reports, as chunks end; empty ones now and then as a sign of life
    generate                       answer: completions
    bucket                         answer: None, once its pieces are in the engine's memory
    weights                        answer: checksums of the parameters, as they lie in the engine's memory
    close                          none

The first message is `ready`, with the instance's state; where an error ends the loop, the last one is `failed`.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import torch

from foresail.engine.engine import Engine
from foresail.model.decoder import Decoder
from foresail.model.device import choose_library
from foresail.records import RunStopped
from foresail.rollout.instance import Report
from foresail.rollout.native import NativeInstance
from foresail.rollout.native_drafting import DraftingInstance
from foresail.rollout.weight_buckets import WeightLoader

Order = tuple[str, Any]
Message = tuple[Literal["ready", "reports", "answer", "failed"], Any]
SIGN_OF_LIFE = 10.0  # seconds without a message after which an engine at work says that it is


class Mailbox(Protocol):
    """The engine's end of what connects it to the trainer."""

    def take(self, *, wait: bool) -> Order | None:
        """The next order, if there is one; `close` when the trainer is gone."""

    def send(self, message: Message) -> None: ...


@dataclass(frozen=True, kw_only=True)
class EngineSpec:
    """How to build the engine where it will run; `model` makes its model, or opens the one in shared memory."""

    name: str
    model: Callable[[], Decoder]
    options: Mapping[str, Any]
    drafts: bool

    def build(self) -> NativeInstance:
        torch.set_num_threads(1)
        model = self.model()
        choose_library(model.dtype)  # as the trainer did: a process has its own
        kind = DraftingInstance if self.drafts else NativeInstance
        return kind(self.name, Engine(model, **self.options))


def serve(spec: EngineSpec, mailbox: Mailbox) -> None:
    """Until the order to close. An error of the engine is the trainer's to tell: it has the user's eye."""
    try:
        instance = spec.build()
        mailbox.send(("ready", instance.state))
        take_orders(instance, mailbox)
    except Exception as error:
        words = str(error) if isinstance(error, RunStopped) else traceback.format_exc()
        with suppress(OSError):  # nobody is there to be told: that may be the error
            mailbox.send(("failed", words))


def take_orders(instance: NativeInstance, mailbox: Mailbox) -> None:
    loader, spoke = WeightLoader(instance.engine.model), time.monotonic()
    while True:
        while (order := mailbox.take(wait=not instance.running)) is not None:
            match order:
                case "submit", chunk:
                    instance.submit(chunk)
                case "cancel", request_id:
                    instance.cancel(request_id)
                case "learn", (sample, ids):
                    instance.learn(sample, ids)
                case "generate", requests:
                    mailbox.send(("answer", instance.generate(requests)))
                case "bucket", bucket:
                    loader.load(bucket.open())
                    mailbox.send(("answer", None))
                case "weights", (version, names):
                    instance.update_weights(version)
                    mailbox.send(("answer", loader.checksums(names)))
                case "close", _:
                    return
        reports = [take_out(instance, report) for report in instance.poll()]
        if reports or time.monotonic() > spoke + SIGN_OF_LIFE:
            mailbox.send(("reports", reports))
            spoke = time.monotonic()


def take_out(instance: NativeInstance, report: Report) -> Report:
    """A request whose chunk has ended, with its keys and values."""
    if report.state != "resting":
        return report
    return replace(report, state="parked", parked=instance.park(report.event.spec.id))
