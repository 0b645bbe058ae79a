"""Replaces lost engines: a new one starts beside the run, while the others continue."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from statistics import fmean
from typing import Protocol

from foresail.rollout.instance import Instance, InstanceLost
from foresail.rollout.remote.instance import PATIENCE, RemoteInstance

MAX_FAILED_STARTS = 3  # in a row: engines of one place that end before their first report


class Replacements(Protocol):
    @property
    def pending(self) -> bool:
        """Whether a replacement is starting."""

    def lost(self, name: str) -> None: ...

    def ready(self) -> list[Instance]:
        """The replacements that have become ready, each once."""

    def take_figures(self) -> dict[str, float]: ...

    def close(self) -> None: ...


class NoReplacements:
    """Lost instances are not replaced."""

    pending = False

    def lost(self, name: str) -> None: ...

    def ready(self) -> list[Instance]:
        return []

    def take_figures(self) -> dict[str, float]:
        return {}

    def close(self) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Starting:
    place: str
    instance: RemoteInstance
    since: float


class Restarts:
    """`start(name)` starts an engine like the lost one; "worker 0" is followed by "worker 0.1".

    It is abandoned after `seconds`, for example if the cluster has no room for it.
    """

    def __init__(self, start: Callable[[str], RemoteInstance], *, seconds: float = PATIENCE) -> None:
        self.start, self.seconds = start, seconds
        self.starting: list[Starting] = []
        self.followers: dict[str, Starting] = {}  # by name
        self.number: dict[str, int] = {}  # place -> replacements started there
        self.failures: dict[str, int] = {}
        self.num_lost, self.recoveries = 0, list[float]()

    @property
    def pending(self) -> bool:
        return bool(self.starting)

    def lost(self, name: str) -> None:
        self.num_lost += 1
        follower = self.followers.pop(name, None)
        place = name if follower is None else follower.place
        never_reported = follower is not None and not follower.instance.num_reports
        self._start(place, failures=self.failures.get(place, 0) + 1 if never_reported else 0)

    def _start(self, place: str, *, failures: int) -> None:
        self.failures[place] = failures
        if failures < MAX_FAILED_STARTS:
            number = self.number[place] = self.number.get(place, 0) + 1
            instance = self.start(f"{place}.{number}")
            self.starting.append(Starting(place=place, instance=instance, since=time.monotonic()))

    def ready(self) -> list[Instance]:
        ready: list[Instance] = []
        for follower in [*self.starting]:
            try:
                is_ready = follower.instance.is_ready
            except InstanceLost:
                self._give_up(follower)
                self._start(follower.place, failures=self.failures[follower.place] + 1)
                continue
            waited = time.monotonic() - follower.since
            if is_ready:
                self.starting.remove(follower)
                self.followers[follower.instance.name] = follower
                self.recoveries.append(waited)
                ready.append(follower.instance)
            elif waited > self.seconds:
                self._give_up(follower)
        return ready

    def _give_up(self, follower: Starting) -> None:
        self.starting.remove(follower)
        with suppress(InstanceLost):
            follower.instance.close()

    def take_figures(self) -> dict[str, float]:
        figures: dict[str, float] = {}
        if self.num_lost:
            figures["rollout/instances_lost"] = self.num_lost
        if self.recoveries:
            figures["rollout/recovery_s"] = fmean(self.recoveries)
        self.num_lost, self.recoveries = 0, []
        return figures

    def close(self) -> None:
        for follower in [*self.starting]:
            self._give_up(follower)
