"""Confinement by namespaces: a root of its own without /proc, no network, and every test alone among processes.

What costs time is done once per zygote: user, mount, network, IPC and host name namespaces and the new root. Per
test there is a process namespace, in which the program is process 1 (when it dies, so do all it started), and an
empty /tmp that holds a set number of bytes and files.
"""

from __future__ import annotations

import os
import resource
import signal
from typing import Any

from foresail.judge.sandbox import kernel, landlock, seccomp
from foresail.judge.sandbox.limits import THREADS, plan_limits, set_fixed_limits
from foresail.judge.sandbox.paths import DEVICES, NOBODY, UNUSED_USER, library_paths, toolchain_paths
from foresail.judge.sandbox.protocol import BUILD

INNER_ID = 1000  # the program's user and group as it sees them
ALL_NAMESPACES = (
    kernel.CLONE_NEWUSER | kernel.CLONE_NEWNS | kernel.CLONE_NEWPID
    | kernel.CLONE_NEWNET | kernel.CLONE_NEWIPC | kernel.CLONE_NEWUTS
)  # fmt: skip
NEW_ROOT = "/tmp"  # covered by a tmpfs in the new mount namespace; any existing folder would do
# Landlock looks at the folders above a mount, not at the one it covers: programs may write below BOX.
BOX, WORK = "/box", "/box/tmp"


class Namespaces:
    """Linux namespaces, with Landlock and seccomp on top where the kernel has them."""

    def __init__(self, packages: tuple[str, ...] = ()) -> None:
        self.packages = packages
        self.filters: dict[seccomp.Permits, seccomp.Filter] = {}

    # Once, in the zygote.

    def start(self) -> str:
        """Leaves the host. Returns in a new process, the first of its process namespace."""
        enter_namespaces()
        self.libraries, self.tools = library_paths(self.packages), toolchain_paths()
        self.processes = kernel.lift(os.open("/proc/self/ns/pid", os.O_RDONLY))
        build_root([*self.libraries, *self.tools])
        os.environ.update(HOME=WORK, TMPDIR=WORK)
        become_unused_user()
        kernel.forbid_new_capabilities()
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)  # after the change of user, which clears it
        kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
        set_fixed_limits()
        self.rulesets = self.make_rulesets() if landlock.version() else {}
        return "namespaces" + "+landlock" * bool(self.rulesets) + "+seccomp"

    def make_rulesets(self) -> dict[str, int]:
        inside, tools = self.libraries, [*self.libraries, *self.tools]
        return {
            "script": landlock.make_ruleset(inside, (), DEVICES),
            "program": landlock.make_ruleset(inside, (BOX,), DEVICES),
            BUILD: landlock.make_ruleset(tools, (BOX,), DEVICES),
        }

    # Per test, in the zygote.

    def prepare(self, order: list[dict[str, Any]]) -> None:
        limits = order[0]["limits"]  # the program's; a test script that comes second has no /tmp
        size = f"size={limits['file_mb']}m,nr_inodes={limits['files'] + 1},mode=0700"
        kernel.mount("tmpfs", WORK, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC, size)
        for job in order:
            job["rlimits"] = plan_limits(job["limits"], THREADS + 2 * job["limits"]["processes"])
            permits = self.permits(job)
            if permits not in self.filters:
                self.filters[permits] = seccomp.load(seccomp.assemble(permits), pid=1)

    def permits(self, job: dict[str, Any]) -> seccomp.Permits:
        building = job["role"] == BUILD
        return seccomp.Permits(
            fork=building or job["limits"]["processes"] > 1, execute=building or job["role"] == "binary"
        )

    def fork(self) -> int:
        kernel.unshare(kernel.CLONE_NEWPID)
        pid = os.fork()
        if pid:
            kernel.setns(self.processes, kernel.CLONE_NEWPID)
        return pid

    def kill(self, pid: int) -> None:
        os.kill(pid, signal.SIGKILL)

    def clean(self) -> None:
        kernel.umount(WORK)

    def stop(self) -> None:
        """Everything goes with the zygote."""

    # Per test, in the new process.

    def confine(self, job: dict[str, Any]) -> None:
        os.chdir("/" if job["role"] == "script" else WORK)
        for kind, values in job["rlimits"]:
            resource.setrlimit(kind, values)
        kernel.drop_capabilities()
        if self.rulesets:
            landlock.restrict(self.rulesets.get(job["role"], self.rulesets["program"]))
        seccomp.install(self.filters[self.permits(job)])


# Into the namespaces.


def enter_namespaces() -> None:
    """Returns in a child; the process that came in stays behind, and ends with it."""
    user, group = os.getuid(), os.getgid()
    go_in, go_out = os.pipe()
    mapper = os.fork()
    if mapper == 0:
        map_unused_users(os.getppid(), go_in)
    kernel.unshare(ALL_NAMESPACES)
    os.write(go_out, b"!")
    _, status = os.waitpid(mapper, 0)
    os.close(go_in)
    os.close(go_out)
    if status:
        map_self(user, group)
    child = os.fork()
    if child:
        os.closerange(0, 1 << 16)
        os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 0xFF)


def map_unused_users(pid: int, go: int) -> None:
    """From outside, where the judge runs as root: its own user for building, an unused one for programs."""
    os.read(go, 1)
    for user in (UNUSED_USER + pid, NOBODY):
        try:
            for kind in ("gid", "uid"):
                write(f"/proc/{pid}/{kind}_map", f"0 0 1\n{INNER_ID} {user} 1\n")
        except OSError:
            continue
        os._exit(0)
    os._exit(1)


def map_self(user: int, group: int) -> None:
    """From inside, which anyone may do: the only user there is stays who it was."""
    write("/proc/self/setgroups", "deny")
    write("/proc/self/uid_map", f"{INNER_ID} {user} 1")
    write("/proc/self/gid_map", f"{INNER_ID} {group} 1")


def write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def become_unused_user() -> None:
    if os.getuid() == INNER_ID:
        return
    kernel.prctl(kernel.PR_SET_SECUREBITS, kernel.SECBIT_NO_SETUID_FIXUP)  # the zygote must still mount
    os.setgroups([])
    os.setresgid(INNER_ID, INNER_ID, INNER_ID)
    os.setresuid(INNER_ID, INNER_ID, INNER_ID)


# The new root.


def build_root(paths: list[str]) -> None:
    """A read-only root that shows these paths, a few devices and an empty /tmp, and nothing else."""
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    # Opened first: what will be mounted over NEW_ROOT may hide some of them.
    links = {path: os.readlink(path) for path in paths if os.path.islink(path)}
    shown = {path: os.open(path, os.O_PATH) for path in outermost(set(paths) - set(links))}
    devices = {path: os.open(path, os.O_PATH) for path in DEVICES if os.path.exists(path)}
    kernel.mount("tmpfs", NEW_ROOT, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "size=1m,mode=0755")
    for path, target in links.items():
        os.makedirs(os.path.dirname(NEW_ROOT + path), exist_ok=True)
        os.symlink(target, NEW_ROOT + path)
    for path, source in shown.items():
        bind(source, NEW_ROOT + path)
        kernel.make_read_only(NEW_ROOT + path, kernel.MS_RDONLY | kernel.MS_NOSUID | kernel.MS_NODEV)
    for path, source in devices.items():
        bind(source, NEW_ROOT + path)
    os.makedirs(NEW_ROOT + WORK)
    if not os.path.exists(NEW_ROOT + "/tmp"):  # unless the interpreter itself lives there
        os.symlink(WORK, NEW_ROOT + "/tmp")
    kernel.pivot_root(NEW_ROOT)
    kernel.mount("none", "/", None, kernel.MS_REMOUNT | kernel.MS_BIND | kernel.MS_RDONLY | kernel.MS_NOSUID)
    for descriptor in (*shown.values(), *devices.values()):
        os.close(descriptor)


def outermost(paths: set[str]) -> list[str]:
    """outermost({"/usr/lib", "/usr/lib/python3"}) -> ["/usr/lib"]."""
    outer_paths: list[str] = []
    for path in sorted(paths, key=len):
        if not any(path.startswith(outer + "/") for outer in outer_paths):
            outer_paths.append(path)
    return outer_paths


def bind(source: int, target: str) -> None:
    if os.path.isdir(f"/proc/self/fd/{source}"):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
    kernel.mount(f"/proc/self/fd/{source}", target, None, kernel.MS_BIND | kernel.MS_REC)
