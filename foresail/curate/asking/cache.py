"""Answers of a model, in a file beside the ledger of a piece: no question is asked twice.

    cache = AnswerCache(Path("out/work/1"))
    cache.open_piece("00003")
    cache.note("9f3c…", '{"education": 4}')
    cache.find("9f3c…") -> '{"education": 4}'

    out/work/1/00003.answers.jsonl    {"key": "9f3c…", "answer": "…"} or {"key": "9f3c…", "refused": "400: …"}

An answer is written before anything is made of it. So a resumed run makes the same of every document, also where
the model would now answer otherwise. A line that a kill has torn is removed, and its question asked again.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from foresail.chat.endpoint import Refused

ANSWERS = ".answers.jsonl"
BEAT_SECONDS = 2.0


class NotAsked(Exception):
    """A question without an answer, where no model may be asked."""


def no_beat() -> None:
    """For callers that watch no progress."""


class AnswerCache:
    """Of one piece at a time; several threads may note answers.

    Without a folder, answers are held in memory while the piece is open. With `writes` False the file is read and
    not changed, and no model is asked.
    """

    def __init__(self, folder: Path | None = None, *, writes: bool = True) -> None:
        self.folder, self.writes = folder, writes
        self._lock = threading.Lock()
        self._lines: IO[bytes] | None = None
        self._ends: IO[bytes] | None = None
        self._places: dict[str, int] = {}  # of a line, by its key
        self._held: dict[str, str | Refused] = {}  # what is in no file
        self._beat = no_beat

    def open_piece(self, name: str, beat: Callable[[], None] = no_beat) -> None:
        """`beat` is called while a model is waited for: the piece is not stalled."""
        self.close()
        self._beat = beat
        path = None if self.folder is None else self.folder / f"{name}{ANSWERS}"
        if path is None or not (self.writes or path.exists()):
            return
        if self.writes:
            path.touch()
        self._lines = path.open("rb")
        whole = 0
        for line in self._lines:
            if (row := read_line(line)) is None:
                break
            self._places.setdefault(row["key"], whole)  # of two, the first was used
            whole += len(line)
        if self.writes:
            self._ends = path.open("rb+", buffering=0)
            self._ends.truncate(whole)
            self._ends.seek(whole)

    def close(self) -> None:
        for file in (self._lines, self._ends):
            if file is not None:
                file.close()
        self._lines = self._ends = None
        self._places, self._held, self._beat = {}, {}, no_beat

    def find(self, key: str) -> str | Refused | None:
        with self._lock:
            if key in self._held:
                return self._held[key]
            if self._lines is None or key not in self._places:
                return None
            self._lines.seek(self._places[key])
            row = read_line(self._lines.readline())
        assert row is not None, "it was whole when its place was noted"
        return Refused(row["refused"]) if "refused" in row else str(row["answer"])

    def note(self, key: str, answer: str | Refused) -> None:
        with self._lock:
            if key in self._places or key in self._held:
                return
            if self._ends is None:
                self._held[key] = answer
                return
            kind, text = ("refused", answer.detail) if isinstance(answer, Refused) else ("answer", answer)
            line = json.dumps({"key": key, kind: text}).encode() + b"\n"
            place = self._ends.tell()
            left = memoryview(line)
            while left:  # a disk that fills up takes a part of it first, and refuses the next
                left = left[self._ends.write(left) :]
            self._places[key] = place

    @contextmanager
    def beating(self) -> Iterator[None]:
        """While a model answers, the document is not stalled."""
        stop, beat = threading.Event(), self._beat

        def run() -> None:
            while not stop.wait(BEAT_SECONDS):
                beat()

        thread = threading.Thread(target=run, name="beat", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()


def read_line(line: bytes) -> dict[str, Any] | None:
    """None for a line that is torn: without its end, or with NULs, which a crash of the machine leaves."""
    if not line.endswith(b"\n") or b"\0" in line:
        return None
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) and "key" in row and ("answer" in row or "refused" in row) else None
