"""Enough of Python's stack for a verdict, also where the caller has used most of it.

Trees have at most `MAX_LEVELS` levels, and a recursive function needs some 500 nested calls for the deepest. Where
fewer are left, the function runs in a thread of its own, whose stack is empty. So no response can fail on purpose.

Measuring the stack takes as long as finding a box. So only functions that walk trees measure it first
(`with_room`); those that call them are called again after a RecursionError (`again_with_room`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from typing import ParamSpec, TypeVar

FREE_CALLS = 700  # nested calls that must be free

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
        sys._getframe(max(limit // 2, limit - FREE_CALLS))
    except ValueError:  # the stack is not that deep
        return True
    return False


def _on_empty_stack(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(function, *args, **kwargs).result()
