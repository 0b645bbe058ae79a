"""Messages on a stream: four bytes of length, then so many bytes."""

from __future__ import annotations

import os

MAX_FRAME_BYTES = 32 << 20


def write_frame(descriptor: int, body: bytes) -> None:
    view = memoryview(len(body).to_bytes(4, "big") + body)
    while view:
        view = view[os.write(descriptor, view) :]


def read_frame(descriptor: int) -> bytes | None:
    """None when the other side has hung up, or sends what is too long."""
    head = read_exactly(descriptor, 4)
    length = int.from_bytes(head or b"", "big")
    return read_exactly(descriptor, length) if head is not None and length <= MAX_FRAME_BYTES else None


def read_exactly(descriptor: int, length: int) -> bytes | None:
    parts = []
    while length:
        part = os.read(descriptor, min(length, 1 << 20))
        if not part:
            return None
        parts.append(part)
        length -= len(part)
    return b"".join(parts)
