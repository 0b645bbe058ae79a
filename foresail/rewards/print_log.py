"""A run's file for the prints of reward functions, which would garble the live view and stdout.

    prints = PrintLog(run / "reward.log")
    with prints.diverting():
        score(…)
    prints.news()      # the path of the file, once there are prints

Processes of their own inherit `descriptor()` as stdout and stderr. In this process `diverting` holds for the caller
and for coroutines it starts, not for other threads: the live view is drawn by one of those.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TextIO

diverted_to: ContextVar[TextIO | None] = ContextVar("diverted_to", default=None)


class PrintLog:
    """Opened on first use; an empty file and the folders made for it are removed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file: TextIO | None = None
        self.announced = False
        self.made: list[Path] = []  # folders that were not there, innermost first

    def open(self) -> TextIO:
        if self.file is None:
            self.made = [folder for folder in self.path.parents if not folder.exists()]
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # by the line, and each at the end: several processes write to it
            self.file = self.path.open("a", encoding="utf-8", errors="backslashreplace", buffering=1)
        return self.file

    def descriptor(self) -> int:
        return self.open().fileno()

    @contextmanager
    def diverting(self) -> Iterator[None]:
        token = diverted_to.set(self.open())
        out, err = sys.stdout, sys.stderr
        sys.stdout, sys.stderr = Diverted(out), Diverted(err)
        try:
            yield
        finally:
            sys.stdout, sys.stderr = out, err
            diverted_to.reset(token)

    def news(self) -> str | None:
        """The file's path, returned once, when there are prints."""
        if self.announced or self.file is None or not os.fstat(self.file.fileno()).st_size:
            return None
        self.announced = True
        return f"what reward functions print is in {self.path}"

    def close(self) -> None:
        if self.file is None:
            return
        empty = not os.fstat(self.file.fileno()).st_size
        self.file.close()
        self.file = None
        if empty:
            self.path.unlink(missing_ok=True)
            with suppress(OSError):  # a run is in it now
                for folder in self.made:
                    folder.rmdir()


class Diverted:
    """Replaces stdout or stderr: writes inside `diverting` go to the log, others as before."""

    def __init__(self, usual: Any) -> None:
        self.usual = usual

    def write(self, text: str) -> int:
        return int((diverted_to.get() or self.usual).write(text))

    def flush(self) -> None:
        (diverted_to.get() or self.usual).flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.usual, name)
