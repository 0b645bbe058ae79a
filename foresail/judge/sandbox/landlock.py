"""Landlock: which files a process may touch, whatever its user may. Needs Linux 5.13."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable

from foresail.judge.sandbox.kernel import libc, lift, syscall

CREATE, ADD_RULE, RESTRICT = 444, 445, 446
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1}
ALL_RIGHTS = (1 << 16) - 1  # from version 5, which knows ioctl
FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | 1 << 14 | 1 << 15
READ_AND_EXECUTE = READ_FILE | READ_DIR | EXECUTE
MAKE_SPECIAL = 1 << 6 | 1 << 9 | 1 << 10 | 1 << 11 | 1 << 12  # devices, sockets, pipes, links


def version() -> int:
    """0 where the kernel has no Landlock."""
    return max(0, libc.syscall(ctypes.c_long(CREATE), None, ctypes.c_size_t(0), 1))


def handled(level: int) -> int:
    return RIGHTS.get(level, ALL_RIGHTS)


def make_ruleset(readable: Iterable[str], writable: Iterable[str], devices: Iterable[str]) -> int:
    """A descriptor for `restrict`. Everything not below one of these paths is out of reach, and so are
    TCP, abstract sockets and signals to outsiders where the kernel knows how."""
    level = version()
    rights = handled(level)
    attributes = struct.pack("=QQQ", rights, 3 if level >= 4 else 0, 3 if level >= 6 else 0)
    size = 8 if level < 4 else 16 if level < 6 else 24
    ruleset = syscall(CREATE, attributes, ctypes.c_size_t(size), 0, what="landlock_create_ruleset")
    for path in readable:
        allow(ruleset, path, READ_AND_EXECUTE)
    for path in writable:
        allow(ruleset, path, rights & ~MAKE_SPECIAL & ~EXECUTE)
    for path in devices:
        allow(ruleset, path, READ_FILE | WRITE_FILE)
    return lift(ruleset)


def allow(ruleset: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        rights &= handled(version())
        if not os.path.isdir(path):
            rights &= FILE_RIGHTS
        rule = struct.pack("=Qi", rights, place)
        syscall(ADD_RULE, ruleset, 1, rule, 0, what=f"landlock_add_rule {path}")
    finally:
        os.close(place)


def restrict(ruleset: int) -> None:
    syscall(RESTRICT, ruleset, 0, what="landlock_restrict_self")
