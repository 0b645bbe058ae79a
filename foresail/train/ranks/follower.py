"""The main function of a follower: meet the other ranks, open the models, carry out rank 0's orders.

    follow(rank, size, meet, tell, device="cpu")

An error is sent to rank 0 before the connections close, so that rank 0 knows which rank failed first.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from foresail.model.determinism import deterministic
from foresail.model.device import choose_device
from foresail.model.linear import batch_invariant
from foresail.recipe.reading.out_of_memory import in_short, is_out_of_memory
from foresail.records import RunStopped
from foresail.runlog.process_log import ProcessLog, print_to
from foresail.train.ranks.process_world import joined
from foresail.train.trainer import FollowerStart, run_follower

LOGS = "ranks"  # folder in that of the run


class RankLost(RunStopped):
    """A follower was killed, or no longer answers; the files on the disk are complete."""


class RankFailed(RuntimeError):
    """A follower failed, with its traceback."""


class ConnectionBroken(RankFailed):
    """Another rank is gone; the cause is that rank's error."""


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A follower's error, as it is sent to rank 0."""

    kind: type[Exception]
    text: str

    @property
    def error(self) -> Exception:
        return self.kind(self.text)


Tell = Callable[[Failure], None]


def follow(
    rank: int, size: int, meet: Callable[[], Any], tell: Tell, *, device: str, local_rank: int
) -> None:
    """Runs a follower to its end. `meet` finds rank 0's store; `local_rank` is its number on its host."""
    with ExitStack() as exits:
        try:
            place = own_device(device, local_rank)
            world = exits.enter_context(joined(rank, size, meet(), place))
            opening: FollowerStart[Any] | None = world.broadcast(None)
            if opening is None:
                return
            opening.mark.find()
            world.all_gather(None)
            print_to(log_path(opening.recipe.run.folder, rank))
            print(f"rank {rank} of {size}, process {os.getpid()}", flush=True)
            with deterministic(opening.deterministic), batch_invariant(opening.batch_invariant):
                run_follower(world, place, opening)
        except Exception as error:
            traceback.print_exc()
            tell(to_failure(rank, error))
            raise


def to_failure(rank: int, error: Exception) -> Failure:
    """An error that a user can correct keeps its message; any other is sent with its traceback."""
    if isinstance(error, RunStopped | ValueError | OSError) and type(error).__module__.startswith(
        ("builtins", "foresail")
    ):
        kind = RunStopped if isinstance(error, RunStopped) else ValueError
        return Failure(kind=kind, text=f"rank {rank}: {error}")
    if is_out_of_memory(error):
        return Failure(kind=MemoryError, text=f"rank {rank}: {in_short(error)}")
    text = f"rank {rank} failed:\n{''.join(traceback.format_exception(error))}"
    return Failure(kind=ConnectionBroken if is_broken_connection(error) else RankFailed, text=text)


def is_broken_connection(error: BaseException) -> bool:
    """NCCL's and the store's errors are known by their type, gloo's by the file that they name."""
    return isinstance(error, dist.DistError) or (type(error) is RuntimeError and "gloo" in str(error))


def log_path(folder: Path, rank: int) -> Path:
    return folder / LOGS / f"rank_{rank}.log"


def rank_lost(folder: Path, rank: int, how: str, log: ProcessLog | None = None) -> RankLost:
    ending = (log.ends() if log is not None else "") or f"; its log is {log_path(folder, rank)}"
    return RankLost(f"rank {rank} {how}{ending}. The last checkpoint is whole: foresail resume {folder}")


def own_device(name: str, local_rank: int) -> torch.device:
    device = choose_device(name)
    return torch.device("cuda", local_rank) if device.type == "cuda" else device
