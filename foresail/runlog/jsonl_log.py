"""An append-only file of JSON lines that survives a kill within a line and can be rewound."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Any

import orjson

from foresail.runlog.atomic import explained, write_atomically


class JsonlLog:
    """Records with a `step`, one line each. A line counts once its newline is written.

    Readers ignore a torn last line, and the next append overwrites it. Lines reach the operating system
    immediately: a killed process loses none (a power cut may). The file stays open between appends, so the lines of
    a removed file can be restored.
    """

    def __init__(self, path: Path, warn: Callable[[str], object] = lambda text: None) -> None:
        """`warn` is called where lines were removed from the file while the run went on."""
        self.path, self.warn = path, warn
        self._file: FileIO | None = None
        self._end = 0  # byte behind the last appended line

    def append(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Append all records; on a full disk none, with an OSError."""
        lines = b"".join(encode(record) for record in records)
        with explained(self.path.parent):
            file = self._open()
            drop_torn_line(file)
            end = file.seek(0, os.SEEK_END)
            try:
                while lines:
                    lines = lines[file.write(lines) :]
            except BaseException:
                with suppress(OSError):
                    file.truncate(end)
                raise
            self._end = file.tell()

    def _open(self) -> FileIO:
        """The open file. A removed file is written again; for a truncated one `warn` tells the loss."""
        if self._file is not None and not self._is_there(self._file):
            if not self.path.exists():
                self._file.seek(0)
                content = self._file.readall()
                write_atomically(self.path, lambda temporary: temporary.write_bytes(content))
                self.warn(f"{self.path} was removed while the run went on; it was written again, whole")
            self.close()
        if self._file is None:
            self._file = open(self.path, "a+b", buffering=0)  # noqa: SIM115, it stays open
        if (size := os.fstat(self._file.fileno()).st_size) < self._end:
            self.warn(
                f"{self.path} was cut while the run went on: {self._end - size} bytes of history are lost"
            )
        return self._file

    def _is_there(self, file: FileIO) -> bool:
        try:
            return os.path.samestat(os.stat(self.path), os.fstat(file.fileno()))
        except FileNotFoundError:
            return False

    def close(self) -> None:
        """Close the file; the next append opens it again."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __del__(self) -> None:
        self.close()

    def read(self) -> list[dict[str, Any]]:
        """All whole records in order; none without a file."""
        return [record for _, record in self.whole_lines()]

    def rewind(self, step: int) -> None:
        """Remove the records after `step`."""
        if not self.is_file():
            return
        content = b"".join(line for line, record in self.whole_lines() if record["step"] <= step)
        write_atomically(self.path, lambda temporary: temporary.write_bytes(content))
        self._end = len(content)
        self.close()
        self._open()

    def is_file(self) -> bool:
        """False if there is nothing; raises ValueError if it is not a file."""
        if self.path.is_file():
            return True
        if self.path.exists():
            raise ValueError(f"{self.path} is no file; move it away, then try again")
        if self.path.is_symlink():
            place = self.path.readlink()
            raise ValueError(
                f"{self.path} is a link to {place}, which is gone; bring that back, or remove the link"
            )
        return False

    def whole_lines(self) -> Iterator[tuple[bytes, dict[str, Any]]]:
        if not self.is_file():
            return
        with open(self.path, "rb") as file:
            for number, line in enumerate(file, start=1):
                if not line.endswith(b"\n"):
                    return
                yield line, decode(line, f"{self.path} line {number}")


def encode(record: Mapping[str, Any]) -> bytes:
    """encode({"loss": nan}) -> b'{"loss":null}\\n': JSON has no NaN or infinity, but the name is kept."""
    try:
        return orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)
    except orjson.JSONEncodeError:
        # half of a pair of surrogates, a number beyond 64 bits, keys that are no text …
        return json.dumps(nan_to_null(record)).encode() + b"\n"


def nan_to_null(value: Any) -> Any:
    """The same data with None for every NaN and infinity in it."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: nan_to_null(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [nan_to_null(entry) for entry in value]
    return value


def decode(line: bytes, place: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError:
        record = None
    if not isinstance(record, dict) or not isinstance(record.get("step"), int):
        raise ValueError(
            f'{place} is not a JSON record with a whole "step"; remove that line, then try again'
        )
    return record


def drop_torn_line(file: FileIO) -> None:
    """Cut the file after its last newline."""
    size = file.seek(0, os.SEEK_END)
    if size == 0:
        return
    file.seek(size - 1)
    if file.read(1) != b"\n":
        file.seek(0)
        file.truncate(file.readall().rfind(b"\n") + 1)
