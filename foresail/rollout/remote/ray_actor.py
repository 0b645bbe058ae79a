"""An engine in a Ray actor, on this host or another: the loop of `engine_loop.py` behind Ray's calls.

The actor has two calls (`actors.py`): `orders` puts orders into the engine's mailbox, `listen` waits for messages
from it. Orders of chunks are sent together, since a call costs far more than its content.

    start = partial(RayInstance, plan=ActorPlan(…), weights=…)
    instance = start("ray 0")
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from foresail.actors import ActorFailed, ActorLost, Line, drain, end_actor, send_order, start_actor
from foresail.ray_cluster import this_node
from foresail.rollout.instance import EngineFailed, InstanceLost
from foresail.rollout.remote.engine_loop import Message, Order, Spec, serve
from foresail.rollout.remote.instance import RemoteInstance
from foresail.rollout.remote.thread import QueueMailbox
from foresail.rollout.weights.buckets import BucketPiece, Content
from foresail.rollout.weights.sync import Crew, WeightSync
from foresail.runlog.actor_log import LogCopy, LogFile
from foresail.runlog.process_log import ProcessLog

SHUTDOWN_SECONDS = 20.0  # seconds for an engine to end after the order to close
TOGETHER = ("submit", "cancel", "learn")  # orders that wait for the next poll


@dataclass(frozen=True, kw_only=True)
class ActorPlan:
    """How all engines of a run are built, where Ray may place them, and where their logs go."""

    spec: Callable[[str], Spec]  # engine's name -> its spec
    actor: Mapping[str, Any]  # Ray's options: CPUs, GPUs, on which node
    home: str  # the trainer's node id
    logs: Path


class RayInstance(RemoteInstance):
    def __init__(self, name: str, plan: ActorPlan, weights: WeightSync) -> None:
        path = plan.logs / f"{name.replace(' ', '-')}.log"
        log = ProcessLog(path)
        super().__init__(name, RayChannel(name, plan, path), weights, log=log)


class RayChannel:
    """An actor behind its handle; see `instance.Channel`."""

    def __init__(self, name: str, plan: ActorPlan, path: Path) -> None:
        self.name, self.outbox = name, list[Order]()
        self.actor = start_actor(EngineActor, plan.actor, plan.spec(name), LogFile(path=path, home=plan.home))
        self.log, self.line = LogCopy(path), Line(self.actor)

    def send(self, order: str, content: Any) -> None:
        self.outbox.append((order, content))
        if order not in TOGETHER:
            self._flush()

    def receive(self, seconds: float) -> list[Message]:
        self._flush()
        with self._handling_death():
            return [message for message in self.line.receive(seconds) if not self.log.takes(message)]

    def close(self) -> None:
        with suppress(Exception):  # it may have ended, or hang
            ended = self.actor.ended.options(concurrency_group="orders").remote(SHUTDOWN_SECONDS)
            ended.future().result(timeout=SHUTDOWN_SECONDS)
        end_actor(self.actor)

    def _flush(self) -> None:
        if self.outbox:
            orders, self.outbox = self.outbox, []
            with self._handling_death():
                send_order(self.actor, "orders", orders)

    @contextmanager
    def _handling_death(self) -> Iterator[None]:
        """Turn an actor's death into InstanceLost, for the fleet; an actor that could not start ends the run."""
        try:
            yield
        except ActorLost as lost:
            raise InstanceLost(self.name) from lost
        except ActorFailed as failed:
            raise EngineFailed(self.name, str(failed)) from failed


class EngineActor:
    """The Ray actor. The engine has its own thread; calls only fill and empty its mailbox."""

    def __init__(self, spec: Spec, log: LogFile) -> None:
        self.log = log.open(this_node())
        self.mailbox = QueueMailbox()
        self.engine = threading.Thread(target=serve, args=(spec, self.mailbox), daemon=True)
        self.engine.start()

    def orders(self, orders: list[Order]) -> None:
        for order in orders:
            self.mailbox.orders.put(order)

    def ended(self, seconds: float) -> None:
        """Wait until the engine has ended: vLLM then frees shared memory, which would outlive a kill."""
        self.engine.join(seconds)

    def listen(self, seconds: float) -> list[Message]:
        messages = drain(self.mailbox.messages, seconds)
        return [*self.log.news(), *messages]


# Placement of actors.


def this_address() -> str:
    """This host's address in the cluster."""
    import ray

    address: str = ray.util.get_node_ip_address()
    return address


def beside_trainer() -> dict[str, Any]:
    """On this node; it works in turns with the trainer, so no CPUs are reserved."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    return {"num_cpus": 0, "scheduling_strategy": NodeAffinitySchedulingStrategy(this_node(), soft=False)}


def spread_out(cpus: float, gpus: float) -> dict[str, Any]:
    return {"num_cpus": cpus, "num_gpus": gpus, "scheduling_strategy": "SPREAD"}


# Weights through Ray's object store: one copy on each host, however many actors read it.


class ObjectTransport:
    """See `weights.sync.Transport`. A bucket is valid until its slot is used again."""

    def __init__(self) -> None:
        self.slots: dict[int, RayBucket] = {}

    def meet(self, crew: Crew) -> None: ...

    def pack(self, content: Content, slot: int) -> RayBucket:
        import ray

        pieces = [piece for piece, _ in content]
        # as separate arrays: Ray then copies each once, without joining them
        reference = ray.put([octets.cpu().numpy() for _, octets in content])
        self.slots[slot] = RayBucket(pieces=pieces, reference=reference)
        return self.slots[slot]

    def leave(self) -> None: ...


@dataclass(frozen=True, kw_only=True)
class RayBucket:
    pieces: list[BucketPiece]
    reference: Any  # ray.ObjectRef

    def open(self) -> Content:
        import ray

        arrays = ray.get(self.reference)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about read-only arrays
            octets = [torch.from_numpy(array) for array in arrays]
        return [*zip(self.pieces, octets, strict=True)]
