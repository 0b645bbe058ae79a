"""Times of day: `3:05 PM` is `15:05`, and `2:40` is not `1:20`."""

from __future__ import annotations

from typing import NamedTuple

from foresail.maths.meaning.exact import all_known, exact
from foresail.maths.notation.tree import Node

HALVES = frozenset(["am", "pm"])


class Clock(NamedTuple):
    """Hours, minutes and seconds as they were written, and "am", "pm" or nothing."""

    parts: tuple[int, ...]
    half: str

    @property
    def of_day(self) -> tuple[int, ...]:
        """As on a clock of 24 hours: 3:05 pm -> (15, 5)."""
        hours, *rest = self.parts
        if self.half:
            hours = hours % 12 + (12 if self.half == "pm" else 0)
        rest = [*rest, 0, 0][:2]
        return (hours, *rest)


def clock(node: Node) -> Clock | None:
    """clock(parse("8:34")) -> (8, 34); None where the node is no time of day."""
    node, half = (node.args[0], node.args[1]) if node.head == "unit" else (node, "")
    if half and half not in HALVES:
        return None
    parts = node.args if node.head == ":" else (node,) if half else ()
    values = all_known([exact(part) for part in parts])
    if not values or any(value.denominator != 1 for value in values):
        return None
    hours, *rest = map(int, values)
    if len(rest) > 2 or not 0 <= hours <= 24 or any(not 0 <= value < 60 for value in rest):
        return None
    return Clock((hours, *rest), half)


def are_times(candidate: Node, gold: Node) -> bool:
    """Whether both are times of day rather than ratios: one says am or pm, or `1:20` and `2:40` look the part."""
    mine, theirs = clock(candidate), clock(gold)
    if mine is None or theirs is None:
        return False
    return bool(mine.half or theirs.half) or (_looks_like_a_time(mine) and _looks_like_a_time(theirs))


def _looks_like_a_time(time: Clock) -> bool:
    """Minutes of two digits: `1:20`, and hardly `1:2`."""
    return all(value >= 10 or value == 0 for value in time.parts[1:])


def same_time(candidate: Node, gold: Node) -> bool:
    """The same time; where the right answer says which half of the day, the response must say so too."""
    mine, theirs = clock(candidate), clock(gold)
    assert mine is not None and theirs is not None
    if mine.half and not theirs.half:
        return mine._replace(half="").of_day == theirs.of_day or mine.of_day == theirs.of_day
    if theirs.half and not mine.half and 0 < mine.parts[0] <= 12:
        return False
    return mine.of_day == theirs.of_day
