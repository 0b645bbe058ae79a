"""What one process may use up, by rlimits."""

from __future__ import annotations

import math
import resource
from typing import Any

MB = 1 << 20
# Resident memory is what a program is judged by; its address space may be larger, for the sake of
# `threading.stack_size(512 << 20)`, which reserves far more than it will ever touch.
ADDRESS_ROOM_MB = 256
THREADS = 32
OPEN_FILES = 64

FIXED = {
    resource.RLIMIT_CORE: 0,
    resource.RLIMIT_MEMLOCK: 0,
    resource.RLIMIT_MSGQUEUE: 0,
    resource.RLIMIT_SIGPENDING: 64,
}
Rlimits = list[tuple[int, tuple[int, int]]]
PLANS: dict[tuple[Any, ...], Rlimits] = {}


def set_fixed_limits() -> None:
    """Those that bind the zygote as well as its children, so that no child needs to set them."""
    for kind, value in FIXED.items():
        resource.setrlimit(kind, lowered(kind, value))


def plan_limits(limits: dict[str, Any], tasks: int | None) -> Rlimits:
    """For `resource.setrlimit` in the child; made before the fork, once for all tests with these limits.

    `tasks` is how many threads and processes the program's user may have, where that can be counted.
    """
    key = (*limits.values(), tasks)
    if key not in PLANS:
        PLANS[key] = make_plan(limits, tasks)
    return PLANS[key]


def make_plan(limits: dict[str, Any], tasks: int | None) -> Rlimits:
    values = {
        resource.RLIMIT_AS: (limits["memory_mb"] + ADDRESS_ROOM_MB) * MB,
        resource.RLIMIT_CPU: math.floor(limits["seconds"]) + 2,  # its start counts; `watch` is more exact
        resource.RLIMIT_FSIZE: limits["largest_file"],
        resource.RLIMIT_NOFILE: OPEN_FILES,
    }
    if tasks is not None:
        values[resource.RLIMIT_NPROC] = tasks
    plan = [(kind, lowered(kind, value)) for kind, value in values.items()]
    # Deep recursion in C++ is common in contests; the address space is what bounds the stack.
    _, hard = resource.getrlimit(resource.RLIMIT_STACK)
    soft, _ = lowered(resource.RLIMIT_STACK, limits["memory_mb"] * MB)
    return [*plan, (resource.RLIMIT_STACK, (soft, hard))]


def lowered(kind: int, value: int) -> tuple[int, int]:
    """Soft and hard limit: `value`, or what the host allows if that is less."""
    _, hard = resource.getrlimit(kind)
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    return value, value
