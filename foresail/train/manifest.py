"""A checkpoint's checksums: what every file held when it was written, so that damage on the disk is found.

`progress.json` is left out: it is read by type, and changes when a finished run is taken up again.

trainer/manifest.json   {"model.safetensors": {"bytes": 538090408, "crc32": "9d3f0c1a"}, …}
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from pydantic import BaseModel, TypeAdapter

NAME, PROGRESS = "trainer/manifest.json", "progress.json"
CHUNK = 1 << 22


class Entry(BaseModel):
    """Of one file."""

    bytes: int
    crc32: str


Manifest = TypeAdapter(dict[str, Entry])


def write_manifest(checkpoint: Path) -> None:
    files = [path for path in checkpoint.rglob("*") if path.is_file() and path.name != PROGRESS]
    write_entries(checkpoint, {str(path.relative_to(checkpoint)): describe(path) for path in files})


def renew(checkpoint: Path, names: Iterable[str]) -> None:
    """Some files were changed on purpose, or are gone. A checkpoint without a manifest stays without."""
    if not (checkpoint / NAME).is_file():
        return
    entries = read_manifest(checkpoint)
    for name in names:
        entries.pop(name, None)
        if (checkpoint / name).is_file():
            entries[name] = describe(checkpoint / name)
    write_entries(checkpoint, entries)


def damages(checkpoint: Path) -> Iterator[str]:
    """What is wrong with it, file by file; nothing is said of one that was written without a manifest."""
    if not (checkpoint / NAME).is_file():
        return
    try:
        entries = read_manifest(checkpoint)
    except ValueError:
        yield f"{checkpoint / NAME} is damaged"
        return
    for name, entry in entries.items():
        path = checkpoint / name
        if not path.is_file():
            yield f"{path} is gone"
        elif path.stat().st_size != entry.bytes:
            yield f"{path} is damaged: it has {path.stat().st_size} bytes, and was written with {entry.bytes}"
        elif describe(path).crc32 != entry.crc32:
            yield f"{path} is damaged: its checksum is not the one it was written with"


def read_manifest(checkpoint: Path) -> dict[str, Entry]:
    return Manifest.validate_json((checkpoint / NAME).read_bytes())


def write_entries(checkpoint: Path, entries: dict[str, Entry]) -> None:
    """One line a file. Aside first: while it is renewed, the one before stays whole."""
    entries.pop(NAME, None)
    content = {name: entry.model_dump() for name, entry in sorted(entries.items())}
    aside = (checkpoint / NAME).with_suffix(".new")
    aside.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    aside.replace(checkpoint / NAME)


def describe(path: Path) -> Entry:
    """A checksum against accidents, not against forgery: it must cost little beside writing the file."""
    total, size = 0, 0
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            total, size = zlib.crc32(chunk, total), size + len(chunk)
    return Entry(bytes=size, crc32=f"{total:08x}")
