"""Writes kept documents to files of a size, as JSONL or parquet; the files do not depend on who writes them.

documents/shard-00000.jsonl.zst                      {"id": "web:17", "text": "…", "url": "…", "metadata": {…}}
documents/id/shard-00000.jsonl.zst                   with by = "language"

Conversations and problems are written as their own rows: {"id": …, "messages": […], …, "metadata": {…}}.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

import orjson

from foresail.curate.document import Document
from foresail.curate.rows.row import sink_row
from foresail.curate.run.ledger import check_ledger, kept_documents
from foresail.curate.sink import Sink
from foresail.data.zst import create_zst
from foresail.runlog.atomic import explained, sync

UNNAMED = "none"  # the folder of documents without the key of `by`
ROWS_AT_ONCE = 1024
JSONL_SUFFIX = {"zst": ".jsonl.zst", "gz": ".jsonl.gz", "none": ".jsonl"}


@dataclass(frozen=True)
class Shard:
    """Ledgers whose documents go into one file (one of each value, with `by`), and their checksums."""

    name: str
    ledgers: tuple[tuple[Path, str], ...]

    def __str__(self) -> str:
        return self.name


def plan_shards(ledgers: Mapping[Path, Mapping[str, Any]], shard_bytes: int) -> dict[str, Shard]:
    """Ledgers with their receipts; those that follow each other share a shard up to its size."""
    groups: list[list[tuple[Path, str]]] = []
    room = 0
    for path, receipt in ledgers.items():
        size = receipt["after"]["bytes"]
        if not groups or size > room:
            groups.append([])
            room = shard_bytes
        groups[-1].append((path, receipt["checksum"]))
        room -= size
    names = [f"shard-{number:05}" for number in range(len(groups))]
    return {name: Shard(name, tuple(group)) for name, group in zip(names, groups, strict=True)}


class Writer(Protocol):
    def write(self, document: Document) -> None: ...

    def close(self) -> None: ...


def open_shards(folder: Path, sink: Sink) -> Callable[[str, Shard], dict[str, Any]]:
    """In every process: the function that writes one shard."""
    suffix = ".parquet" if sink.kind == "parquet" else JSONL_SUFFIX[sink.compression]

    def write(name: str, shard: Shard) -> dict[str, Any]:
        with explained(folder):
            return write_shard(folder, f"{name}{suffix}", shard, sink)

    return write


def write_shard(folder: Path, file: str, shard: Shard, sink: Sink) -> dict[str, Any]:
    """Documents by group; files are renamed once all are whole."""
    writers: dict[str, tuple[Path, Path, Writer]] = {}
    counts: dict[str, int] = {}
    try:
        for document in documents_of(shard):
            group = "" if sink.by is None else folder_name(document.metadata.get(sink.by))
            if group not in writers:
                final = folder / group / file
                final.parent.mkdir(parents=True, exist_ok=True)
                hidden = final.with_name(f".tmp-{final.name}")
                writers[group] = (hidden, final, open_writer(hidden, sink))
                counts[group] = 0
            writers[group][2].write(document)
            counts[group] += 1
    finally:
        for _, _, writer in writers.values():
            writer.close()
    for hidden, final, _ in writers.values():
        sync(hidden)
        hidden.replace(final)
        sync(final.parent)
    return {"documents": counts}


def documents_of(shard: Shard) -> Iterator[Document]:
    for ledger, checksum in shard.ledgers:
        check_ledger(ledger, checksum)
        yield from kept_documents(ledger)


def folder_name(value: Any) -> str:
    """folder_name("id") -> "id"; other characters than letters, digits and -_. become "_"."""
    text = UNNAMED if value is None or value == "" else str(value)
    return re.sub(r"[^\w.-]", "_", text)[:80].lstrip(".") or UNNAMED


def open_writer(path: Path, sink: Sink) -> Writer:
    return ParquetWriter(path) if sink.kind == "parquet" else JsonlWriter(path, sink.compression)


class JsonlWriter:
    def __init__(self, path: Path, compression: str) -> None:
        self.raw: BinaryIO | None = None
        if compression == "zst":
            self.file = cast(BinaryIO, create_zst(path))
        elif compression == "gz":
            self.raw = path.open("wb")
            # no name, no time: the same documents give the same bytes
            self.file = cast(BinaryIO, gzip.GzipFile("", "wb", 6, self.raw, mtime=0))
        else:
            self.file = path.open("wb")

    def write(self, document: Document) -> None:
        if document.row is not None:
            self.file.write(orjson.dumps(sink_row(document)) + b"\n")
            return
        row: dict[str, Any] = {"id": document.id, "text": document.text}
        if document.url:
            row["url"] = document.url
        if document.metadata:
            row["metadata"] = document.metadata
        self.file.write(orjson.dumps(row) + b"\n")

    def close(self) -> None:
        self.file.close()
        if self.raw is not None:
            self.raw.close()


class ParquetWriter:
    """Columns id, text, url, language, and metadata as JSON."""

    def __init__(self, path: Path) -> None:
        import pyarrow
        import pyarrow.parquet

        self.arrow = pyarrow
        names = ("id", "text", "url", "language", "metadata")
        self.schema = pyarrow.schema([(name, pyarrow.string()) for name in names])
        self.file = pyarrow.parquet.ParquetWriter(path, self.schema, compression="zstd")
        self.rows: list[Sequence[str | None]] = []

    def write(self, document: Document) -> None:
        language = document.metadata.get("language")
        metadata = orjson.dumps(document.metadata).decode()
        self.rows.append(
            (document.id, document.text, document.url, None if language is None else str(language), metadata)
        )
        if len(self.rows) == ROWS_AT_ONCE:
            self.flush()

    def flush(self) -> None:
        columns = [list(column) for column in zip(*self.rows, strict=True)]
        if columns:
            self.file.write_table(self.arrow.table(columns, schema=self.schema))
        self.rows = []

    def close(self) -> None:
        self.flush()
        self.file.close()
