"""Starting a run's ranks: processes of this machine, or those that torchrun has started already.

    with open_ranks(recipe.cluster, recipe.run) as world:   # rank 0, which is this process
        …

This process leads, so the terminal, a script's own functions and what the stage returns are where they were. The
followers are processes of their own, in `follow`; what they print is in the run's folder. One that fails ends the
run: what is raised here is its error. Without rank 0 no follower goes on.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from multiprocessing import parent_process
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as processes

from foresail.model.determinism import deterministic
from foresail.model.device import choose_device
from foresail.model.linear import batch_invariant
from foresail.recipe import parts
from foresail.recipe.cluster import Cluster
from foresail.records import RunStopped
from foresail.rollout.worker import hidden_main
from foresail.train.ranks import joined
from foresail.train.trainer import Opening, obey
from foresail.world import ONE_PROCESS, World

LOGS = "ranks"  # folder in that of the run
A_MOMENT = 10.0  # seconds until a process whose connection broke is found dead
HERE = "127.0.0.1"
TORCHRUN = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")


class RankLost(RunStopped):
    """A follower was killed; what is on the disk is whole."""


class RankFailed(RuntimeError):
    """A follower failed, with its traceback."""


@contextlib.contextmanager
def open_ranks(cluster: Cluster, run: parts.Run) -> Iterator[World]:
    """The world of rank 0, whose followers have joined. They are told to end when the block does."""
    if (place := torchrun_place()) is not None:
        rank, size, local_rank = place
        assert rank == 0, "other ranks follow"
        if cluster.ranks not in (1, size):
            raise ValueError(
                f"cluster.ranks is {cluster.ranks} and torchrun started {size} processes; leave cluster.ranks out"
            )
        with joined(rank, size, torchrun_store(), own_device(run.device, local_rank)) as world:
            yield world
            world.share(None)
    elif cluster.ranks == 1:
        yield ONE_PROCESS
    else:
        with started(cluster.ranks, run) as world:
            yield world


@contextlib.contextmanager
def started(size: int, run: parts.Run) -> Iterator[World]:
    device = own_device(run.device, 0)
    if device.type == "cuda" and torch.cuda.device_count() < size:
        raise ValueError(
            f"cluster.ranks = {size} wants as many GPUs, and {torch.cuda.device_count()} are visible; set it lower"
        )
    store = dist.TCPStore(HERE, 0, is_master=True, wait_for_workers=False)
    followers = [Follower(rank, size, store.port, run) for rank in range(1, size)]
    try:
        with on_this_host(), joined(0, size, store, device) as world:
            yield world
            world.share(None)
    except Exception as error:
        raise_first(followers, error)
        raise
    finally:
        for follower in followers:
            follower.close()


def raise_first(followers: list[Follower], error: Exception) -> None:
    """A broken connection is another's death: its error is the first one, and is raised in the place of this."""
    deadline = time.monotonic() + (A_MOMENT if isinstance(error, RuntimeError) else 0.0)
    while True:
        for follower in followers:
            if (failure := follower.failure()) is not None:
                raise failure from error
        left = deadline - time.monotonic()
        if left <= 0:
            return
        wait([follower.process.sentinel for follower in followers], timeout=left)


class Follower:
    """One of the processes that this one leads."""

    def __init__(self, rank: int, size: int, port: int, run: parts.Run) -> None:
        self.rank, self.folder = rank, run.folder
        self.pipe, theirs = processes.Pipe(duplex=False)
        arguments = (rank, size, port, run.device, theirs)
        context: Any = processes.get_context("spawn")
        self.process = context.Process(target=follow_here, args=arguments, daemon=True, name=f"rank {rank}")
        with hidden_main():
            self.process.start()
        theirs.close()

    def failure(self) -> Exception | None:
        """What ended it, if it is not at work any more."""
        with contextlib.suppress(EOFError, OSError):
            if self.pipe.poll():
                kind, text = self.pipe.recv()
                return kind(text)
        if self.process.is_alive() or self.process.exitcode == 0:
            return None
        return RankLost(
            f"rank {self.rank} was ended by signal {-self.process.exitcode} (memory?); what it said is in "
            f"{log_path(self.folder, self.rank)}. The last checkpoint is whole: foresail resume {self.folder}"
        )

    def close(self) -> None:
        """It has ended, or is ended now."""
        if sys.exc_info()[0] is None:
            self.process.join(A_MOMENT)
        self.process.kill()
        self.process.join()
        self.pipe.close()


# In a follower's process.


def follow_here(rank: int, size: int, port: int, device: str, failures: Connection) -> None:
    """A process that `started` has started; its first error goes to rank 0."""
    threading.Thread(target=end_with_parent, daemon=True).start()
    try:
        with on_this_host():
            follow(rank, size, dist.TCPStore(HERE, port), own_device(device, rank))
    except Exception as error:
        traceback.print_exc()
        with contextlib.suppress(OSError):
            failures.send(describe_failure(rank, error))
        sys.stderr.flush()
        os._exit(1)  # nothing that waits for other ranks is waited for


def describe_failure(rank: int, error: Exception) -> tuple[type[Exception], str]:
    """What a user can mend is told as it is; all else with its traceback."""
    if isinstance(error, RunStopped | ValueError | OSError) and type(error).__module__.startswith(
        ("builtins", "foresail")
    ):
        return (RunStopped if isinstance(error, RunStopped) else ValueError), f"rank {rank}: {error}"
    return RankFailed, f"rank {rank} failed:\n{''.join(traceback.format_exception(error))}"


def follow(rank: int, size: int, store: Any, device: torch.device) -> None:
    """A rank other than 0, to its end. Signals that ask for an end are rank 0's to answer."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    with joined(rank, size, store, device) as world:
        opening: Opening[Any] | None = world.share(None)
        if opening is None:  # it was over before it began
            return
        print_to(log_path(opening.recipe.run.folder, rank))
        with deterministic(opening.deterministic), batch_invariant(opening.batch_invariant):
            obey(world, device, opening)


def end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)


def print_to(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(file, stream)


def log_path(folder: Path, rank: int) -> Path:
    return folder / LOGS / f"rank_{rank}.log"


# Places.


def torchrun_place() -> tuple[int, int, int] | None:
    """Rank, number of ranks and rank on this host, where torchrun has started this process."""
    if not all(name in os.environ for name in TORCHRUN):
        return None
    return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), int(os.environ["LOCAL_RANK"])


def torchrun_store() -> Any:
    from torch.distributed import rendezvous

    store, _, _ = next(rendezvous("env://"))
    return store


def follows() -> bool:
    """Whether torchrun has started this process as another rank than 0."""
    place = torchrun_place()
    return place is not None and place[0] > 0


def follow_torchrun(run: parts.Run) -> None:
    place = torchrun_place()
    assert place is not None
    rank, size, local_rank = place
    follow(rank, size, torchrun_store(), own_device(run.device, local_rank))


def own_device(wanted: str, local_rank: int) -> torch.device:
    device = choose_device(wanted)
    return torch.device("cuda", local_rank) if device.type == "cuda" else device


@contextlib.contextmanager
def on_this_host() -> Iterator[None]:
    """gloo opens ports without a password: those of one host's ranks are not for others."""
    name = "GLOO_SOCKET_IFNAME"
    if name in os.environ or not sys.platform.startswith("linux"):
        yield
        return
    os.environ[name] = "lo"
    try:
        yield
    finally:
        del os.environ[name]
