"""Followers that are actors of a Ray cluster, on as few hosts as have room for them.

They meet where rank 0 is: on this host's own address if all of them are here, else on the one that Ray knows it by.
"""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

import torch.distributed as dist

from foresail.actors import (
    PATIENCE,
    ActorFailed,
    ActorLost,
    Line,
    Message,
    drain,
    end_actor,
    enter,
    room_for,
    send_order,
    start_actor,
)
from foresail.recipe.estimates.machine import Room
from foresail.train.ranks.follower import Failure, RankFailed, follow, rank_lost
from foresail.train.ranks.followers import FollowerGroup
from foresail.train.ranks.rendezvous import HERE, between_hosts, on_this_host, open_store

NOTICE_SECONDS = 60.0  # until Ray reports that a host is gone
MEETING = timedelta(minutes=1)


@dataclass(frozen=True, kw_only=True)
class RankPlace:
    """A rank among the others, and where they meet."""

    rank: int
    size: int
    address: str
    port: int
    device: str


@contextlib.contextmanager
def ray_followers(size: int, room: Room, folder: Path, device: str) -> Iterator[FollowerGroup]:
    """`folder` is the run's, `device` what rank 0 computes on."""
    from ray.util import get_node_ip_address

    with room_for([room] * (size - 1), "PACK", "trainer ranks besides rank 0") as places:
        followers = [RayFollower(rank, folder, options) for rank, options in enumerate(places, start=1)]
        try:
            here = get_node_ip_address()
            hosts = {follower.wait_for("here") for follower in followers}
            address = HERE if hosts == {here} else here
            store = open_store(address)
            for follower in followers:
                rank, port = follower.rank, store.port
                follower.begin(RankPlace(rank=rank, size=size, address=address, port=port, device=device))
            for follower in followers:
                follower.wait_for("met")
            network = network_of(address, here)
            yield FollowerGroup(
                followers=followers, store=store, network=network, notice_seconds=NOTICE_SECONDS
            )
        finally:
            for follower in followers:
                follower.kill()


def network_of(meeting: str, own: str) -> AbstractContextManager[None]:
    return on_this_host() if meeting == HERE else between_hosts(own)


class RayFollower:
    """See `followers.Follower`."""

    def __init__(self, rank: int, folder: Path, options: dict[str, Any]) -> None:
        self.rank, self.folder = rank, folder
        self.actor = start_actor(RankActor, options, str(Path.cwd()))
        self.line, self.lock = Line(self.actor), threading.Lock()
        self.messages: dict[str, str] = {}
        self.error: Exception | None = None
        self.failed_at = 0.0

    def wait_for(self, word: Literal["here", "met"]) -> str:
        """What it says with it; its error, if that is what comes."""
        while word not in self.messages:
            with self.lock:
                self._listen(PATIENCE)
            if self.error is not None:
                raise self.error
        return self.messages[word]

    def begin(self, place: RankPlace) -> None:
        send_order(self.actor, "begin", place)

    @property
    def failure(self) -> Exception | None:
        with self.lock:
            self._listen(0)
            return self.error

    @property
    def ended(self) -> bool:
        return self.failure is not None or "done" in self.messages

    def kill(self) -> None:
        end_actor(self.actor)

    def _listen(self, seconds: float) -> None:
        if self.error is not None or "done" in self.messages:
            return
        try:
            for word, content in self.line.receive(seconds):
                if word != "failed":
                    self.messages[word] = content
                elif self.error is None:
                    self.error, self.failed_at = content.error, time.time()
            self.line.check_silence()
        except ActorLost as lost:
            where = self.messages.get("here", "no host yet")
            self.error = rank_lost(self.folder, self.rank, f"on {where} is lost: {lost}")
        except ActorFailed as failed:
            self.error = RankFailed(f"rank {self.rank} failed:\n{failed}")


class RankActor:
    """What Ray runs. The rank runs on a thread of its own, so that the actor can answer calls meanwhile.

    It says `here` with its host's address, `met` once it has found rank 0, and at last `failed` or `done`.
    """

    def __init__(self, folder: str) -> None:
        from ray.util import get_node_ip_address

        self.host: str = get_node_ip_address()
        self.folder, self.messages = folder, queue.SimpleQueue[Message]()
        self.messages.put(("here", self.host))

    def begin(self, place: RankPlace) -> None:
        threading.Thread(target=self._follow, args=(place,), daemon=True).start()

    def listen(self, seconds: float) -> list[Message]:
        return drain(self.messages, seconds)

    def _follow(self, place: RankPlace) -> None:
        def meet() -> Any:
            enter(self.folder)
            store = find_store(place.address, place.port)
            self.messages.put(("met", self.host))
            return store

        def tell(failure: Failure) -> None:
            self.messages.put(("failed", failure))

        with contextlib.suppress(Exception), network_of(place.address, self.host):  # it is told
            # of the GPUs it sees only those that Ray has given it
            follow(place.rank, place.size, meet, tell, device=place.device, local_rank=0)
            self.messages.put(("done", self.host))


def find_store(address: str, port: int) -> Any:
    try:
        return dist.TCPStore(address, port, timeout=MEETING)
    except dist.DistError as error:
        raise ValueError(
            f"host {socket.gethostname()} does not reach rank 0 at {address}:{port}; hosts of ranks connect to "
            f"each other on any port, so nothing may stand between them ({error})"
        ) from error
