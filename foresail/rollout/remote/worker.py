"""Runs an engine in its own process on this machine, on weights in shared memory.

Orders and reports go through a pipe, keys and values of parked requests through shared memory, so the next chunk
can run in any process. The weights exist once: the trainer updates them in place, and before the first chunk with a
new version each worker proves by checksums that it sees the same.
"""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch.multiprocessing as processes

from foresail.model.decoder import Decoder
from foresail.rollout.instance import InstanceLost
from foresail.rollout.remote.engine_loop import EngineSpec, Message, Order, serve
from foresail.rollout.remote.instance import RemoteInstance
from foresail.rollout.weights.sync import SharedWeights
from foresail.runlog.process_log import ProcessLog, print_to
from foresail.signals import shielded_from_interrupts

EXIT_SECONDS = 5.0  # seconds for a process to end after its pipe has
SHUTDOWN_SECONDS = 60.0  # seconds for a process to end after the order to close


@contextlib.contextmanager
def hidden_main() -> Iterator[None]:
    """Keep processes started inside the block from running the user's script again, even without a main guard."""
    main = vars(sys.modules["__main__"])
    hidden: dict[str, Any] = {name: main[name] for name in ("__file__", "__spec__") if name in main}
    main.pop("__file__", None)  # removed, not None: `inspect` fails on None
    main["__spec__"] = None
    try:
        yield
    finally:
        main.update(hidden)


class WorkerInstance(RemoteInstance):
    """`WorkerInstance("worker 0", model, options)` starts the process; its first answer is awaited when needed.

    All workers of a fleet share `weights`. Its output goes to a file in `logs`.
    """

    def __init__(
        self,
        name: str,
        model: Decoder,
        engine_options: Mapping[str, Any],
        *,
        drafts: bool = False,
        weights: SharedWeights | None = None,
        logs: Path | None = None,
    ) -> None:
        shared = SameModel(model.share_memory())
        self.spec = EngineSpec(name=name, model=shared, options=dict(engine_options), drafts=drafts)
        log = None if logs is None else ProcessLog(logs / f"{name.replace(' ', '-')}.log")
        pipe = PipeChannel(name, self.spec, log)
        super().__init__(name, pipe, weights or SharedWeights(model.named_parameters), log=log)
        self.process = pipe.process


@dataclass(frozen=True)
class SameModel:
    """Pickles a model by its shared memory."""

    model: Decoder

    def __call__(self) -> Decoder:
        return self.model


class PipeChannel:
    """A process behind a pipe; see `instance.Channel`."""

    def __init__(self, name: str, spec: EngineSpec, log: ProcessLog | None = None) -> None:
        self.name = name
        self.pipe, theirs = processes.Pipe()
        arguments = (spec, theirs, None if log is None else log.path)
        self.process = processes.get_context("spawn").Process(target=work, args=arguments, daemon=True)
        with hidden_main(), shielded_from_interrupts():
            self.process.start()
        theirs.close()

    def send(self, order: str, content: Any) -> None:
        with self._handling_death():
            self.pipe.send((order, content))

    def receive(self, seconds: float) -> list[Message]:
        messages: list[Message] = []
        try:
            with self._handling_death():
                while self.pipe.poll(0 if messages else seconds):
                    messages.append(self.pipe.recv())
        except InstanceLost:
            if not messages:  # else return its last messages first: they may explain the end
                raise
        return messages

    def close(self) -> None:
        self.process.join(timeout=SHUTDOWN_SECONDS)
        self.process.kill()
        self.process.join()
        self.pipe.close()

    @contextlib.contextmanager
    def _handling_death(self) -> Iterator[None]:
        """Turn the pipe's end, between two messages or inside one, into InstanceLost."""
        try:
            yield
        except (EOFError, ConnectionError) as error:
            self.process.join(timeout=EXIT_SECONDS)
            raise InstanceLost(self.name, self._end()) from error
        except OSError as error:
            self.process.join(timeout=EXIT_SECONDS)
            if self.process.is_alive():  # another error, such as too many open files
                raise
            raise InstanceLost(self.name, self._end()) from error

    def _end(self) -> str:
        code = self.process.exitcode
        if code is None or code >= 0:
            return f"its process ended{f' with code {code}' if code else ''}"
        return f"its process ended by {signal.Signals(-code).name}{' (memory?)' if code == -9 else ''}"


class PipeMailbox:
    """The worker's end of the pipe; see `engine_loop.Mailbox`."""

    def __init__(self, pipe: Connection) -> None:
        self.pipe = pipe

    def take(self, seconds: float | None) -> Order | None:
        if not self.pipe.poll(seconds):
            return None
        try:
            order: Order = self.pipe.recv()
        except EOFError:  # the trainer has ended
            return "close", None
        return order

    def send(self, message: Message) -> None:
        self.pipe.send(message)


def work(spec: EngineSpec, pipe: Connection, log: Path | None = None) -> None:
    if log is not None:
        print_to(log)
    serve(spec, PipeMailbox(pipe))
