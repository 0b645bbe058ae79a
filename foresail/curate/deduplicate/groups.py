"""Documents with equal keys, out of core: keys are split over files by their first bits, then sorted one by one.

    for numbers, starts in equal_groups(columns, memory, scratch): numbers[starts[0]:starts[1]] are equal

Near-linear: each key is written once, read once, and sorted among as many as fit into memory. Of a key that stands
more often than that, the numbers alone are in memory: 8 bytes for each document that has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from foresail.curate.deduplicate.blocks import Array

ROW_BYTES = 64  # of memory for one key while it is sorted: key, number, order, copies
MOST_BITS = 8  # 256 files at once; a part that is too large for memory is split again
AT_ONCE = 1 << 16
FEW = 256  # keys that are not worth splitting
Keys = Callable[[], Iterator[tuple[Array, Array]]]  # arrays of keys (n, words) and their numbers


def equal_groups(keys: Keys, total: int, memory: int, scratch: Path) -> Iterator[tuple[Array, Array]]:
    """Numbers of keys that stand more than once, group by group and ascending in each, and where groups start.

    The first word of a key must be spread evenly; keys with 0 there are left out. Groups come in a fixed order.
    """
    yield from split_groups(keys, total, memory, scratch, 64)


def split_groups(
    keys: Keys, total: int, memory: int, scratch: Path, bits_left: int
) -> Iterator[tuple[Array, Array]]:
    """`bits_left`: bits of the first word that may differ."""
    if bits_left == 0 and (numbers := numbers_of_one_key(keys)) is not None:
        if len(numbers) > 1:
            yield numbers, np.array([0, len(numbers)])
        return
    if total <= max(memory // ROW_BYTES, FEW) or bits_left == 0:
        parts = [(part[part[:, 0] != 0], numbers[part[:, 0] != 0]) for part, numbers in keys()]
        if parts:
            yield from sorted_groups(
                np.concatenate([part for part, _ in parts]), np.concatenate([numbers for _, numbers in parts])
            )
        return
    bits = min(MOST_BITS, bits_left, (2 * total * ROW_BYTES // memory).bit_length())
    folder = scratch / f"{bits_left}"
    folder.mkdir(parents=True)
    files = [folder / f"{part:03}" for part in range(2**bits)]
    words, sizes = split(keys, files, bits_left - bits)
    for file, size in zip(files, sizes, strict=True):
        if size:  # a key that stands so often that others are few is not split bit by bit
            left = bits_left - bits if size < total else 0
            yield from split_groups(partial(read_part, file, words), size, memory, scratch, left)
        file.unlink()
    folder.rmdir()


def numbers_of_one_key(keys: Keys) -> Array | None:
    """All numbers if there is one key alone: 8 bytes each, where sorting takes ROW_BYTES."""
    first = None
    found = []
    for part, numbers in keys():
        first = part[0] if first is None else first
        if np.any(part != first):
            return None
        found.append(numbers)
    return np.concatenate(found) if found and first is not None and first[0] else None


def split(keys: Keys, files: list[Path], shift: int) -> tuple[int, list[int]]:
    """Append each key and its number to a file, by the bits above `shift`; words of a key, keys in each file."""
    sizes, words = [0] * len(files), 1
    opened = [file.open("wb") for file in files]
    try:
        for part, numbers in keys():
            words = part.shape[1]
            rows = np.column_stack([part, numbers.astype(np.uint64)])[part[:, 0] != 0]
            places = ((rows[:, 0] >> np.uint64(shift)) & np.uint64(len(files) - 1)).astype(np.int64)
            rows = rows[np.argsort(places, kind="stable")]
            begin = 0
            for number, count in enumerate(np.bincount(places, minlength=len(files)).tolist()):
                opened[number].write(rows[begin : begin + count].tobytes())
                sizes[number] += count
                begin += count
    finally:
        for file in opened:
            file.close()
    return words, sizes


def read_part(file: Path, words: int) -> Iterator[tuple[Array, Array]]:
    rows = np.memmap(file, np.uint64, mode="r").reshape(-1, words + 1)
    for begin in range(0, len(rows), AT_ONCE):
        part = np.array(rows[begin : begin + AT_ONCE])
        yield part[:, :words], part[:, words].astype(np.int64)


def sorted_groups(keys: Array, numbers: Array) -> Iterator[tuple[Array, Array]]:
    if len(keys) < 2:
        return
    order = np.argsort(keys[:, 0])
    first = keys[order, 0]
    equal = first[1:] == first[:-1]
    several = order[np.append(equal, False) | np.append(False, equal)]
    keys, numbers = keys[several], numbers[several]
    order = np.lexsort((numbers, *reversed(keys.T)))
    keys, numbers = keys[order], numbers[order]
    new = np.append(True, np.any(keys[1:] != keys[:-1], axis=1))[: len(keys)]
    starts = np.append(np.flatnonzero(new), len(keys))
    sizes = np.diff(starts)
    alone = np.zeros(len(keys), bool)
    alone[starts[:-1][sizes == 1]] = True
    if len(numbers) > np.count_nonzero(alone):
        yield numbers[~alone], np.append(0, np.cumsum(sizes[sizes > 1]))
