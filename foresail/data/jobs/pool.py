"""A pool of processes for work on many files; stopped or killed, the same call resumes.

    def open_counter() -> Callable[[str, Path], dict[str, int]]:    # called once in every process
        return lambda name, path: {"words": len(path.read_text().split())}

    pieces = {"part-0": Path("a.txt"), "part-1": Path("b.txt")}
    run_pieces(pieces, open_counter, folder=Path("counts"), workers=2)
    -> {"part-0": {"words": 812}, "part-1": {"words": 790}}

A piece is finished when its receipt is in the folder (`part-0.receipt.json`, which holds what the worker returned).
A worker that writes files puts each in place in one move (`runlog.atomic`); the receipt comes last. The order of
pieces and the number of processes change no result.
"""

from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from foresail.runlog.atomic import write_text
from foresail.signals import shielded_from_interrupts

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
) -> dict[str, Receipt]:
    """The receipts of all pieces, in their order. Pieces and `open_worker` are pickled.

    `workers` 0: one for every core. `note` is called with the finished and total pieces.
    """
    unfinished = [name for name in pieces if not receipt_file(folder, name).exists()]
    workers = min(workers or len(os.sched_getaffinity(0)), len(unfinished))
    note(len(pieces) - len(unfinished), len(pieces))
    if workers > 1:
        run_processes(pieces, unfinished, open_worker, folder, workers, note)
    elif unfinished:
        worker = open_worker()
        for done, name in enumerate(unfinished, start=len(pieces) - len(unfinished) + 1):
            finish(folder, name, worker(name, pieces[name]))
            note(done, len(pieces))
    return {name: json.loads(receipt_file(folder, name).read_text(encoding="utf-8")) for name in pieces}


def run_processes(
    pieces: Mapping[str, Piece],
    unfinished: Sequence[str],
    open_worker: Callable[[], Worker[Piece]],
    folder: Path,
    workers: int,
    note: Callable[[int, int], None],
) -> None:
    context = multiprocessing.get_context("spawn")
    next_place, errors = context.Value("q", 0), context.SimpleQueue()
    current = context.Array("q", [-1] * workers)  # the piece that each process works on
    work = [(name, pieces[name]) for name in unfinished]
    processes = [
        context.Process(
            target=run_worker,
            args=(work, open_worker, folder, next_place, current, rank, errors, os.getpid()),
            daemon=True,
        )
        for rank in range(workers)
    ]
    with shielded_from_interrupts():
        for process in processes:
            process.start()
    try:
        while running := [process for process in processes if process.is_alive()]:
            running[0].join(timeout=POLL_SECONDS)
            note(sum(receipt_file(folder, name).exists() for name in pieces), len(pieces))
            if not errors.empty():
                break
    finally:
        for process in processes:
            process.terminate()
            process.join()
    if not errors.empty():
        raise ValueError(errors.get())
    if missing := [name for name in unfinished if not receipt_file(folder, name).exists()]:
        died = [rank for rank, process in enumerate(processes) if process.exitcode]
        codes = sorted({processes[rank].exitcode or 0 for rank in died})
        in_hand = [work[current[rank]] for rank in died if current[rank] >= 0]
        at = " at " + " and ".join(f"{name} ({piece})" for name, piece in in_hand) if in_hand else ""
        raise ValueError(
            f"a worker process died{at} (exit codes {codes}), and {len(missing)} of {len(pieces)} pieces are not "
            "done; run the same command again to finish them, with fewer --workers if memory was short"
        )


def run_worker(
    work: Sequence[tuple[str, Piece]],
    open_worker: Callable[[], Worker[Piece]],
    folder: Path,
    next_place: Any,
    current: Any,
    rank: int,
    errors: Any,
    parent: int,
) -> None:
    """One process: takes the next free piece until none is left or its parent is gone."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # every core has a process of its own
    try:
        worker = open_worker()
        while os.getppid() == parent:
            with next_place.get_lock():
                place = next_place.value
                next_place.value += 1
            if place >= len(work):
                return
            current[rank] = place
            name, piece = work[place]
            finish(folder, name, worker(name, piece))
    except USER_ERRORS as error:
        errors.put(str(error))


def finish(folder: Path, name: str, receipt: Receipt) -> None:
    write_text(receipt_file(folder, name), json.dumps(receipt) + "\n")


def receipt_file(folder: Path, name: str) -> Path:
    return folder / f"{name}{RECEIPT}"
