"""Documents at which a process died: tried again alone, then dropped.

first death at document n     it is tried again: the machine may have been short of memory
second, or a stall            it is dropped; if it died while reading, with the rest of its piece
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from foresail.curate.document import Drop
from foresail.curate.run.ledger import DONE, OPEN, whole_lines
from foresail.curate.run.progress import READ, Progress
from foresail.data.jobs.rescue import STALLED
from foresail.runlog.atomic import write_text

SUSPECT = ".suspect.json"
CRASHED = "crashed"
FINISHED = -1  # in place of a document's number
GIVE_UP = 5  # deaths
DEATHS = (CRASHED, STALLED)  # reasons


@dataclass(frozen=True)
class Suspect:
    """`number` counts the documents of the piece; `step` is where the process died."""

    number: int
    deaths: int
    cause: str
    step: str

    def is_condemned(self, number: int) -> bool:
        return number == self.number and self.deaths >= 2

    def drop(self) -> Drop:
        if self.step == READ:
            return Drop(
                "unreadable", f"reading it ends the process ({self.cause}); the rest of its file is left out"
            )
        if self.cause == STALLED:
            return Drop(STALLED, "it needs more than max_cpu_seconds")
        return Drop(CRASHED, f"it ended its process twice ({self.cause})")


def blame(folder: Path, piece: str, cause: str) -> None:
    """Count a death at the document after the ledger's last line."""
    opened = folder / f"{piece}{OPEN}"
    if not opened.exists() and (folder / f"{piece}{DONE}").exists():
        blame_counting(folder, piece, cause)
        return
    number = whole_lines(opened)[1] if opened.exists() else 0
    before = read_suspect(folder, piece)
    deaths = before.deaths if before is not None and before.number == number else 0
    deaths += 2 if cause == STALLED else 1
    row = {"number": number, "deaths": deaths, "cause": cause, "step": Progress.read(folder, piece).label}
    write_text(folder / f"{piece}{SUSPECT}", json.dumps(row))


def blame_counting(folder: Path, piece: str, cause: str) -> None:
    """It died while it counted a finished ledger: no document is to blame."""
    before = read_suspect(folder, piece)
    deaths = before.deaths + 1 if before is not None and before.number == FINISHED else 1
    if deaths >= GIVE_UP:
        raise ValueError(
            f"{deaths} processes died while they counted {folder / piece}{DONE} ({cause}); give the machine more "
            "memory, or fewer cluster.workers, and run the same command again"
        )
    row = {"number": FINISHED, "deaths": deaths, "cause": cause, "step": READ}
    write_text(folder / f"{piece}{SUSPECT}", json.dumps(row))


def read_suspect(folder: Path, piece: str) -> Suspect | None:
    file = folder / f"{piece}{SUSPECT}"
    return Suspect(**json.loads(file.read_text(encoding="utf-8"))) if file.exists() else None
