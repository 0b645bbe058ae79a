"""Retries of failed starts of grading processes: after a delay, and up to a number of failures in a row.

    starts = Starts()
    starts.fail("[Errno 24] Too many open files")    # the next may begin at once, then after 0.05 s, 0.1 s, …
    starts.are_hopeless                              # after MAX_FAILED in a row
    starts.succeed()                                 # the count begins anew

A start fails if the process cannot be created (no descriptors, no memory), or ends before it has loaded its grader.
"""

from __future__ import annotations

import time

MAX_FAILED = 8  # in a row: three seconds and what the starts took
FIRST_DELAY = 0.05  # seconds before the second attempt after a failure; each further one waits twice as long


class Starts:
    """`cause` is the first error of the row: later ones may only follow from it."""

    def __init__(self) -> None:
        self.failed, self.cause, self.not_before = 0, "", 0.0

    def fail(self, cause: str) -> None:
        self.cause = self.cause or cause
        delay = FIRST_DELAY * 2 ** (min(self.failed, MAX_FAILED) - 1) if self.failed else 0.0
        self.not_before = time.monotonic() + delay
        self.failed += 1

    def succeed(self) -> None:
        self.failed, self.cause, self.not_before = 0, "", 0.0

    @property
    def are_hopeless(self) -> bool:
        return self.failed >= MAX_FAILED

    def seconds_left(self) -> float:
        """Until the next start may begin."""
        return max(0.0, self.not_before - time.monotonic())
