"""Confinement where namespaces are forbidden: rlimits, Landlock and seccomp; and none at all, for those who ask.

Without a process namespace a program's children might escape, so it may have none. Without a mount namespace its
files cannot be limited, so it may write none.
"""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import tempfile
from collections.abc import Iterator
from typing import Any

from foresail.judge.sandbox import kernel, landlock, seccomp
from foresail.judge.sandbox.limits import THREADS, plan_limits, set_fixed_limits
from foresail.judge.sandbox.paths import DEVICES, NOBODY, UNUSED_USER, library_paths, toolchain_paths
from foresail.judge.sandbox.protocol import BUILD

SCRATCH = "foresail-judge-"


class Unconfined:
    """`isolation="none"`: a process of its own with limits, for people in a container of their own."""

    tasks: int | None = None

    def __init__(self, packages: tuple[str, ...] = ()) -> None:
        self.packages = packages

    # Once, in the zygote.

    def start(self) -> str:
        kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)  # orphans come here, where they are killed
        set_fixed_limits()
        self.scratch = tempfile.mkdtemp(prefix=f"{SCRATCH}{os.getppid()}-")  # the judge's process id
        self.folder = os.path.join(self.scratch, "work")
        return "none"

    def stop(self) -> None:
        shutil.rmtree(self.scratch, ignore_errors=True)

    # Per test, in the zygote.

    def prepare(self, order: list[dict[str, Any]]) -> None:
        os.makedirs(self.folder, exist_ok=True)
        for job in order:
            job["rlimits"] = plan_limits(job["limits"], self.tasks)

    def fork(self) -> int:
        return os.fork()

    def kill(self, pid: int) -> None:
        for kill in (os.killpg, os.kill):  # the group may not exist yet
            with contextlib.suppress(ProcessLookupError):
                kill(pid, signal.SIGKILL)

    def clean(self) -> None:
        """No process and no file of the last test stays."""
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG) is not None:  # raises when there is nobody left
                for pid in children():
                    os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)

    # Per test, in the new process.

    def confine(self, job: dict[str, Any]) -> None:
        os.setsid()
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
        os.chdir(self.folder)
        for kind, values in job["rlimits"]:
            resource.setrlimit(kind, values)


class Restricted(Unconfined):
    """Landlock and seccomp; inside bubblewrap, also without Landlock."""

    needs_landlock = True

    def start(self) -> str:
        if self.needs_landlock and not landlock.version():
            raise OSError("the kernel has no Landlock (Linux 5.13 or newer with `landlock` among its `lsm`)")
        super().start()
        self.filters: dict[seccomp.Permits, bytes] = {}
        libraries, tools = library_paths(self.packages), toolchain_paths()
        self.leave_root(libraries)
        self.rulesets = {}
        if landlock.version():
            self.rulesets["program"] = landlock.make_ruleset(libraries, (), DEVICES)
            self.rulesets[BUILD] = landlock.make_ruleset([*libraries, *tools], (self.scratch,), DEVICES)
        return "landlock+seccomp" if self.rulesets else "seccomp"

    def leave_root(self, libraries: list[str]) -> None:
        """Becomes a user id that nobody has. Libraries in a private folder of root's stay readable, by the one
        capability that is for reading; Landlock still says what."""
        capabilities = 0
        if os.getuid() == 0:
            private = not all(map(readable_by_all, libraries))
            left = become(UNUSED_USER + os.getpid(), self.scratch) or become(NOBODY, self.scratch)
            capabilities = kernel.CAP_DAC_READ_SEARCH if left and private else 0
        kernel.forbid_new_capabilities()
        kernel.drop_capabilities(capabilities)
        self.tasks = count_tasks(os.getuid()) + THREADS

    def prepare(self, order: list[dict[str, Any]]) -> None:
        super().prepare(order)
        for permits in map(self.permits, order):
            if permits not in self.filters:
                self.filters[permits] = seccomp.assemble(permits)

    def permits(self, job: dict[str, Any]) -> seccomp.Permits:
        building = job["role"] == BUILD
        return seccomp.Permits(
            threads=os.getuid() != 0,  # root's are not counted, so a limit on their number would not hold
            fork=building,
            write=building,
            execute=building or job["role"] == "binary",
        )

    def confine(self, job: dict[str, Any]) -> None:
        super().confine(job)
        if self.rulesets:
            landlock.restrict(self.rulesets.get(job["role"], self.rulesets["program"]))
        seccomp.install(seccomp.load(self.filters[self.permits(job)], os.getpid()))


class Boxed(Restricted):
    """What bubblewrap started: it has made the namespaces, seccomp does the rest."""

    needs_landlock = False

    def start(self) -> str:
        return f"bubblewrap+{super().start()}"


def become(user: int, scratch: str) -> bool:
    """Whether this process could turn into that user; a container may not know it."""
    try:
        # capabilities are dropped later
        kernel.prctl(kernel.PR_SET_SECUREBITS, kernel.SECBIT_NO_SETUID_FIXUP)
        os.chown(scratch, user, user)
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    except OSError:
        return False
    return True


def children() -> Iterator[int]:
    """Processes whose parent this is; none where there is no /proc, as in bubblewrap, which kills them itself."""
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc"):
            with contextlib.suppress(OSError, ValueError):
                pid = int(name)
                with open(f"/proc/{pid}/stat", "rb") as file:
                    if int(file.read().rpartition(b")")[2].split()[1]) == os.getpid():
                        yield pid


def count_tasks(user: int) -> int:
    """Threads of a user's processes: the limit on their number counts those of other programs too."""
    count = 0
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc"):
            with contextlib.suppress(OSError):
                if name.isdigit() and os.stat(f"/proc/{name}").st_uid == user:
                    count += len(os.listdir(f"/proc/{name}/task"))
    return count


def readable_by_all(path: str) -> bool:
    """Whether any user may read it: every folder on the way is open to others."""
    path = os.path.realpath(path)
    while path != "/":
        if not os.stat(path).st_mode & 0o001 and os.path.isdir(path):
            return False
        path = os.path.dirname(path)
    return True
