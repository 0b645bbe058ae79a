"""Files in memory: how programs, inputs and outputs pass between processes, without pipes that could block."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager


def hold(content: bytes) -> int:
    """A descriptor from which others may read `content`, and nobody may write."""
    writable = os.memfd_create("content")
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(writable, view) :]
        return reopen(writable)
    finally:
        os.close(writable)


def reopen(writable: int) -> int:
    """The same file, read-only and from its start. A file open for writing could not be executed."""
    return os.open(f"/proc/self/fd/{writable}", os.O_RDONLY | os.O_CLOEXEC)


def holding(*contents: bytes) -> AbstractContextManager[list[int]]:
    return closing_all([hold(content) for content in contents])


def collecting(count: int) -> AbstractContextManager[list[int]]:
    """Empty files for others to write into."""
    return closing_all([os.memfd_create("output") for _ in range(count)])


@contextmanager
def closing_all(descriptors: list[int]) -> Iterator[list[int]]:
    try:
        yield descriptors
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def collect(descriptor: int, max_bytes: int) -> bytes | None:
    """What was written, or None when it is more than `max_bytes`."""
    size = os.fstat(descriptor).st_size
    return None if size > max_bytes else os.pread(descriptor, size, 0)
