"""Grading on the hosts of a Ray cluster: an actor in each place holds a pool of grading processes.

    with grader_hosts(cluster, logs=run / "logs") as hosts:     # None: this host grades
        grading = hosts.open(grader, workers=16, seconds=60.0)

The processes are those of `pool.py`, confined and limited as on this host. Several gradings of a run share the
places.
"""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from foresail.actors import (
    ActorFailed,
    Line,
    Message,
    drain,
    end_actor,
    enter,
    room_for,
    send_order,
    start_actor,
)
from foresail.ray_cluster import this_node
from foresail.recipe.estimates.placement import grader_room
from foresail.recipe.tables.cluster import Cluster
from foresail.rewards.grading import Grader
from foresail.rewards.hosted_grading import HostedGrading, Task
from foresail.rewards.pool import GradingPool
from foresail.runlog.actor_log import LogCopy, LogFile


@contextmanager
def grader_hosts(cluster: Cluster, logs: Path) -> Iterator[GraderHosts | None]:
    """The cluster is open, where it is Ray's."""
    if not cluster.grader_hosts:
        yield None
        return
    with room_for([grader_room(cluster)] * cluster.grader_hosts, "SPREAD", "grader hosts") as places:
        # reserved once for all gradings of the run
        yield GraderHosts(
            places=[{**place, "num_cpus": 0} for place in places],
            cpus=cluster.grader_cpus,
            logs=logs.absolute(),
        )


@dataclass(frozen=True, kw_only=True)
class GraderHosts:
    """`places` are Ray's options for an actor in each."""

    places: Sequence[Mapping[str, Any]]
    cpus: int  # of each
    logs: Path
    numbers: Iterator[int] = field(default_factory=count)  # of the gradings

    def open(self, grader: Grader, *, workers: int, seconds: float) -> HostedGrading:
        """A grading with so many processes in each place."""
        plan = PoolPlan(
            grader=grader, workers=workers, seconds=seconds, folder=str(Path.cwd()), paths=tuple(sys.path)
        )
        grading, home = next(self.numbers), this_node()

        def start(number: int) -> RayHost:
            path = self.logs / f"grading-{grading}-{number}.log"
            return RayHost(f"grader host {number}", plan, self.places[number], LogFile(path=path, home=home))

        return HostedGrading(start, num_hosts=len(self.places), workers=workers)


@dataclass(frozen=True, kw_only=True)
class PoolPlan:
    """The settings for a pool on another host; relative paths begin in `folder`."""

    grader: Grader
    workers: int
    seconds: float
    folder: str
    paths: tuple[str, ...]  # where modules are looked for


class RayHost:
    """See `hosted_grading.Host`."""

    def __init__(self, name: str, plan: PoolPlan, place: Mapping[str, Any], log: LogFile) -> None:
        self.name = name
        self.actor = start_actor(GraderActor, place, plan, log)
        self.line, self.log = Line(self.actor), LogCopy(log.path)

    def send(self, tasks: Sequence[Task]) -> None:
        send_order(self.actor, "grade", tasks)

    def receive(self) -> list[Message]:
        messages = [message for message in self.line.receive(0) if not self.log.takes(message)]
        for kind, content in messages:
            if kind == "unloadable":
                raise ValueError(f"{self.name}: {content}")
            if kind == "broken":
                raise ActorFailed(f"{self.name}: {content}")
        self.line.check_silence()
        return messages

    @property
    def news(self) -> Future[Any]:
        return self.line.listening

    def close(self) -> None:
        end_actor(self.actor)


class GraderActor:
    """The actor: a pool, and the messages it sends."""

    def __init__(self, plan: PoolPlan, log: LogFile) -> None:
        self.log = log.open(this_node())
        self.messages: queue.SimpleQueue[Message] = queue.SimpleQueue()
        threading.Thread(target=self._load, args=(plan,), daemon=True).start()

    def grade(self, tasks: Sequence[Task]) -> None:
        for number, part, pairs in tasks:
            match part:
                case "whole":
                    future: Future[Any] = self.pool.submit(*pairs[0])
                case "early":
                    future = self.pool.submit_early(*pairs[0])
                case "group":
                    future = self.pool.submit_group(pairs)
            future.add_done_callback(partial(self._tell, number))

    def listen(self, seconds: float) -> list[Message]:
        messages = drain(self.messages, seconds)
        return [*self.log.news(), *messages]

    def _load(self, plan: PoolPlan) -> None:
        try:
            enter(plan.folder)
            sys.path += [path for path in plan.paths if path not in sys.path]
            self.pool = TellingPool(plan, self.messages)
            self.pool.check()
        except Exception as error:
            self.messages.put(("unloadable", str(error)))
        else:
            self.messages.put(("ready", self.pool.traits))

    def _tell(self, number: int, done: Future[Any]) -> None:
        if (error := done.exception()) is not None:
            self.messages.put(("broken", f"{type(error).__name__}: {error}"))
            return
        verdicts = done.result()
        self.messages.put(("verdicts", (number, verdicts if isinstance(verdicts, list) else [verdicts])))


class TellingPool(GradingPool):
    """A pool whose first error is sent to the run."""

    def __init__(self, plan: PoolPlan, messages: queue.SimpleQueue[Message]) -> None:
        super().__init__(plan.grader, workers=plan.workers, seconds=plan.seconds)
        self.messages = messages

    def log_first_failure(self, trace: str) -> None:
        if trace and not self.failure_logged:
            self.failure_logged = True
            self.messages.put(("trace", trace))
