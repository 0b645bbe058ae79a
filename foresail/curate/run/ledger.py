"""The ledger of a piece: one line for each document that was read, with what became of it.

    {"n": 17, "id": "web:17", "bytes": 4017, "flow": [[1, 4017], [1, 2310], [1, 2310]],
     "kept": [{"id": "web:17", "text": "…"}], "dropped": [], "seen": "<p>Once upon …"}
    {"n": 18, "id": "web:18", "bytes": 12, "flow": [[1, 12], [1, 12], [0, 0]], "kept": [],
     "dropped": [{"step": "2 length", "reason": "too_short", "detail": "…", "document": {…}}]}

`flow`: documents and bytes that were read, and that left each step. `seen`: how the document was read, in short,
of some.

Lines are appended one by one, so that a killed run goes on after the last whole line. A finished ledger is
compressed, and its checksum stands in the receipt; whoever reads it compares them first.
"""

from __future__ import annotations

import base64
import hashlib
import io
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from foresail.curate.document import Document
from foresail.curate.run.chain import Dropped, Result
from foresail.data.zst import create_zst, open_zst
from foresail.runlog.atomic import hidden_sibling, sync

OPEN, DONE = ".ledger.jsonl", ".ledger.jsonl.zst"
CHUNK = 2**20


class Entry(NamedTuple):
    """One line, read back."""

    n: int
    id: str
    result: Result


def write_entry(
    file: io.FileIO, n: int, name: str, result: Result, size: int, seen: str | None = None
) -> None:
    """One line in one write: after a kill it is there, or it is torn and `continue_ledger` removes it."""
    row = {
        "n": n,
        "id": name,
        "bytes": size,
        "flow": result.flow,
        "kept": [document_row(document) for document in result.kept],
        "dropped": [
            {
                "step": drop.step,
                "reason": drop.reason,
                "detail": drop.detail,
                "document": document_row(drop.document),
            }
            for drop in result.dropped
        ],
    }
    if seen is not None:
        row["seen"] = seen
    write_all(file, to_json(row) + b"\n")


def write_all(file: io.FileIO, line: bytes) -> None:
    """A disk that fills up takes a part of it first, and refuses the next."""
    left = memoryview(line)
    while left:
        left = left[file.write(left) :]


def to_json(row: dict[str, Any]) -> bytes:
    try:
        return orjson.dumps(row)
    except TypeError:  # lone surrogates, numpy numbers, keys that are no text
        return orjson.dumps(
            without_surrogates(row),
            default=str,
            option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS,
        )


def without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {without_surrogates(key): without_surrogates(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [without_surrogates(entry) for entry in value]
    return value


def document_row(document: Document) -> dict[str, Any]:
    """Without what is empty."""
    row: dict[str, Any] = {"id": document.id, "text": document.text}
    if document.url:
        row["url"] = document.url
    if document.content:
        row["content"] = base64.b64encode(document.content).decode()
    if document.media_type != "text/plain":
        row["media_type"] = document.media_type
    if document.metadata:
        row["metadata"] = document.metadata
    if document.row is not None:
        row["row"] = document.row
    return row


def row_document(row: dict[str, Any]) -> Document:
    return Document(
        id=row["id"],
        text=row["text"],
        url=row.get("url", ""),
        content=base64.b64decode(row.get("content", "")),
        media_type=row.get("media_type", "text/plain"),
        metadata=row.get("metadata", {}),
        row=row.get("row"),
    )


def parse_entry(line: bytes) -> Entry:
    row = orjson.loads(line)
    dropped = [
        Dropped(drop["step"], drop["reason"], drop["detail"], row_document(drop["document"]))
        for drop in row["dropped"]
    ]
    return Entry(row["n"], row["id"], Result([row_document(kept) for kept in row["kept"]], dropped))


def continue_ledger(path: Path) -> tuple[io.FileIO, int]:
    """The open ledger, without a torn last line, and the number of the next document."""
    path.touch()
    size, lines = whole_lines(path)
    file = io.FileIO(path, "r+")
    file.truncate(size)
    file.seek(size)
    return file, lines


def whole_lines(path: Path) -> tuple[int, int]:
    """Bytes and number of the whole lines."""
    size = lines = 0
    with path.open("rb") as file:
        for line in file:
            if not line.endswith(b"\n") or b"\0" in line[-2:]:  # NUL: what a crash of the machine leaves
                break
            size, lines = size + len(line), lines + 1
    return size, lines


def entries(path: Path) -> Iterator[Entry]:
    with open_zst(path) if path.suffix == ".zst" else path.open("rb") as file:
        for line in file:
            yield parse_entry(line)


def kept_documents(path: Path) -> Iterator[Document]:
    for document, _ in kept_and_seen(path):
        yield document


def kept_and_seen(path: Path) -> Iterator[tuple[Document, str | None]]:
    """Each with the begin of what was read, where the ledger has it."""
    with open_zst(path) if path.suffix == ".zst" else path.open("rb") as file:
        for line in file:
            row = orjson.loads(line)
            for kept in row["kept"]:
                yield row_document(kept), row.get("seen")


def finish_ledger(opened: Path, done: Path, beat: Callable[[], None] = lambda: None) -> None:
    """Compress a whole ledger. `beat` is called now and then."""
    with hidden_sibling(done) as hidden:
        with opened.open("rb") as source, create_zst(hidden) as target:
            while chunk := source.read(CHUNK):
                target.write(chunk)
                beat()
        sync(hidden)
        os.replace(hidden, done)


def checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_ledger(path: Path, expected: str) -> None:
    if not path.exists() or checksum(path) != expected:
        raise ValueError(
            f"{path} is not what was written there: its checksum differs; the disk or another program changed it. "
            f"Remove {path.parent.parent} and run the command again"
        )
