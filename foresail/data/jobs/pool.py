"""A pool of processes for work on many files; stopped or killed, the same call resumes.

    def open_counter() -> Callable[[str, Path], dict[str, int]]:    # called once in every process
        return lambda name, path: {"words": len(path.read_text().split())}

    pieces = {"part-0": Path("a.txt"), "part-1": Path("b.txt")}
    run_pieces(pieces, open_counter, folder=Path("counts"), workers=2)
    -> {"part-0": {"words": 812}, "part-1": {"words": 790}}

A piece is finished when its receipt is in the folder (`part-0.receipt.json`, which holds what the worker returned).
A worker that writes files puts each in place in one move (`runlog.atomic`); the receipt comes last. The order of
pieces and the number of processes change no result.

A process that dies ends the run with an error, once the others have done what they can. With a `Rescue` its piece
is tried again in a new process instead.
"""

from __future__ import annotations

import json
import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, TypeVar, cast

from foresail.data.jobs.rescue import Rescue, Watch, name_exit
from foresail.runlog.atomic import write_text
from foresail.signals import die_with_parent, shielded_from_interrupts

Piece = TypeVar("Piece")
Receipt = dict[str, Any]  # as JSON
Worker = Callable[[str, Piece], Receipt]

RECEIPT = ".receipt.json"
POLL_SECONDS = 0.5
USER_ERRORS = (ValueError, OSError, ImportError)  # their messages say what to do; others are bugs


def run_pieces(
    pieces: Mapping[str, Piece],
    open_worker: Callable[[], Worker[Piece]],
    *,
    folder: Path,
    workers: int = 0,
    note: Callable[[int, int], None] = lambda done, total: None,
    rescue: Rescue | None = None,
) -> dict[str, Receipt]:
    """The receipts of all pieces, in their order. Pieces and `open_worker` are pickled.

    `workers` 0: one for every core. `note` is called with the finished and total pieces, now and then.
    """
    unfinished = [name for name in pieces if not receipt_file(folder, name).exists()]
    workers = min(workers or len(os.sched_getaffinity(0)), len(unfinished))
    note(len(pieces) - len(unfinished), len(pieces))
    if workers > 1 or (unfinished and rescue is not None):
        work = {name: pieces[name] for name in unfinished}
        Pool(work, open_worker, folder, rescue).run(
            workers, lambda done: note(len(pieces) - len(unfinished) + done, len(pieces))
        )
    elif unfinished:
        worker = open_worker()
        for done, name in enumerate(unfinished, start=len(pieces) - len(unfinished) + 1):
            finish(folder, name, worker(name, pieces[name]))
            note(done, len(pieces))
    return {name: json.loads(receipt_file(folder, name).read_text(encoding="utf-8")) for name in pieces}


@dataclass
class Slot:
    """A process, the pipe to it, and the piece it works on."""

    process: BaseProcess
    channel: Connection
    watch: Watch
    piece: str | None = None


class Pool:
    """Hands pieces to processes, one at a time each, until all are done or one reports an error."""

    def __init__(
        self,
        pieces: Mapping[str, Piece],
        open_worker: Callable[[], Worker[Piece]],
        folder: Path,
        rescue: Rescue | None,
    ) -> None:
        self.pieces, self.open_worker, self.folder, self.rescue = pieces, open_worker, folder, rescue
        self.queue = deque(pieces)
        self.slots: list[Slot] = []
        self.done = 0
        self.deaths: list[tuple[int, str | None]] = []  # exit codes, and pieces in hand

    def run(self, workers: int, note: Callable[[int], None]) -> None:
        try:
            self.slots = [self.start() for _ in range(workers)]
            while self.slots:
                ready = wait([slot.channel for slot in self.slots], timeout=POLL_SECONDS)
                for slot in [slot for slot in self.slots if slot.channel in ready]:
                    self.answer(slot)
                if self.rescue is not None:
                    self.stop_stalled(self.rescue)
                note(self.done)
        finally:
            for slot in self.slots:
                slot.process.terminate()
                slot.process.join()
        if self.done < len(self.pieces):
            raise ValueError(self.explain_deaths())

    def start(self) -> Slot:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(
            target=run_worker, args=(self.open_worker, self.folder, theirs, os.getpid()), daemon=True
        )
        with shielded_from_interrupts():
            process.start()
        theirs.close()
        return Slot(process, ours, Watch(process.pid or 0))

    def answer(self, slot: Slot) -> None:
        """A process is ready for a piece, has an error to report, or is gone."""
        try:
            error = slot.channel.recv()
            if error is not None:
                raise ValueError(error)
            self.done += slot.piece is not None
            slot.piece = self.queue.popleft() if self.queue else None
            slot.channel.send(None if slot.piece is None else (slot.piece, self.pieces[slot.piece]))
        except (EOFError, ConnectionError):
            slot.process.join()
            self.slots.remove(slot)
            self.replace(slot, slot.process.exitcode or 0)

    def replace(self, slot: Slot, code: int) -> None:
        """After the end of a process: another one takes its piece, if there is a rescue."""
        if slot.piece is None and code == 0:
            return
        if self.rescue is None or slot.piece is None:
            self.deaths.append((code, slot.piece))
            return
        self.rescue.after_death(slot.piece, slot.watch.stalled or name_exit(code))
        self.queue.appendleft(slot.piece)
        self.slots.append(self.start())

    def stop_stalled(self, rescue: Rescue) -> None:
        for slot in self.slots:
            if slot.piece is not None and slot.watch.is_stalled(slot.piece, rescue):
                slot.process.kill()

    def explain_deaths(self) -> str:
        in_hand = [f"{name} ({self.pieces[name]})" for _, name in self.deaths if name is not None]
        at = " at " + " and ".join(in_hand) if in_hand else ""
        codes = sorted({code for code, _ in self.deaths})
        return (
            f"a worker process died{at} (exit codes {codes}), and {len(self.pieces) - self.done} of "
            f"{len(self.pieces)} pieces are not done; run the same command again to finish them, with fewer "
            "--workers if memory was short"
        )


def run_worker(
    open_worker: Callable[[], Worker[Piece]], folder: Path, channel: Connection, parent: int
) -> None:
    """One process: asks for pieces until there is none."""
    die_with_parent(parent)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # every core has a process of its own
    try:
        worker = open_worker()
        channel.send(None)
        while (work := channel.recv()) is not None:
            name, piece = cast(tuple[str, Piece], work)
            finish(folder, name, worker(name, piece))
            channel.send(None)
    except EOFError:  # the parent is gone
        return
    except USER_ERRORS as error:
        channel.send(str(error))


def finish(folder: Path, name: str, receipt: Receipt) -> None:
    write_text(receipt_file(folder, name), json.dumps(receipt) + "\n")


def receipt_file(folder: Path, name: str) -> Path:
    return folder / f"{name}{RECEIPT}"
