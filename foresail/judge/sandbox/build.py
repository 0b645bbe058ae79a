"""From source to something that runs, once per program and confined: bytecode for Python, a binary for C++."""

from __future__ import annotations

import os
import shutil

from foresail.judge.programs.program import Limits, Program
from foresail.judge.sandbox.memory_files import collecting, hold, holding, reopen
from foresail.judge.sandbox.paths import COMPILER
from foresail.judge.sandbox.protocol import BUILD
from foresail.judge.sandbox.trial import DEV_NULL, Runnable, shorten, to_bytes
from foresail.judge.sandbox.worker import JudgeWorker, Spawn

# Of each process of the compiler's; a template bomb uses all of it, an honest program a tenth.
BINARY_LIMITS = Limits(seconds=15, memory_mb=1024, output_bytes=64 << 20, file_mb=64, files=64, processes=8)


class NotCompiled(Exception):
    """The program does not compile; the message is the compiler's."""


def check_compiler() -> None:
    if shutil.which(COMPILER) is None:
        raise FileNotFoundError(
            f"C++ programs need {COMPILER}, which is not installed (Debian: apt install g++)"
        )


def build(worker: JudgeWorker, program: Program, limits: Limits) -> Runnable:
    """The program, compiled for several tests. Raises NotCompiled."""
    python = program.language == "python"
    spawn_limits = limits if python else BINARY_LIMITS
    with holding(to_bytes(program.source)) as (source,), collecting(2) as (errors, result):
        descriptors = (source, DEV_NULL, errors, errors, result)
        role = "compile" if python else BUILD
        (ended,) = worker.run(Spawn(role=role, limits=spawn_limits, descriptors=descriptors))
        if ended.status or ended.timed_out:
            limit = f"time limit {spawn_limits.seconds:g} s" if ended.timed_out else f"status {ended.status}"
            said = os.pread(errors, 2000, 0).decode("utf-8", "replace")  # a compiler's first error tells most
            raise NotCompiled(f"does not compile: {shorten(said, 200) or limit}")
        return Runnable(descriptor=reopen(result), compiled=True, role="main" if python else "binary")


def as_source(program: Program) -> Runnable:
    """A Python program for one test, which may as well compile it itself."""
    return Runnable(descriptor=hold(to_bytes(program.source)), compiled=False, role="main")
