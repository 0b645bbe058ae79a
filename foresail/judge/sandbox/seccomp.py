"""Which system calls a program may make. Everything not named here fails with EPERM.

The filter is BPF assembled by hand. First, calls of another calling convention (32-bit, x32) kill the process; then
come the calls whose arguments matter, then a binary search through all others.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from dataclasses import dataclass

from foresail.judge.sandbox.kernel import MACHINE, SYS_SECCOMP, libc, syscall

# name:number on x86-64:number on aarch64; "-" where the machine has no such call.
PLAIN = """
    read:0:63 write:1:64 readv:19:65 writev:20:66 pread64:17:67 pwrite64:18:68 preadv:295:69 pwritev:296:70
    preadv2:327:286 pwritev2:328:287 close:3:57 close_range:436:436 stat:4:- fstat:5:80 lstat:6:- newfstatat:262:79
    statx:332:291 statfs:137:43 fstatfs:138:44 lseek:8:62 poll:7:- ppoll:271:73 select:23:- pselect6:270:72
    epoll_create:213:- epoll_create1:291:20 epoll_ctl:233:21 epoll_wait:232:- epoll_pwait:281:22 eventfd2:290:19
    timerfd_create:283:85 timerfd_settime:286:86 timerfd_gettime:287:87 mmap:9:222 mprotect:10:226 munmap:11:215
    mremap:25:216 madvise:28:233 brk:12:214 msync:26:227 rt_sigaction:13:134 rt_sigprocmask:14:135
    rt_sigreturn:15:139 rt_sigpending:127:136 rt_sigtimedwait:128:137 rt_sigsuspend:130:133 sigaltstack:131:132
    access:21:- faccessat:269:48 faccessat2:439:439 pipe:22:- pipe2:293:59 dup:32:23 dup2:33:- dup3:292:24
    nanosleep:35:101 clock_nanosleep:230:115 clock_gettime:228:113 clock_getres:229:114 gettimeofday:96:169
    time:201:- times:100:153 alarm:37:- setitimer:38:103 getitimer:36:102 pause:34:- getpid:39:172 gettid:186:178
    getppid:110:173 getuid:102:174 geteuid:107:175 getgid:104:176 getegid:108:177 getresuid:118:148
    getresgid:120:150 getgroups:115:158 getpgrp:111:- getpgid:121:155 getsid:124:156 getrusage:98:165
    getrlimit:97:163 setrlimit:160:164 uname:63:160 sysinfo:99:179 getcwd:79:17 chdir:80:49 fchdir:81:50
    umask:95:166 getdents:78:- getdents64:217:61 readlink:89:- readlinkat:267:78 ftruncate:77:46 fsync:74:82
    fdatasync:75:83 fallocate:285:47 fadvise64:221:223 futex:202:98 futex_waitv:449:449 set_robust_list:273:99
    set_tid_address:218:96 rseq:334:293 arch_prctl:158:- sched_yield:24:124 sched_getaffinity:204:123
    sched_getparam:143:121 sched_getscheduler:145:120 sched_get_priority_max:146:125 sched_get_priority_min:147:126
    getcpu:309:168 getpriority:140:141 exit:60:93 exit_group:231:94 wait4:61:260 waitid:247:95 getrandom:318:278
    restart_syscall:219:128 membarrier:324:283 recvfrom:45:207 shutdown:48:210 getsockname:51:204 getpeername:52:205
    getsockopt:55:209
"""
WRITING = """
    creat:85:- rename:82:- renameat:264:38 renameat2:316:276 mkdir:83:- mkdirat:258:34 rmdir:84:- unlink:87:-
    unlinkat:263:35
"""
FORKING = "fork:57:- vfork:58:-"
EXECUTING = "execve:59:221 execveat:322:281"
BUILDING = "chmod:90:- fchmod:91:52 fchmodat:268:53"  # a linker marks its output executable

BY_ARGUMENTS = """
    clone:56:220 clone3:435:435 kill:62:129 tgkill:234:131 prctl:157:167 prlimit64:302:261 ioctl:16:29 fcntl:72:25
    socketpair:53:199 sendto:44:206 open:2:- openat:257:56
"""

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
ARCHITECTURE = ARCHITECTURES.get(MACHINE, 0)
X32 = 0x40000000
NEW_NAMESPACES = 0x7E020080
CLONE_THREAD = 0x10000
WRITE_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
IOCTLS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)  # is it a terminal, how wide, bytes waiting, flags
FCNTLS = (0, 1, 2, 3, 4, 5, 6, 7, 1030, 1032, 1034)  # never F_SETOWN, which sends signals
PRCTLS = (15, 16, 0x53564D41)  # names of threads and of memory

ALLOW, KILL = 0x7FFF0000, 0x80000000
DENY = 0x00050000 | errno.EPERM
ABSENT = 0x00050000 | errno.ENOSYS

# BPF: load a word, compare, return.
LOAD, JUMP_EQUAL, JUMP_GREATER, JUMP_AT_LEAST, JUMP_SET, RETURN = 0x20, 0x15, 0x25, 0x35, 0x45, 0x06
AT_NUMBER, AT_ARCHITECTURE = 0, 4
PID = 0x50494421  # stands for the process's own id until the filter is installed

Step = tuple[int, int, int, int]  # code, jump if true, jump if false, operand


@dataclass(frozen=True, kw_only=True)
class Permits:
    """What differs between roles."""

    threads: bool = True
    fork: bool = False
    execute: bool = False
    write: bool = True  # to make, change and remove files; the mounts or Landlock say where


def numbers(listed: str, machine: str) -> dict[str, int]:
    """numbers("open:2:- openat:257:56", "aarch64") -> {"openat": 56}."""
    column = {"x86_64": 1, "aarch64": 2}[machine]
    parts = [entry.split(":") for entry in listed.split()]
    return {part[0]: int(part[column]) for part in parts if part[column] != "-"}


def argument(index: int, half: int = 0) -> int:
    """Where an argument's low (or high) word stands: both machines are little-endian."""
    return 16 + 8 * index + 4 * half


def returning(action: int) -> list[Step]:
    return [(RETURN, 0, 0, action)]


def when(number: int, steps: list[Step]) -> list[Step]:
    """Runs `steps`, which must return, if the call has this number."""
    return [(JUMP_EQUAL, 0, len(steps), number), *steps]


def one_of(index: int, allowed: tuple[int, ...]) -> list[Step]:
    """Allows the call if the argument is one of these."""
    tests: list[Step] = [(JUMP_EQUAL, len(allowed) - at, 0, value) for at, value in enumerate(allowed)]
    return [(LOAD, 0, 0, argument(index)), *tests, *returning(DENY), *returning(ALLOW)]


def zero(index: int) -> list[Step]:
    """Allows the call if the whole argument is 0."""
    low, high = argument(index), argument(index, 1)
    return [
        (LOAD, 0, 0, low), (JUMP_EQUAL, 0, 3, 0), (LOAD, 0, 0, high), (JUMP_EQUAL, 0, 1, 0),
        *returning(ALLOW), *returning(DENY),
    ]  # fmt: skip


def without_bits(index: int, bits: int) -> list[Step]:
    """Allows the call if the argument has none of these bits."""
    return [(LOAD, 0, 0, argument(index)), (JUMP_SET, 1, 0, bits), *returning(ALLOW), *returning(DENY)]


def clones(permits: Permits) -> list[Step]:
    if permits.fork:
        return without_bits(0, NEW_NAMESPACES)
    if not permits.threads:
        return returning(DENY)
    return [(LOAD, 0, 0, argument(0)), (JUMP_SET, 0, 3, CLONE_THREAD), *without_bits(0, NEW_NAMESPACES)]


def search(ranges: list[tuple[int, int]]) -> list[Step]:
    """Allows numbers in the ranges: search([(0, 3), (5, 5)]) -> 0…3 and 5."""
    if len(ranges) == 1:
        low, high = ranges[0]
        return [(JUMP_AT_LEAST, 0, 2, low), (JUMP_GREATER, 1, 0, high), *returning(ALLOW), *returning(DENY)]
    middle = len(ranges) // 2
    left, right = search(ranges[:middle]), search(ranges[middle:])
    return [(JUMP_AT_LEAST, len(left), 0, ranges[middle][0]), *left, *right]


def join_ranges(values: set[int]) -> list[tuple[int, int]]:
    """join_ranges({0, 1, 2, 5}) -> [(0, 2), (5, 5)]."""
    ranges: list[tuple[int, int]] = []
    for value in sorted(values):
        if ranges and ranges[-1][1] == value - 1:
            ranges[-1] = (ranges[-1][0], value)
        else:
            ranges.append((value, value))
    return ranges


def calls_by_arguments(permits: Permits, machine: str) -> list[Step]:
    """Calls that are allowed or not by their arguments."""
    call = numbers(BY_ARGUMENTS, machine)
    rules = [
        when(call["clone"], clones(permits)),
        when(call["clone3"], returning(ABSENT)),  # its arguments are in memory; the C library then uses clone
        when(call["prctl"], one_of(0, PRCTLS)),
        when(call["prlimit64"], zero(0)),
        when(call["ioctl"], one_of(1, IOCTLS)),
        when(call["fcntl"], one_of(1, FCNTLS)),
        when(call["socketpair"], one_of(0, (1,))),
        when(call["sendto"], zero(4)),  # to the other end only, never to an address
    ]
    for name in ("kill", "tgkill"):
        rules.append(when(call[name], returning(ALLOW) if permits.fork else one_of(0, (PID,))))
    for name, flags in (("open", 1), ("openat", 2)):
        if name in call:
            rules.append(
                when(call[name], returning(ALLOW) if permits.write else without_bits(flags, WRITE_FLAGS))
            )
    return [step for rule in rules for step in rule]


def assemble(permits: Permits, machine: str | None = None) -> bytes:
    """The filter, with PID where the process's own id belongs; for this machine, or for another one."""
    machine = machine or MACHINE
    groups = [PLAIN, WRITING * permits.write, FORKING * permits.fork, EXECUTING * permits.execute]
    listed = " ".join([*groups, BUILDING * (permits.fork and permits.execute)])
    steps: list[Step] = [
        (LOAD, 0, 0, AT_ARCHITECTURE), (JUMP_EQUAL, 1, 0, ARCHITECTURES[machine]), *returning(KILL),
        (LOAD, 0, 0, AT_NUMBER), (JUMP_AT_LEAST, 0, 1, X32), *returning(KILL),
        *calls_by_arguments(permits, machine), *search(join_ranges(set(numbers(listed, machine).values()))),
    ]  # fmt: skip
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


class Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_char_p))


def load(steps: bytes, pid: int) -> Filter:
    """The filter for one process, as the kernel wants it."""
    steps = steps.replace(struct.pack("=I", PID), struct.pack("=I", pid))
    return Filter(len(steps) // 8, steps)


def install(filter: Filter) -> None:
    """From here on, for this thread and all it starts. Needs no_new_privs."""
    # 4: programs here have no secrets from themselves, so speculation need not be slowed down.
    if libc.syscall(SYS_SECCOMP, 1, 4, ctypes.byref(filter)) < 0:
        syscall(SYS_SECCOMP, 1, 0, ctypes.byref(filter), what="seccomp")
