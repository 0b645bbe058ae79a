"""Documents that are connected by pairs: union-find over document numbers, the smallest number in front."""

from __future__ import annotations

from typing import Any

from numba import njit

compiled = njit(cache=True, nogil=True)


@compiled
def root_of(first_n: Any, number: int) -> int:
    while first_n[number] != number:
        first_n[number] = first_n[first_n[number]]
        number = first_n[number]
    return number


@compiled
def join_groups(first_n: Any, numbers: Any, starts: Any) -> None:
    """Members of a group become one cluster."""
    for group in range(len(starts) - 1):
        front = root_of(first_n, numbers[starts[group]])
        for at in range(starts[group] + 1, starts[group + 1]):
            other = root_of(first_n, numbers[at])
            if other < front:
                front, other = other, front
            first_n[other] = front


@compiled
def flatten(first_n: Any) -> None:
    """Each number's first becomes the front of its cluster: a front is smaller than what it stands before."""
    for number in range(len(first_n)):
        first_n[number] = first_n[first_n[number]]
