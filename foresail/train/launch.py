"""Starting a run's ranks: processes of this machine, or those that torchrun has started already.

    with open_ranks(recipe.cluster, recipe.run) as world:   # rank 0, which is this process
        …

This process leads, so the terminal, a script's own functions and what the stage returns are where they were. The
followers are processes of their own, in `follow`; what they print is in the run's folder. One that fails ends the
run: what is raised here is its error. Without rank 0 no follower goes on.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
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
from foresail.recipe.cluster import Cluster, group_mistakes, torchrun_place
from foresail.records import RunStopped
from foresail.train.ranks import joined
from foresail.train.trainer import Opening, obey
from foresail.world import ONE_PROCESS, World

LOGS = "ranks"  # folder in that of the run
A_MOMENT = 10.0  # seconds until a process whose connection broke is found dead
HERE = "127.0.0.1"
PATIENCE = 600.0  # seconds for a process to start
STUCK = 120.0  # seconds until a process that cannot be interrupted is ended
SIGNAL = getattr(signal, "SIGUSR2", signal.SIGTERM)  # Windows has none


class RankLost(RunStopped):
    """A follower was killed; what is on the disk is whole."""


class RankFailed(RuntimeError):
    """A follower failed, with its traceback."""


@contextlib.contextmanager
def open_ranks(cluster: Cluster, run: parts.Run) -> Iterator[World]:
    """The world of rank 0, whose followers have joined. They are told to end when the block does."""
    for mistake in group_mistakes(cluster):
        raise ValueError(mistake)
    if (place := torchrun_place()) is not None:
        assert place.rank == 0, "other ranks follow"
        if cluster.ranks not in (1, place.size):
            raise ValueError(
                f"cluster.ranks is {cluster.ranks}, and torchrun has started {place.size} processes; leave "
                "cluster.ranks out"
            )
        device = own_device(run.device, place.local_rank)
        with joined(place.rank, place.size, torchrun_store(), device, context=cluster.context) as world:
            yield world
            world.share(None)
    elif cluster.ranks == 1:
        yield ONE_PROCESS
    else:
        with started(cluster, run) as world:
            yield world


@contextlib.contextmanager
def started(cluster: Cluster, run: parts.Run) -> Iterator[World]:
    device, size, context = own_device(run.device, 0), cluster.ranks, cluster.context
    if device.type == "cuda" and torch.cuda.device_count() < size:
        raise ValueError(
            f"cluster.ranks = {size} wants as many GPUs, and {torch.cuda.device_count()} are visible; set it lower"
        )
    store = dist.TCPStore(HERE, 0, is_master=True, wait_for_workers=False)
    followers = [Follower(rank, cluster, store.port, run) for rank in range(1, size)]
    try:
        for follower in followers:
            follower.wait_for_start()
        with (
            interrupting(followers),
            on_this_host(),
            joined(0, size, store, device, context=context) as world,
        ):
            try:
                yield world
                world.share(None)
            except Exception as error:  # before the others can find this rank gone
                if (failure := first_failure(followers, error)) is not None and failure is not error:
                    raise failure from error
                raise
        for follower in followers:
            follower.process.join(A_MOMENT)
    finally:
        for follower in followers:
            follower.close()


def first_failure(followers: Sequence[Follower], error: Exception) -> Exception | None:
    """A broken connection is another's death, whose error came first."""
    deadline = time.monotonic() + (A_MOMENT if isinstance(error, RuntimeError) else 0.0)
    while True:
        if failed := [follower for follower in followers if follower.failure is not None]:
            return min(failed, key=lambda follower: follower.failed_at).failure
        left = deadline - time.monotonic()
        if left <= 0:
            return None
        wait([follower.process.sentinel for follower in followers], timeout=left)


@contextlib.contextmanager
def interrupting(followers: Sequence[Follower]) -> Iterator[None]:
    """Inside, the death of a follower interrupts whatever the main thread is at, as Ctrl-C would.

    A thread that waits for the dead in a call of a library cannot be interrupted: it has a while to find out.
    """
    over = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def tell(*_: object) -> None:
        if not over.is_set() and (failure := first_failure(followers, Exception())) is not None:
            raise failure

    def watch() -> None:
        there = {follower.process.sentinel: follower for follower in followers}
        while there and not over.is_set():
            for sentinel in wait([*there], timeout=1.0):
                follower = there.pop(sentinel)
                follower.process.join(A_MOMENT)  # its pipe ends a moment before it does
                if follower.failure is None or over.is_set():
                    continue
                _thread.interrupt_main(SIGNAL)
                if not over.wait(STUCK):
                    print(f"error: {follower.failure}", file=sys.stderr, flush=True)
                    os._exit(1)

    before = signal.signal(SIGNAL, tell)
    threading.Thread(target=watch, name="ranks", daemon=True).start()
    try:
        yield
    finally:
        over.set()
        signal.signal(SIGNAL, before)


class Follower:
    """One of the processes that this one leads."""

    def __init__(self, rank: int, cluster: Cluster, port: int, run: parts.Run) -> None:
        from foresail.rollout.worker import hidden_main  # the engine comes with it

        self.rank, self.folder = rank, run.folder
        self.pipe, theirs = processes.Pipe(duplex=False)
        arguments = (rank, cluster, port, run.device, theirs)
        context: Any = processes.get_context("spawn")
        self.process = context.Process(target=follow_here, args=arguments, daemon=True, name=f"rank {rank}")
        with hidden_main():
            self.process.start()
        theirs.close()
        self.told: Exception | None = None
        # a killed one does not say when, but that others lost their connection came after it
        self.failed_at = 0.0

    def wait_for_start(self) -> None:
        """It takes seconds; from then on all ranks can find each other."""
        wait([self.pipe, self.process.sentinel], timeout=PATIENCE)
        if self.failure is not None:
            raise self.failure

    @property
    def failure(self) -> Exception | None:
        """What ended it, if that was no success."""
        with contextlib.suppress(EOFError, OSError):
            while self.told is None and self.pipe.poll():
                if (message := self.pipe.recv()) is not None:
                    kind, text, self.failed_at = message
                    self.told = kind(text)
        if self.told is None and not self.process.is_alive() and self.process.exitcode != 0:
            code = self.process.exitcode
            how = f"with code {code}" if code > 0 else f"by signal {-code} (memory?)"
            self.told = RankLost(
                f"rank {self.rank} was ended {how}; what it said is in {log_path(self.folder, self.rank)}. The "
                f"last checkpoint is whole: foresail resume {self.folder}"
            )
        return self.told

    def close(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


# In a follower's process.


def follow_here(rank: int, cluster: Cluster, port: int, device: str, failures: Connection) -> None:
    """A process that `started` has started; its first error goes to rank 0."""
    threading.Thread(target=end_with_parent, daemon=True).start()
    try:
        failures.send(None)  # it has come so far
        with on_this_host():
            store = dist.TCPStore(HERE, port)
            follow(rank, cluster.ranks, store, own_device(device, rank), context=cluster.context)
    except Exception as error:
        traceback.print_exc()
        with contextlib.suppress(OSError):
            failures.send((*describe_failure(rank, error), time.time()))
        sys.stderr.flush()
        os._exit(1)  # nothing that waits for other ranks is waited for


def describe_failure(rank: int, error: Exception) -> tuple[type[Exception], str]:
    """What a user can mend is told as it is; all else with its traceback."""
    if isinstance(error, RunStopped | ValueError | OSError) and type(error).__module__.startswith(
        ("builtins", "foresail")
    ):
        return (RunStopped if isinstance(error, RunStopped) else ValueError), f"rank {rank}: {error}"
    return RankFailed, f"rank {rank} failed:\n{''.join(traceback.format_exception(error))}"


def follow(rank: int, size: int, store: Any, device: torch.device, *, context: int) -> None:
    """A rank other than 0, to its end. Signals that ask for an end are rank 0's to answer."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    with joined(rank, size, store, device, context=context) as world:
        opening: Opening[Any] | None = world.share(None)
        if opening is None:  # it was over before it began
            return
        print_to(log_path(opening.recipe.run.folder, rank))
        print(f"rank {rank} of {size}, process {os.getpid()}", flush=True)
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


def follow_torchrun(cluster: Cluster, run: parts.Run) -> None:
    """Where torchrun has started this process as another rank than 0: follow to the end of the run, and exit."""
    place = torchrun_place()
    if place is None or place.rank == 0:
        return
    terminal = os.dup(2)
    try:
        device = own_device(run.device, place.local_rank)
        follow(place.rank, place.size, torchrun_store(), device, context=cluster.context)
    except Exception as error:  # to the log, and to those who watch
        os.write(terminal, f"{describe_failure(place.rank, error)[1]}\n".encode())
        raise
    sys.exit(0)


def torchrun_store() -> Any:
    store, _, _ = next(dist.rendezvous("env://"))
    return store


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
