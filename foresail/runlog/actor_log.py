"""The log file of a Ray actor: written directly on the trainer's host, else sent with the actor's messages."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foresail.runlog.process_log import print_to

MAX_READ_BYTES = 2**16  # bytes sent with one message


@dataclass(frozen=True, kw_only=True)
class LogFile:
    """An actor's log file; `home` is the trainer's node."""

    path: Path
    home: str

    def open(self, node: str) -> OpenLog:
        """Redirect all output of this process to the file, including that of libraries."""
        at_home = node == self.home
        place = self.path if at_home else Path(tempfile.mkstemp(prefix="foresail-", suffix=".log")[1])
        sys.stdout.flush()
        sys.stderr.flush()
        print_to(place)
        return OpenLog(None if at_home else place)


class OpenLog:
    """The actor's side: on another node, `news` yields the new output as messages."""

    def __init__(self, far: Path | None) -> None:
        self.reader = None if far is None else far.open("rb")
        if far is not None:
            far.unlink()

    def news(self) -> Iterator[tuple[Any, Any]]:
        if self.reader is not None and (text := self.reader.read(MAX_READ_BYTES)):
            yield "log", text


class LogCopy:
    """The trainer's side."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def takes(self, message: tuple[Any, Any]) -> bool:
        kind, content = message
        if kind == "log":
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab") as file:
                file.write(content)
        return kind == "log"
