"""Ranks that fail, hang or are killed: updates for `monkeypatch.setattr(sft, "update", …)`, and who kills."""

from __future__ import annotations

import os
import re
import signal
import time
from contextlib import suppress
from pathlib import Path

from command_line import PATIENCE

from foresail.recipe.stages.sft import Sft
from foresail.runlog.directory import RunDirectory
from foresail.train.ranks.follower import log_path
from foresail.train.trainer import Trainer


def fail_on_rank_1(trainer: Trainer[Sft], *_: object) -> dict[str, float]:
    if trainer.world.rank == 1:
        raise KeyError("a mistake of ours")
    return {"loss": float(trainer.world.sum(1))}


def fail_while_rank_2_hangs(trainer: Trainer[Sft], *_: object) -> dict[str, float]:
    """Rank 0 waits for both, and would wait for ever for the second."""
    if trainer.world.rank == 2:
        time.sleep(10 * PATIENCE)
    return fail_on_rank_1(trainer)


def refuse_on_rank_1(trainer: Trainer[Sft], *_: object) -> dict[str, float]:
    if trainer.world.rank == 1:
        raise ValueError("the disk of rank 1 is full; free some space")
    return {"loss": float(trainer.world.sum(1))}


def fail_on_rank_0(trainer: Trainer[Sft], *_: object) -> dict[str, float]:
    if trainer.world.rank == 0:
        raise RuntimeError("of rank 0 itself")
    return {"loss": float(trainer.world.sum(1))}


def follower(folder: Path, rank: int = 1) -> int:
    """The process of a rank, as its log tells it."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        path = log_path(folder, rank)
        if path.exists() and (found := re.search(r"process (\d+)", path.read_text())):
            return int(found[1])
        time.sleep(0.01)
    raise AssertionError(f"rank {rank} never began")


def kill_follower(folder: Path, steps: int, delay: float) -> None:
    """After so many steps, and a moment."""
    process, run = follower(folder), RunDirectory(folder)
    while is_running(process) and len(run.read_metrics()) < steps:
        time.sleep(0.001)
    time.sleep(delay)
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


def is_running(process: int) -> bool:
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"
