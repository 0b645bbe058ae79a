"""Loads a grader within a time limit, and explains failures.

A reward file may import what is not installed, or hang at its first line: the error comes before the first step and
names the file and the line.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from foresail.rewards.time_limit import TimeLimit

LONGEST_DETAIL = 500  # characters of an error that verdicts keep
PACKAGE = str(Path(__file__).parents[1]) + os.sep
LOADING_SECONDS = 300.0  # a grader may import a large library, or read a model


class LoadingTooLong(BaseException):
    """Not an Exception, so that the code that is loaded does not catch it."""


@contextmanager
def loading_limit(seconds: float) -> Iterator[None]:
    """Raises `LoadingTooLong` at the line that runs when the time is spent; in a process's main thread only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    limit = TimeLimit(os.getpid(), seconds)

    def look(number: int, frame: FrameType | None) -> None:
        if (remaining := limit.left()) > 0:  # it had to wait for a core
            signal.setitimer(signal.ITIMER_REAL, remaining)
            return
        raise LoadingTooLong(f"loading took longer than {seconds:g} s and was stopped")

    before: Any = signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def explain_loading(error: BaseException) -> str:
    """explain_loading(KeyError("x")) -> "KeyError: 'x' (rewards.py:2)"; of what is not installed, how to get it."""
    if isinstance(error, LoadingTooLong):
        return f"{error}{where(error, is_own)}"
    line = in_one_line(error)
    if isinstance(error, ModuleNotFoundError) and error.name:
        missing = error.name.partition(".")[0]
        return f"{line}; pip install the package that has {missing}, or put {missing}.py beside the file"
    return line


def in_one_line(error: BaseException) -> str:
    """in_one_line(KeyError("x")) -> "KeyError: 'x' (rewards.py:12)", where it was raised."""
    words = "".join(traceback.format_exception_only(error)).strip().rpartition("\n")[2]
    return words[:LONGEST_DETAIL] + where(error, lambda file: file[0] != "<")


def where(error: BaseException, counts: Callable[[str], bool]) -> str:
    """The innermost line of a file that counts: " (rewards.py:12)"."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if counts(frame.filename)]
    return f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""


def is_own(file: str) -> bool:
    """Whether the file is the user's own, and not Python's, a library's or ours."""
    return file[0] != "<" and not file.startswith((sys.prefix, sys.base_prefix, PACKAGE))
