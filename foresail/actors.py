"""Ray's actors: room reserved for them, orders to them, their messages, and the detection of their loss.

    with room_for([Room(cpus=1, gpus=0)] * 3, "PACK", "trainer ranks") as places:
        line = Line(start_actor(Kind, places[0], …))
        line.receive(0)      # its messages since the last call

An actor has two groups of calls. `orders` run one after the other. `listen` waits for the actor's messages; one
such call is always pending, so its starter notices a message or a death without polling.
"""

from __future__ import annotations

import hashlib
import os
import queue
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, TimeoutError
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, Literal

from foresail.recipe.estimates.machine import Room

PACKAGE = Path(__file__).parent
Message = tuple[Any, Any]  # what it is, and its content
LISTEN_SECONDS = 5.0  # of one call to `listen`; any value works
PATIENCE = 600.0  # seconds for room, for a start, or until a silent actor counts as dead
GROUPS = {"orders": 1, "messages": 1}  # a thread each


class ActorLost(Exception):
    """It was killed, or its host is lost or silent: a replacement could do its work."""


class ActorSilent(ActorLost):
    """It no longer answers, or there was never room for it."""


class ActorFailed(RuntimeError):
    """It could not start, or its code failed: a replacement would fail too."""


@contextmanager
def room_for(
    rooms: Sequence[Room], strategy: Literal["PACK", "SPREAD"], what: str
) -> Iterator[list[dict[str, Any]]]:
    """Ray's options for an actor in each of the rooms, which are reserved together."""
    from ray.util import placement_group, remove_placement_group
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

    bundles = [{"CPU": room.cpus, "GPU": room.gpus} for room in rooms]
    group = placement_group(
        [{name: amount for name, amount in bundle.items() if amount} for bundle in bundles], strategy=strategy
    )
    try:
        if not group.wait(PATIENCE):
            raise ValueError(
                f"the cluster has had no room for the {len(rooms)} {what} for {PATIENCE:.0f} s (each wants "
                f"{bundles[0]}); bring more hosts, or ask for fewer"
            )
        yield [
            {
                "num_cpus": room.cpus,
                "num_gpus": room.gpus,
                "scheduling_strategy": PlacementGroupSchedulingStrategy(
                    placement_group=group, placement_group_bundle_index=number
                ),
            }
            for number, room in enumerate(rooms)
        ]
    finally:
        with suppress(Exception):  # the cluster may be gone
            remove_placement_group(group)


def start_actor(kind: type, options: Mapping[str, Any], *arguments: Any) -> Any:
    """Start an actor; it fails on a host with another version of Foresail."""
    import ray

    class Checked(kind):
        def __init__(self, code: str, *arguments: Any) -> None:
            check_code(code)
            super().__init__(*arguments)

    Checked.__name__ = Checked.__qualname__ = kind.__name__  # in Ray's logs
    actor = ray.remote(concurrency_groups=GROUPS, max_restarts=0)(Checked).options(**options)
    return actor.remote(code_here(), *arguments)


def end_actor(actor: Any) -> None:
    import ray

    with suppress(Exception):  # the cluster may be gone
        ray.kill(actor, no_restart=True)


def send_order(actor: Any, name: str, *arguments: Any) -> None:
    """Queue `actor.name(*arguments)` after its earlier orders; does not wait."""
    try:
        getattr(actor, name).options(concurrency_group="orders").remote(*arguments)
    except Exception as error:
        raise explain(error) from error


class Line:
    """Messages of an actor which has `listen`. `heard_at` is when it last answered, or was started."""

    def __init__(self, actor: Any) -> None:
        self.actor, self.heard_at = actor, time.monotonic()
        self.listening = self._listen()

    def receive(self, seconds: float) -> list[Message]:
        """The new messages, in order; waits up to `seconds` for the first."""
        if seconds <= 0 and not self.listening.done():
            return []
        try:
            messages = self.listening.result(timeout=seconds)
        except TimeoutError:
            return []
        except Exception as error:
            raise explain(error) from error
        self.heard_at = time.monotonic()
        self.listening = self._listen()
        return messages

    def check_silence(self) -> None:
        """Raise if the actor has not answered for too long, or was never started."""
        if time.monotonic() > self.heard_at + PATIENCE:
            raise ActorSilent(f"it has given no sign of life for {PATIENCE:.0f} s")

    def _listen(self) -> Future[list[Message]]:
        answer = self.actor.listen.options(concurrency_group="messages").remote(LISTEN_SECONDS)
        future: Future[list[Message]] = answer.future()
        return future


def explain(error: Exception) -> ActorLost | ActorFailed:
    from ray.exceptions import RayActorError

    if isinstance(error, RayActorError) and not error.actor_init_failed:
        return ActorLost("its process or its host was ended (memory?)")
    return ActorFailed(str(error))


@cache
def code_here() -> str:
    """A checksum of this package's files."""
    checksum = hashlib.sha256()
    for file in sorted(PACKAGE.rglob("*.py")):
        checksum.update(f"{file.relative_to(PACKAGE).as_posix()}\n".encode() + file.read_bytes())
    return checksum.hexdigest()


# In an actor.


def check_code(starters: str) -> None:
    if code_here() != starters:
        raise ValueError(
            f"host {socket.gethostname()} has another Foresail in {PACKAGE} than the run was started with; install "
            "the same one on all hosts, and leave it alone while the run goes on"
        )


def drain(messages: queue.SimpleQueue[Message], seconds: float) -> list[Message]:
    """All queued messages; waits up to `seconds` for the first."""
    messages_read: list[Message] = []
    with suppress(queue.Empty):
        messages_read.append(messages.get(timeout=seconds))
        while True:
            messages_read.append(messages.get_nowait())
    return messages_read


def enter(folder: str) -> None:
    """Change to the folder in which the run was started, so that relative paths mean the same."""
    try:
        os.chdir(folder)
    except OSError as error:
        raise ValueError(
            f"host {socket.gethostname()} cannot enter {folder}, where the run was started ({error.strerror}); "
            "start it in a folder that all hosts share"
        ) from error
