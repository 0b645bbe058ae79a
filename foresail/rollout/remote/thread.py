"""Runs the engine's loop in a thread of this process: for vLLM, whose engine has its own processes.

The Ray actor uses `QueueMailbox` too.
"""

from __future__ import annotations

import queue
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from foresail.rollout.remote.engine_loop import Message, Order, Spec, serve
from foresail.rollout.remote.instance import RemoteInstance
from foresail.rollout.weights.sync import WeightSync
from foresail.runlog.process_log import ProcessLog

SHUTDOWN_SECONDS = 60.0  # seconds for an engine to end after the order to close


@dataclass
class QueueMailbox:
    """The engine's end; see `engine_loop.Mailbox`."""

    orders: queue.SimpleQueue[Order] = field(default_factory=queue.SimpleQueue)
    messages: queue.SimpleQueue[Message] = field(default_factory=queue.SimpleQueue)

    def take(self, seconds: float | None) -> Order | None:
        try:
            return self.orders.get(timeout=seconds) if seconds != 0 else self.orders.get_nowait()
        except queue.Empty:
            return None

    def send(self, message: Message) -> None:
        self.messages.put(message)

    def wait(self, seconds: float) -> list[Message]:
        """All messages; waits up to `seconds` for the first."""
        messages: list[Message] = []
        with suppress(queue.Empty):
            messages.append(self.messages.get(timeout=seconds) if seconds > 0 else self.messages.get_nowait())
            while True:
                messages.append(self.messages.get_nowait())
        return messages


class ThreadChannel:
    """A thread behind two queues; see `instance.Channel`."""

    def __init__(self, spec: Spec) -> None:
        self.mailbox = QueueMailbox()
        self.thread = threading.Thread(
            target=serve, args=(spec, self.mailbox), name=f"engine {spec.name}", daemon=True
        )
        self.thread.start()

    def send(self, order: str, content: Any) -> None:
        self.mailbox.orders.put((order, content))

    def receive(self, seconds: float) -> list[Message]:
        return self.mailbox.wait(seconds)

    def close(self) -> None:
        """A thread that hangs is left to the end of the process."""
        self.thread.join(SHUTDOWN_SECONDS)


class ThreadInstance(RemoteInstance):
    """`ThreadInstance(spec, weights)` starts the engine; its first answer is awaited when needed."""

    def __init__(self, spec: Spec, weights: WeightSync, *, log: ProcessLog | None = None) -> None:
        """`log`: the output of the engine's own processes."""
        super().__init__(spec.name, ThreadChannel(spec), weights, log=log)
