"""A phase: the steps between two corpus steps, over all pieces, a ledger for each.

    read ─ extract ─ language ─┤ minhash ├─ quality ─┤ resample ├─ mask ─┤ judge
    └────── phase 0 ───────────┘         └─ phase 1 ─┘          └phase 2─┘└ phase 3

A phase first applies what the corpus step before it has decided. A step that asks a model begins one too: what
comes to it is then known, and with it what it may cost. A document that kills its process twice is dropped
(`crashed`; `stalled` if it computes without end). The ledger says how far the piece had come.
"""

from __future__ import annotations

import io
import resource
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from foresail.curate.asking.cache import AnswerCache
from foresail.curate.document import Document, Drop
from foresail.curate.named_step import NamedStep
from foresail.curate.read.piece import ReadPiece
from foresail.curate.read.source import read_documents
from foresail.curate.run.chain import Chain, Dropped, Result, settle, size_of
from foresail.curate.run.excerpt import excerpt, is_shown
from foresail.curate.run.ledger import (
    DONE,
    OPEN,
    check_ledger,
    continue_ledger,
    finish_ledger,
    kept_and_seen,
    write_entry,
)
from foresail.curate.run.progress import READ, Progress
from foresail.curate.run.statistics import Form, Statistics, count_ledger
from foresail.curate.run.suspects import blame, read_suspect
from foresail.curate.run.work import LEDGERS, Work
from foresail.runlog.atomic import explained

Input = tuple[str, Document | Drop, str | None]  # id, what was read, how it was seen first


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
    seed: int = 0

    @property
    def enters_by(self) -> str:
        if self.decided is not None:
            return self.decided.label
        asking = bool(self.steps) and self.steps[0].asks
        return f"to {self.steps[0].label}" if asking else READ

    @property
    def form(self) -> Form:
        return Form(labels=(self.enters_by, *(step.label for step in self.steps)), seed=self.seed)


def split_phases(steps: Sequence[NamedStep]) -> list[tuple[NamedStep | None, tuple[NamedStep, ...]]]:
    """Corpus steps and the steps that follow each; the first, and one that begins by asking, has none before it."""
    phases: list[tuple[NamedStep | None, tuple[NamedStep, ...]]] = [(None, ())]
    for step in steps:
        if step.sees_all:
            phases.append((step, ()))
        elif step.asks:
            phases.append((None, (step,)))
        else:
            decided, before = phases[-1]
            phases[-1] = (decided, (*before, step))
    return phases


def open_phase(phase: Phase) -> Callable[[str, ReadPiece | LedgerPiece], dict[str, Any]]:
    """In every process: the function that runs one piece and returns its statistics."""
    limit_memory(phase.worker_memory_gib)
    cache = AnswerCache(phase.folder)
    chain = Chain(phase.steps, cache)

    def run(name: str, piece: ReadPiece | LedgerPiece) -> dict[str, Any]:
        with explained(phase.folder):
            return PieceRun(phase, chain, name).run(piece, cache)

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
        self.work = Work()

    def run(self, piece: ReadPiece | LedgerPiece, cache: AnswerCache) -> dict[str, Any]:
        with Progress(self.phase.folder, self.name) as progress:
            if self.chain.asks:
                cache.open_piece(self.name, progress.beat)
            if self.opened.exists() or not self.done.exists():
                ledger, start = continue_ledger(self.opened)
                with ledger:
                    self.append(ledger, piece, start, progress)
                finish_ledger(self.opened, self.done, progress.beat)
                self.opened.unlink()
            statistics: Statistics = count_ledger(self.done, self.phase.form, progress.beat)
        self.work.stop(LEDGERS)
        return {**statistics.as_json(), **self.work.as_json()}

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
            results = self.results(batch, number, piece, progress)
            for (name, read, seen), result in zip(batch, results, strict=True):
                if seen is None and isinstance(read, Document) and isinstance(piece, ReadPiece):
                    seen = self.first_sight(number, read, result)
                write_entry(ledger, number, name, result, size_read(read), seen)
                number += 1
                progress.add_document(size_read(read))
            self.work.stop(LEDGERS)

    def first_sight(self, number: int, read: Document, result: Result) -> str | None:
        changed = any(drop.document is not read for drop in result.dropped)
        return excerpt(read) if changed or is_shown(self.phase.seed, read.id, number) else None

    def inputs(self, piece: ReadPiece | LedgerPiece, start: int) -> Iterator[Input]:
        if isinstance(piece, ReadPiece):
            for name, read in read_documents(piece, start):
                yield name, read, None
        else:
            check_ledger(piece.ledger, piece.checksum)
            for document, seen in islice(kept_and_seen(piece.ledger), start, None):
                yield document.id, document, seen

    def results(
        self,
        batch: Sequence[Input],
        number: int,
        piece: ReadPiece | LedgerPiece,
        progress: Progress,
    ) -> list[Result]:
        """Of documents number, number + 1, …"""
        results = [Result() for _ in batch]
        entering: list[tuple[int, Document]] = []
        for place, (name, read, _) in enumerate(batch):
            came = self.entering(number + place, name, read, piece, results[place])
            results[place].flow.append((len(came), sum(map(size_of, came))))
            entering += [(place, document) for document in came]
        clock = StepClock(self.work, progress)
        clock.entered(self.phase.enters_by, sum(size_read(read) for _, read, _ in batch))
        ran = self.chain.run([document for _, document in entering], clock.enter)
        clock.stop()
        for (place, _), result in zip(entering, ran, strict=True):
            results[place].add(result)
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
    """Tells the progress which step runs, and `work` what it costs."""

    def __init__(self, work: Work, progress: Progress) -> None:
        self.work, self.progress = work, progress
        self.label = ""
        self.size = 0

    def entered(self, label: str, size: int) -> None:
        """Documents were read, or decided on."""
        self.work.stop(label, size)

    def enter(self, label: str, size: int) -> None:
        self.stop()
        self.progress.enter_step(label)
        self.label, self.size = label, size

    def stop(self) -> None:
        if self.label:
            self.work.stop(self.label, self.size)
        self.label = ""


def size_read(read: Document | Drop) -> int:
    """Bytes as read."""
    return 0 if isinstance(read, Drop) else size_of(read)


@dataclass(frozen=True)
class PhaseRescue:
    """What the pool does for a phase after a death."""

    folder: Path
    max_cpu_seconds: float

    def progress(self, piece: str) -> int:
        return Progress.read(self.folder, piece).beats

    def after_death(self, piece: str, cause: str) -> None:
        blame(self.folder, piece, cause)
