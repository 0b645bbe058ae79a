"""Followers that are processes of this host, one a GPU where it has some."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from multiprocessing import parent_process
from multiprocessing.connection import Connection, wait
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as processes

from foresail.recipe.tables import parts
from foresail.runlog.process_log import ProcessLog
from foresail.signals import shielded_from_interrupts
from foresail.train.ranks.follower import Failure, follow, log_path, rank_lost
from foresail.train.ranks.followers import FollowerGroup
from foresail.train.ranks.rendezvous import HERE, on_this_host, open_store

NOTICE_SECONDS = 10.0  # until a process whose connection broke is found dead
START_SECONDS = 600.0  # for a process to start


@contextlib.contextmanager
def local_followers(size: int, run: parts.Run, device: torch.device) -> Iterator[FollowerGroup]:
    if device.type == "cuda" and torch.cuda.device_count() < size:
        raise ValueError(
            f"cluster.ranks = {size} wants as many GPUs, and {torch.cuda.device_count()} are visible; set it lower"
        )
    store = open_store(HERE)
    followers = [LocalFollower(rank, size, store.port, run) for rank in range(1, size)]
    try:
        for follower in followers:
            follower.wait_for_start()
        yield FollowerGroup(
            followers=followers, store=store, network=on_this_host(), notice_seconds=NOTICE_SECONDS
        )
    finally:
        for follower in followers:
            follower.close()


class LocalFollower:
    """See `followers.Follower`."""

    def __init__(self, rank: int, size: int, port: int, run: parts.Run) -> None:
        from foresail.rollout.remote.worker import hidden_main  # the engine comes with it

        self.rank, self.folder, self.log = rank, run.folder, ProcessLog(log_path(run.folder, rank))
        self.pipe, theirs = processes.Pipe(duplex=False)
        context: Any = processes.get_context("spawn")
        arguments = (rank, size, port, run.device, theirs)
        self.process = context.Process(target=follow_here, args=arguments, daemon=True, name=f"rank {rank}")
        with hidden_main(), shielded_from_interrupts():
            self.process.start()
        theirs.close()
        self.error: Exception | None = None
        self.failed_at, self.lock = 0.0, threading.Lock()

    def wait_for_start(self) -> None:
        """Blocks for seconds, until the ranks can find each other."""
        wait([self.pipe, self.process.sentinel], timeout=START_SECONDS)
        if self.failure is not None:
            raise self.failure

    @property
    def failure(self) -> Exception | None:
        with self.lock:
            with contextlib.suppress(EOFError, OSError):
                while self.error is None and self.pipe.poll():
                    if (message := self.pipe.recv()) is not None:
                        failure, self.failed_at = message
                        self.error = failure.error
            if self.error is None and not self.process.is_alive() and self.process.exitcode:
                code = self.process.exitcode
                how = f"with code {code}" if code > 0 else f"by signal {-code} (memory?)"
                self.error = rank_lost(self.folder, self.rank, f"was ended {how}", self.log)
            return self.error

    @property
    def ended(self) -> bool:
        with self.lock:
            return not self.process.is_alive()

    def kill(self) -> None:
        self.process.kill()

    def close(self) -> None:
        self.kill()
        self.process.join()
        self.pipe.close()


# In a follower's process.


def follow_here(rank: int, size: int, port: int, device: str, failures: Connection) -> None:
    """Runs one follower to its end. It ignores SIGINT and SIGTERM, which rank 0 handles."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    threading.Thread(target=end_with_parent, daemon=True).start()

    def tell(failure: Failure) -> None:
        with contextlib.suppress(OSError):
            failures.send((failure, time.time()))

    failures.send(None)  # it has started
    try:
        with on_this_host():
            meet = partial(dist.TCPStore, HERE, port)
            follow(rank, size, meet, tell, device=device, local_rank=rank)
    except Exception:  # `follow` has sent it
        sys.stderr.flush()
        os._exit(1)  # os._exit runs no cleanup, which could wait for other ranks


def end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)
