"""How long a group's responses will be, from siblings that ended and from earlier steps.

A group nobody knows anything about counts as long: to start a long one late costs more than to start a short
one early.
"""

from __future__ import annotations

from collections.abc import Callable


def nothing_known(group: int) -> int | None:
    return None


class Estimates:
    """Per group: `max_tokens` at first, then the longest response that ended.

    With max_tokens 100, finished(7, 30), finished(7, 20), finished(7, 50): length(7) is 100, 30, 30, 50.
    A `prior` length, of the same problem in an earlier step, counts as a sibling that ended.
    """

    def __init__(self, prior: Callable[[int], int | None] = nothing_known) -> None:
        self._prior = prior
        self._lengths: dict[int, int] = {}
        self._unknown: set[int] = set()

    def open(self, group: int, max_tokens: int) -> None:
        prior = self._prior(group)
        if prior is None:
            self._unknown.add(group)
            self._lengths[group] = max_tokens
        else:
            self._lengths[group] = min(prior, max_tokens)

    def length(self, group: int) -> int:
        return self._lengths[group]

    def is_known(self, group: int) -> bool:
        return group not in self._unknown

    def finished(self, group: int, length: int) -> None:
        """The first response replaces the guess, later ones can only lengthen it."""
        if group in self._unknown:
            self._unknown.remove(group)
            self._lengths[group] = length
        else:
            self._lengths[group] = max(self._lengths[group], length)

    def forget(self, group: int) -> None:
        self._lengths.pop(group, None)
        self._unknown.discard(group)
