"""How far a piece has come, in a small file that its process writes and the run's own process reads."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

FORM = struct.Struct("<qqq128s")
PROGRESS = ".progress"
READ = "read"  # the label of the reader


class Reached(NamedTuple):
    """`beats` grows with every step of every document; `label` is of the step that runs."""

    documents: int = 0
    bytes: int = 0
    beats: int = 0
    label: str = READ


class Progress:
    def __init__(self, folder: Path, piece: str) -> None:
        self.path = folder / f"{piece}{PROGRESS}"
        self.reached = Reached()

    def __enter__(self) -> Progress:
        self.file = os.open(self.path, os.O_WRONLY | os.O_CREAT)
        self.write(Reached())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self.file)
        self.path.unlink(missing_ok=True)

    def add_document(self, size: int) -> None:
        documents, bytes_, beats, _ = self.reached
        self.write(Reached(documents + 1, bytes_ + size, beats + 1, READ))

    def enter_step(self, label: str) -> None:
        self.write(self.reached._replace(beats=self.reached.beats + 1, label=label))

    def beat(self) -> None:
        """The piece gets on, at something that is no document."""
        self.write(self.reached._replace(beats=self.reached.beats + 1))

    def write(self, reached: Reached) -> None:
        self.reached = reached
        *counts, label = reached
        os.pwrite(self.file, FORM.pack(*counts, label.encode()[:128]), 0)

    @staticmethod
    def read(folder: Path, piece: str) -> Reached:
        try:
            content = (folder / f"{piece}{PROGRESS}").read_bytes()
        except OSError:
            return Reached()
        if len(content) != FORM.size:
            return Reached()
        documents, size, beats, label = FORM.unpack(content)
        return Reached(documents, size, beats, label.rstrip(b"\0").decode("utf-8", "ignore"))
