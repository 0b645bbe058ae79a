"""How much work one verdict may cost, counted and not timed, so that a verdict can be repeated anywhere."""

from __future__ import annotations

MAX_WORK = 100_000  # about microseconds


class Exhausted(Exception):
    """The verdict would cost more than it may; whatever is left undecided then is not accepted."""


class Budget:
    """What a verdict may still cost; shared by everything that it needs."""

    __slots__ = ("left",)

    def __init__(self, work: int = MAX_WORK) -> None:
        self.left = work

    def spend(self, work: int) -> None:
        self.left -= work
        if self.left < 0:
            raise Exhausted("too much work")
