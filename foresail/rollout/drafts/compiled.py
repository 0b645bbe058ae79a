"""Compiles functions over flat arrays with numba if it is installed; else they run as plain Python.

Both run the same source. Functions take one-dimensional arrays only: as numpy arrays when compiled, as
memoryviews, which Python reads twice as fast, when not.

    pip install foresail[drafts]
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

F = TypeVar("F", bound=Callable[..., Any])
Flat = Any  # a one-dimensional array of int32, int64 or float64, or a view of one

numba: Any
try:
    numba = importlib.import_module("numba")
except ImportError:
    numba = None


def compiled(function: F) -> F:
    """The function in machine code, which does not hold the interpreter's lock."""
    if numba is None:
        return function
    try:
        return numba.njit(function, cache=True, nogil=True)
    except RuntimeError:  # no folder to cache the machine code: compile it in every process
        return numba.njit(function, nogil=True)


def flat(array: np.ndarray) -> Flat:
    """What a function made by `compiled` takes for an array; it writes through to it."""
    line: Flat = array.reshape(-1)
    return line if numba is not None else memoryview(line)
