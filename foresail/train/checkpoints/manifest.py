"""A checkpoint's checksums, one for every file, so that damage on the disk is detected.

trainer/manifest.json   {"model.safetensors": {"bytes": 538090408, "crc32": "9d3f0c1a"}, …}

All files are in it, so one that is not is refused too: a resume might read it. Checkpoints of earlier versions have
no checksum of `progress.json`, or no manifest at all; they are taken as they are, and `is_sealed` tells them.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from pydantic import BaseModel, TypeAdapter

NAME, PROGRESS = "trainer/manifest.json", "trainer/progress.json"
COPY = "trainer/recipe.toml"  # in every checkpoint that has a manifest with all files
CHUNK = 1 << 22
READ = (
    ".json",
    ".safetensors",
    ".jinja",
    ".model",
    ".bin",
    ".txt",
)  # kinds of files that a model is loaded from


class FileEntry(BaseModel):
    """Size and checksum of one file."""

    bytes: int
    crc32: str


Manifest = TypeAdapter(dict[str, FileEntry])


def write_manifest(checkpoint: Path) -> None:
    files = [path for path in checkpoint.rglob("*") if path.is_file()]
    write_entries(checkpoint, {str(path.relative_to(checkpoint)): checksum_file(path) for path in files})


def is_sealed(checkpoint: Path) -> bool:
    """Whether all its files are under checksums; those of earlier versions are not."""
    if (checkpoint / COPY).exists():
        return True
    try:
        entries = read_manifest(checkpoint)
    except (OSError, ValueError):
        return False
    return COPY in entries or PROGRESS in entries


def forget(checkpoint: Path, files: Iterable[Path]) -> None:
    """Drop the entries of files that are about to be removed. A missing or damaged manifest is left alone."""
    names = {str(file.relative_to(checkpoint)) for file in files}
    try:
        entries = read_manifest(checkpoint)
    except (FileNotFoundError, ValueError):
        return
    if names & entries.keys():
        write_entries(checkpoint, {name: entry for name, entry in entries.items() if name not in names})


def damages(checkpoint: Path) -> Iterator[str]:
    """A sentence for each damaged file; a checkpoint without a manifest cannot be checked."""
    if not (checkpoint / NAME).is_file():
        if (checkpoint / NAME).exists() or is_sealed(checkpoint):
            yield f"{checkpoint / NAME} is gone"
        return
    try:
        entries = read_manifest(checkpoint)
    except (OSError, ValueError):
        yield f"{checkpoint / NAME} is damaged"
        return
    for name, entry in entries.items():
        if (damage := compare(checkpoint / name, entry)) is not None:
            yield damage
    if PROGRESS in entries:
        for path in sorted(checkpoint.rglob("*")):
            if (name := str(path.relative_to(checkpoint))) not in entries and is_read(path, name):
                yield f"{path} is no part of the checkpoint: it came there after it was written; remove it"


def compare(path: Path, entry: FileEntry) -> str | None:
    """What is wrong with one file."""
    if not path.is_file():
        return f"{path} is gone"
    try:
        now = FileEntry(bytes=path.stat().st_size, crc32="")
        if now.bytes == entry.bytes:
            now = checksum_file(path)
    except OSError as error:
        return f"{path} cannot be read ({error.strerror})"
    if now.bytes != entry.bytes:
        return f"{path} is damaged: it has {now.bytes} bytes, and was written with {entry.bytes}"
    return None if now == entry else f"{path} is damaged: its checksum is not the one it was written with"


def is_read(path: Path, name: str) -> bool:
    """Whether a resume might read it. Notes, pictures and hidden files beside the weights are left out."""
    if not path.is_file() or path.name.startswith(".") or name == NAME:
        return False
    return name.startswith("trainer/") or path.suffix in READ


def read_manifest(checkpoint: Path) -> dict[str, FileEntry]:
    """The entries, without the manifest's own; ValueError where its checksum does not match."""
    entries = Manifest.validate_json((checkpoint / NAME).read_bytes())
    own_entry = entries.pop(NAME, None)
    if own_entry is not None and own_entry != checksum_bytes(as_json(entries)):
        raise ValueError(f"{checkpoint / NAME} is damaged")
    return entries


def write_entries(checkpoint: Path, entries: dict[str, FileEntry]) -> None:
    """One line a file. Written beside the old manifest and renamed, so one of them is always complete."""
    entries.pop(NAME, None)
    own_entry = {NAME: checksum_bytes(as_json(entries))}
    new_file = (checkpoint / NAME).with_suffix(".new")
    new_file.write_bytes(as_json(entries | own_entry))
    new_file.replace(checkpoint / NAME)


def as_json(entries: dict[str, FileEntry]) -> bytes:
    content = {name: entry.model_dump() for name, entry in sorted(entries.items())}
    return (json.dumps(content, indent=1) + "\n").encode()


def checksum_bytes(content: bytes) -> FileEntry:
    return FileEntry(bytes=len(content), crc32=f"{zlib.crc32(content):08x}")


def checksum_file(path: Path) -> FileEntry:
    """A checksum against accidents, not against forgery: it must cost little beside writing the file."""
    total, size = 0, 0
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            total, size = zlib.crc32(chunk, total), size + len(chunk)
    return FileEntry(bytes=size, crc32=f"{total:08x}")
