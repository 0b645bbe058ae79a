"""How much work one verdict may cost. Work is counted, not timed: every machine gives the same verdict."""

from __future__ import annotations

from foresail.maths.notation.tree import Node, is_deep, walk

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

    def charge(self, work: int) -> None:
        """Spends what is done already, and raises only at the next step."""
        self.left = max(0, self.left - work)


def admit(rewritten: Node, budget: Budget) -> None:
    """Spends a rewritten tree's size, for parts of it may stand there many times; refuses one too deep to walk."""
    for _ in walk(rewritten):
        budget.spend(1)
    if is_deep(rewritten):
        raise Exhausted("too deep")
