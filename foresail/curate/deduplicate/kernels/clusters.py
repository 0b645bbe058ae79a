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


@compiled
def agree(one_P: Any, other_P: Any, least: int) -> bool:
    """Whether at least so many numbers of two signatures are equal."""
    equal = 0
    for permutation in range(len(one_P)):
        equal += one_P[permutation] == other_P[permutation]
    return equal >= least


@compiled
def compare_groups(
    numbers: Any, starts: Any, slots_n: Any, signatures_sP: Any, least: int, leaders: Any, liked_n: Any
) -> int:
    """Compare each member with the leaders of its group, those that were like none before; how many comparisons.

    liked_n becomes the smallest number that a document was found to be like. Of leaders there are as many as fit
    into `leaders`, so a group takes time in proportion to its size.
    """
    comparisons = 0
    for group in range(len(starts) - 1):
        count = 0
        for at in range(starts[group], starts[group + 1]):
            number = numbers[at]
            own_P = signatures_sP[slots_n[number]]
            like = False
            for leader in range(count):
                if liked_n[number] == leaders[leader]:  # as an earlier band has found
                    like = True
                    break
                comparisons += 1
                if agree(own_P, signatures_sP[slots_n[leaders[leader]]], least):
                    liked_n[number] = min(liked_n[number], leaders[leader])
                    like = True
                    break
            if not like and count < len(leaders):
                leaders[count] = number
                count += 1
    return comparisons


@compiled
def settle(liked_n: Any, slots_n: Any, signatures_sP: Any, least: int) -> None:
    """In place, in the order of documents: who repeats one that stays repeats it; all others stay.

    Who is like one that goes is compared with what that one repeats: so chains of small changes end.
    """
    for number in range(len(liked_n)):
        first = liked_n[number]
        if first == number or liked_n[first] == first:
            continue
        front = liked_n[first]
        like = agree(signatures_sP[slots_n[number]], signatures_sP[slots_n[front]], least)
        liked_n[number] = front if like else number
