"""Damage to the files of a run, as disks, editors and people do it.

for what, damage in damages(file, other, chance):     # other: the same file of another checkpoint, or None
    damage()                                          # "one digit changed", …
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

Damage = tuple[str, Callable[[], object]]


def damages(file: Path, other: Path | None, chance: random.Random, count: int = 3) -> Iterator[Damage]:
    """Each kind once, those that have a place in the file at `count` places."""
    content = file.read_bytes()
    yield "cut in half", partial(file.write_bytes, content[: len(content) // 2])
    yield "last byte gone", partial(file.write_bytes, content[:-1])
    yield "empty", partial(file.write_bytes, b"")
    yield "gone", file.unlink
    yield "a folder in its place", partial(replace_by_folder, file)
    yield "a line more", partial(file.write_bytes, content + b"\n{}\n")
    for _ in range(count if content else 0):
        place = chance.randrange(len(content))
        yield (
            f"byte {place} turned",
            partial(put_byte, file, place, content[place] ^ 1 << chance.randrange(8)),
        )
    digits = [place for place, byte in enumerate(content) if chr(byte).isdigit()]
    for place in chance.sample(digits, min(count, len(digits))):
        yield (
            f"digit {place} changed",
            partial(put_byte, file, place, ord(other_digit(content[place], chance))),
        )
    lines = content.splitlines(keepends=True)
    if len(lines) > 1:
        number = chance.randrange(len(lines))
        yield f"line {number} gone", partial(file.write_bytes, b"".join(lines[:number] + lines[number + 1 :]))
    if other is not None and other.is_file() and other.read_bytes() != content:
        yield "another checkpoint's", partial(shutil.copyfile, other, file)


def other_digit(byte: int, chance: random.Random) -> str:
    return chance.choice([digit for digit in "0123456789" if digit != chr(byte)])


def put_byte(file: Path, place: int, byte: int) -> None:
    content = bytearray(file.read_bytes())
    content[place] = byte
    file.write_bytes(bytes(content))


def replace_by_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def files_of(run: Path) -> list[Path]:
    """All that a run's folder holds but the lock, the trackers' copies and pictures."""
    return [
        path.relative_to(run)
        for path in sorted(run.rglob("*"))
        if path.is_file() and not path.name.startswith(".") and "tensorboard" not in path.parts
    ]


def sibling(run: Path, name: Path, steps: list[int]) -> Path | None:
    """The same file of the other checkpoint: step_2/a of step_3/a."""
    if name.parts[0] != "checkpoints" or len(steps) < 2:
        return None
    one, two = (f"step_{step}" for step in steps[-2:])
    swapped = {one: two, two: one}.get(name.parts[1])
    return None if swapped is None else run.joinpath("checkpoints", swapped, *name.parts[2:])
