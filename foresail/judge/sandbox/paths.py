"""What of the host a sandbox shows, read-only: the standard library, shared libraries, the C++ toolchain."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from collections.abc import Iterable

DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
LIBRARIES = ("/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64", "/etc/ld.so.cache")
TOOLCHAIN = ("/bin", "/usr/bin", "/usr/include", "/usr/libexec", "/etc/alternatives")
COMPILER = "g++"
UNUSED_USER = 0x70000000  # a user id that nobody has, for a judge that runs as root; a process id is added
NOBODY = 65534


def library_paths(packages: Iterable[str] = ()) -> list[str]:
    """What a Python or C++ program may read while it runs."""
    standard = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib")}
    shared = {os.path.join(sys.base_exec_prefix, "lib"), *map(os.path.realpath, standard)}
    return existing([*LIBRARIES, *sorted({*standard, *shared}), *packages])


def toolchain_paths() -> list[str]:
    """What the compiler needs beside that, wherever it is installed."""
    compiler = shutil.which(COMPILER)
    own = [os.path.dirname(os.path.dirname(os.path.realpath(compiler)))] if compiler else []
    return existing([*TOOLCHAIN, *(path for path in own if path not in ("/", "/usr"))])


def existing(paths: Iterable[str]) -> list[str]:
    return [path for path in dict.fromkeys(paths) if os.path.exists(path)]
