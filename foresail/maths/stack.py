"""Room on Python's stack for a verdict, wherever it is asked for.

Trees have at most `MAX_LEVELS` levels, and what walks them recursively needs at most some 500 calls inside each
other for one so deep. A caller that is deep itself gets a thread, whose stack is empty: no response can choose to
fail there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from typing import ParamSpec, TypeVar

CALLS = 700  # inside each other that are kept free

P = ParamSpec("P")
T = TypeVar("T")


def with_room(function: Callable[P, T]) -> Callable[P, T]:
    """The function, called on a thread of its own where the stack has not that much room."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        if _has_room():
            return function(*args, **kwargs)
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(function, *args, **kwargs).result()

    return call


def _has_room() -> bool:
    try:
        sys._getframe(max(0, sys.getrecursionlimit() - CALLS))
    except ValueError:  # the stack is not that deep
        return True
    return False
