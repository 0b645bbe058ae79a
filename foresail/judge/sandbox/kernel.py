"""Linux calls that the standard library lacks. Numbers that name no machine are the same on all machines."""

from __future__ import annotations

import ctypes
import fcntl
import os
import platform
import struct

MACHINE = platform.machine()

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x20000, 0x4000000, 0x8000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT = 1, 2, 4, 8, 32
MS_NOATIME, MS_NODIRATIME, MS_BIND, MS_REC, MS_PRIVATE = 1024, 2048, 4096, 16384, 1 << 18
MNT_DETACH = 2
AT_RECURSIVE, AT_FDCWD = 0x8000, -100

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP = 1, 4, 24
PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 36, 38
PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP = 28, 1 << 2
PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
LAST_CAPABILITY = 63
LOW_DESCRIPTORS, MAX_DESCRIPTORS = 100, 1 << 16

SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}.get(MACHINE, -1)
SYS_SECCOMP = {"x86_64": 317, "aarch64": 277}.get(MACHINE, -1)
SYS_MOUNT_SETATTR = 442

libc = ctypes.CDLL(None, use_errno=True)
capset = libc.capset  # looked up here, once, rather than in every child


def check(result: int, what: str) -> int:
    """The result, or the OSError that a negative one stands for."""
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")
    return result


def syscall(number: int, *arguments: object, what: str) -> int:
    return check(libc.syscall(ctypes.c_long(number), *arguments), what)


def lift(descriptor: int) -> int:
    """The same file under a number above those that a program's own descriptors will take."""
    lifted = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, LOW_DESCRIPTORS)
    os.close(descriptor)
    return lifted


def prctl(option: int, *arguments: int) -> None:
    padded = [*arguments, 0, 0, 0, 0][:4]
    check(libc.prctl(option, *(ctypes.c_ulong(argument) for argument in padded)), f"prctl {option}")


def unshare(flags: int) -> None:
    check(libc.unshare(flags), f"unshare {flags:#x}")


def setns(descriptor: int, flags: int) -> None:
    check(libc.setns(descriptor, flags), f"setns {flags:#x}")


def mount(source: str, target: str, kind: str | None, flags: int, options: str = "") -> None:
    done = libc.mount(
        source.encode(), target.encode(), kind and kind.encode(), ctypes.c_ulong(flags), options.encode()
    )
    check(done, f"mount {target}")


def umount(target: str) -> None:
    check(libc.umount2(target.encode(), MNT_DETACH), f"umount {target}")


def make_read_only(target: str, flags: int) -> None:
    """A bind mount and all below it, without loosening what the host has set on them."""
    attributes, size = struct.pack("=QQQQ", flags, 0, 0, 0), ctypes.c_size_t(32)
    call = ctypes.c_long(SYS_MOUNT_SETATTR)
    if libc.syscall(call, AT_FDCWD, target.encode(), AT_RECURSIVE, attributes, size) < 0:
        # Linux before 5.12: this mount alone, with the flags it already has
        present = os.statvfs(target).f_flag & (MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_NOATIME | MS_NODIRATIME)
        mount("none", target, None, MS_BIND | MS_REMOUNT | flags | present)


def pivot_root(new_root: str) -> None:
    """Makes `new_root` the root, and lets go of the old one."""
    os.chdir(new_root)
    syscall(SYS_PIVOT_ROOT, b".", b".", what="pivot_root")
    umount(".")
    os.chdir("/")


CAP_DAC_READ_SEARCH = 1 << 2
CAPABILITY_HEADER = ctypes.c_char_p(struct.pack("=Ii", 0x20080522, 0))
NO_CAPABILITIES = ctypes.c_char_p(bytes(24))


def drop_capabilities(mask: int = 0) -> None:
    """Drops all but those in `mask`, for this thread and for good."""
    capabilities = ctypes.c_char_p(struct.pack("=6I", mask, mask, 0, 0, 0, 0)) if mask else NO_CAPABILITIES
    check(capset(CAPABILITY_HEADER, capabilities), "capset")


def forbid_new_capabilities() -> None:
    """No program that is executed from here on may gain any."""
    for capability in range(LAST_CAPABILITY + 1):
        if libc.prctl(PR_CAPBSET_DROP, ctypes.c_ulong(capability), 0, 0, 0) < 0:
            break
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    prctl(PR_SET_NO_NEW_PRIVS, 1)
