"""A phase: the steps between two corpus steps, over all pieces, a ledger for each.

    read ─ extract ─ language ─┤ minhash ├─ quality ─┤ resample ├─ mask
    └────── phase 0 ───────────┘         └─ phase 1 ─┘          └─ phase 2

A phase first applies what the corpus step before it has decided. A document that kills its process twice is dropped
(`crashed`; `stalled` if it computes without end). The ledger says how far the piece had come.
"""

from __future__ import annotations

import io
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from foresail.curate.document import Document, Drop
from foresail.curate.named_step import NamedStep
from foresail.curate.read.piece import ReadPiece
from foresail.curate.read.source import read_documents
from foresail.curate.run.chain import Chain, Dropped, Result, settle
from foresail.curate.run.ledger import (
    DONE,
    OPEN,
    check_ledger,
    continue_ledger,
    finish_ledger,
    kept_documents,
    write_entry,
)
from foresail.curate.run.progress import READ, Progress
from foresail.curate.run.statistics import Statistics, count_ledger
from foresail.curate.run.suspects import blame, read_suspect
from foresail.runlog.atomic import explained

Inputs = Iterator[tuple[str, Document | Drop]]


@dataclass(frozen=True)
class LedgerPiece:
    """The documents that an earlier phase kept of one piece, and what a corpus step decided on them."""

    ledger: Path
    checksum: str
    decisions: Path

    def __str__(self) -> str:
        return str(self.ledger)


@dataclass(frozen=True, kw_only=True)
class Phase:
    """`decided`: the corpus step whose decisions are applied first."""

    folder: Path
    steps: tuple[NamedStep, ...]
    decided: NamedStep | None = None
    worker_memory_gib: float = 8.0


def split_phases(steps: Sequence[NamedStep]) -> list[tuple[NamedStep | None, tuple[NamedStep, ...]]]:
    """Corpus steps and the steps that follow each; the first has none before it."""
    phases: list[tuple[NamedStep | None, tuple[NamedStep, ...]]] = [(None, ())]
    for step in steps:
        if step.sees_all:
            phases.append((step, ()))
        else:
            decided, before = phases[-1]
            phases[-1] = (decided, (*before, step))
    return phases


def open_phase(phase: Phase) -> Callable[[str, ReadPiece | LedgerPiece], dict[str, Any]]:
    """In every process: the function that runs one piece and returns its statistics."""
    limit_memory(phase.worker_memory_gib)
    chain = Chain(phase.steps)

    def run(name: str, piece: ReadPiece | LedgerPiece) -> dict[str, Any]:
        with explained(phase.folder):
            return PieceRun(phase, chain, name).run(piece)

    return run


def limit_memory(gib: float) -> None:
    """A document that needs more raises MemoryError, or ends the process."""
    limit = int(gib * 2**30)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_DATA, (limit, resource.getrlimit(resource.RLIMIT_DATA)[1]))


class PieceRun:
    """One piece on its way through a phase."""

    def __init__(self, phase: Phase, chain: Chain, name: str) -> None:
        self.phase, self.chain = phase, chain
        self.opened, self.done = phase.folder / f"{name}{OPEN}", phase.folder / f"{name}{DONE}"
        self.name = name
        self.suspect = read_suspect(phase.folder, name)
        self.seconds: dict[str, float] = {}

    def run(self, piece: ReadPiece | LedgerPiece) -> dict[str, Any]:
        if self.opened.exists() or not self.done.exists():
            with Progress(self.phase.folder, self.name) as progress:
                ledger, start = continue_ledger(self.opened)
                with ledger:
                    self.append(ledger, piece, start, progress)
            finish_ledger(self.opened, self.done)
            self.opened.unlink()
        statistics: Statistics = count_ledger(self.done)
        return {**statistics.as_json(), "cpu_seconds": self.seconds}

    def append(
        self, ledger: io.FileIO, piece: ReadPiece | LedgerPiece, start: int, progress: Progress
    ) -> None:
        number = start
        inputs = self.inputs(piece, start)
        size = 1 if self.suspect else self.chain.batch_size
        if self.suspect and self.suspect.step == READ and self.suspect.is_condemned(number):
            drop, name = self.suspect.drop(), f"{self.name}:{number}"
            result = Result(dropped=[Dropped(READ, drop.reason, drop.detail, Document(id=name))])
            write_entry(ledger, number, name, result, 0)
            return
        while batch := list(islice(inputs, size)):
            for (name, read), result in zip(batch, self.results(batch, number, piece, progress), strict=True):
                write_entry(ledger, number, name, result, size_of(read))
                number += 1
                progress.add_document(size_of(read))

    def inputs(self, piece: ReadPiece | LedgerPiece, start: int) -> Inputs:
        if isinstance(piece, ReadPiece):
            yield from read_documents(piece, start)
        else:
            check_ledger(piece.ledger, piece.checksum)
            for document in islice(kept_documents(piece.ledger), start, None):
                yield document.id, document

    def results(
        self,
        batch: Sequence[tuple[str, Document | Drop]],
        number: int,
        piece: ReadPiece | LedgerPiece,
        progress: Progress,
    ) -> list[Result]:
        """Of documents number, number + 1, …"""
        results = [Result() for _ in batch]
        entering: list[tuple[int, Document]] = []
        for place, (name, read) in enumerate(batch):
            for document in self.entering(number + place, name, read, piece, results[place]):
                entering.append((place, document))
        clock = StepClock(self.seconds, progress)
        ran = self.chain.run([document for _, document in entering], clock.enter)
        clock.stop()
        for (place, _), result in zip(entering, ran, strict=True):
            results[place].kept += result.kept
            results[place].dropped += result.dropped
        return results

    def entering(
        self, number: int, name: str, read: Document | Drop, piece: ReadPiece | LedgerPiece, result: Result
    ) -> Sequence[Document]:
        """The documents that go into the steps: none if the reader, an earlier death or a decision drops it."""
        if isinstance(read, Drop):
            result.dropped.append(Dropped(READ, read.reason, read.detail, Document(id=name)))
            return ()
        if self.suspect and self.suspect.is_condemned(number):
            drop = self.suspect.drop()
            result.dropped.append(Dropped(self.suspect.step, drop.reason, drop.detail, read))
            return ()
        decided = self.phase.decided
        if decided is None or isinstance(piece, ReadPiece):
            return (read,)
        return settle(self.decisions(piece)(number, read), decided.label, read, result)

    def decisions(self, piece: LedgerPiece) -> Callable[[int, Document], Any]:
        if not hasattr(self, "_decisions"):
            assert self.phase.decided is not None
            self._decisions = self.phase.decided.settings.open(piece.decisions)
        return self._decisions


class StepClock:
    """CPU seconds of each step, added to `seconds`; progress learns which one runs."""

    def __init__(self, seconds: dict[str, float], progress: Progress) -> None:
        self.seconds, self.progress = seconds, progress
        self.label: str | None = None
        self.begin = 0.0

    def enter(self, label: str) -> None:
        self.stop()
        self.progress.enter_step(label)
        self.label, self.begin = label, time.process_time()

    def stop(self) -> None:
        if self.label is not None:
            spent = time.process_time() - self.begin
            self.seconds[self.label] = self.seconds.get(self.label, 0.0) + spent
        self.label = None


def size_of(read: Document | Drop) -> int:
    """Bytes as read."""
    return 0 if isinstance(read, Drop) else len(read.content) + len(read.text.encode("utf-8", "replace"))


@dataclass(frozen=True)
class PhaseRescue:
    """What the pool does for a phase after a death."""

    folder: Path
    max_cpu_seconds: float

    def progress(self, piece: str) -> int:
        return Progress.read(self.folder, piece).beats

    def after_death(self, piece: str, cause: str) -> None:
        blame(self.folder, piece, cause)
