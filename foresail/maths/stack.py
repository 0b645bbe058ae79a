"""Room on Python's stack for a verdict, wherever it is asked for.

Trees have at most `MAX_LEVELS` levels, and what walks them recursively needs at most some 500 calls inside each
other for one so deep. A caller that is deep itself gets a thread, whose stack is empty: no response can choose to
fail there.

To look for room takes as long as finding a box does. So `with_room` stands where trees are walked, and what leads
there is simply called again if the stack ends.
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
        return function(*args, **kwargs) if has_room() else _on_empty_stack(function, *args, **kwargs)

    return call


def again_with_room(function: Callable[P, T]) -> Callable[P, T]:
    """The function, called again on a thread of its own where the stack ended in it.

    Nothing in it may hold on to a RecursionError that comes where there is no room.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except RecursionError:
            if has_room():
                raise
        return _on_empty_stack(function, *args, **kwargs)

    return call


def has_room() -> bool:
    """Whether that much is free; on an empty stack that is smaller, too."""
    limit = sys.getrecursionlimit()
    try:
        sys._getframe(max(limit // 2, limit - CALLS))
    except ValueError:  # the stack is not that deep
        return True
    return False


def _on_empty_stack(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(function, *args, **kwargs).result()
