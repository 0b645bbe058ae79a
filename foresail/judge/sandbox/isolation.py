"""Chooses how programs are confined: the strongest level that passes its trial on this machine."""

from __future__ import annotations

import os
from pathlib import Path

from foresail.judge.programs.program import Limits
from foresail.judge.sandbox.memory_files import collecting, holding
from foresail.judge.sandbox.trial import DEV_NULL
from foresail.judge.sandbox.worker import JudgeWorker, Spawn, WorkerDied
from foresail.records import RunStopped

STRONGEST_FIRST = ("namespaces", "landlock", "bubblewrap")
NAMES = (*STRONGEST_FIRST, "none")
ADVICE = (
    "Enable unprivileged user namespaces (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone,"
    " kernel.apparmor_restrict_unprivileged_userns=0; in Docker --security-opt seccomp=unconfined), or use"
    " Linux 5.13 or newer with Landlock, or install bubblewrap. In a container that holds nothing else,"
    ' isolation="none" runs programs unconfined.'
)


def check_name(isolation: str | None) -> None:
    if isolation is not None and isolation not in NAMES:
        raise ValueError(
            f"isolation {isolation!r} is unknown; use one of {', '.join(NAMES)}, or None for the strongest"
        )


def start_strongest(isolation: str | None, packages: tuple[Path, ...]) -> tuple[str, JudgeWorker]:
    """A worker at the asked level, or at the strongest that holds. Never at a weaker one than was asked."""
    check_name(isolation)
    failures = []
    for level in STRONGEST_FIRST if isolation is None else (isolation,):
        try:
            return level, start(level, packages)
        except WorkerDied as error:
            failures.append(f"{level}: {error}")
    raise RunStopped(f"no way to confine programs works here ({'; '.join(failures)}). {ADVICE}")


def start(level: str, packages: tuple[Path, ...]) -> JudgeWorker:
    worker = JudgeWorker(level, packages)
    if level != "none":
        try:
            prove(worker)
        except WorkerDied:
            worker.close()
            raise
    return worker


def prove(worker: JudgeWorker) -> None:
    """Raises WorkerDied unless a confined process fails at everything it should fail at."""
    with holding(b"") as (empty,), collecting(1) as (leaks,):
        descriptors = (empty, DEV_NULL, DEV_NULL, leaks)
        (ended,) = worker.run(Spawn(role="probe", limits=Limits(), descriptors=descriptors))
        if ended.exit != 0:
            leaked = os.pread(leaks, 500, 0).decode("utf-8", "replace")
            raise WorkerDied(f"a confined process could: {leaked or f'end with status {ended.status}'}")
