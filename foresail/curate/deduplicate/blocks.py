"""A file of arrays in blocks: written in one pass, read by memory map, so that neither side holds all of it.

    with BlockWriter(path) as file:
        file.add(keys=keys_bn, ids=…)      # a block for some thousand documents
    for block in read_blocks(path): block["keys"]

After each header (a line of JSON, as long as its first eight bytes say) the arrays lie one after the other. A last,
empty header says how many blocks there are: a file without it was cut off.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np

Array = np.ndarray[Any, Any]
ALIGNED = 64


class BlockWriter:
    def __init__(self, path: Path) -> None:
        self.file = path.open("wb")
        self.blocks = 0

    def add(self, **arrays: Array) -> None:
        whole = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        self.write_header({name: (array.dtype.str, array.shape) for name, array in whole.items()})
        for array in whole.values():
            self.file.write(array.data if array.size else b"")
            self.pad()
        self.blocks += 1

    def write_header(self, header: dict[str, Any]) -> None:
        line = json.dumps(header).encode()
        self.file.write(len(line).to_bytes(8, "little") + line)
        self.pad()

    def pad(self) -> None:
        self.file.write(bytes(-self.file.tell() % ALIGNED))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.write_header({"blocks": self.blocks})
        self.file.close()


def read_blocks(path: Path) -> Iterator[dict[str, Array]]:
    """The arrays of each block; they are views of the file, pages of it are read when they are used."""
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty: whoever wrote it was stopped; remove its folder and run again")
    content = np.memmap(path, np.uint8, mode="r")
    at = blocks = 0
    while True:
        size = int.from_bytes(content[at : at + 8].tobytes(), "little")
        line = content[at + 8 : at + 8 + size].tobytes()
        if at + 8 > len(content) or len(line) < size:
            raise ValueError(f"{path} ends in the middle: remove its folder and run again")
        header = json.loads(line)
        at += aligned(8 + size)
        if isinstance(header.get("blocks"), int):
            if header["blocks"] != blocks:
                raise ValueError(f"{path} has {blocks} of {header['blocks']} blocks: run again without it")
            return
        block = {}
        for name, (kind, shape) in header.items():
            dtype = np.dtype(kind)
            length = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
            if at + length > len(content):
                raise ValueError(f"{path} ends in the middle: remove its folder and run again")
            block[name] = content[at : at + length].view(dtype).reshape(shape)
            at += aligned(length)
        yield block
        blocks += 1


def aligned(size: int) -> int:
    return -(-size // ALIGNED) * ALIGNED
