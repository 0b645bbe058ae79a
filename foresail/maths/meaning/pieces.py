r"""Functions by cases: `x^2 \text{ if } x \ge 0, -x \text{ otherwise}`.

Two are the same if they take the same value between any two breaks of their conditions, beyond them and at each of
them. So it does not matter which piece holds 0, if both are 0 there. What is said in words (`n \text{ even}`) is
compared as words.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

from foresail.maths.meaning.points import INTEGER_LETTERS
from foresail.maths.meaning.quantities import ComparisonWork
from foresail.maths.meaning.real_line import RealSet, Rounded, complement, sample_points, union
from foresail.maths.meaning.real_sets import regions
from foresail.maths.meaning.relations import rename
from foresail.maths.notation.tree import OTHERWISE, Node, number, rebuild, symbols

MAX_INTEGERS = 60  # between the breaks of a sequence by cases
_UNKNOWN = Node("unknown")


class Function(NamedTuple):
    """The variable, and where which value is taken."""

    variable: str
    pieces: tuple[tuple[Node, RealSet], ...]

    @property
    def breaks(self) -> tuple[Fraction, ...]:
        return tuple(point for _, part in self.pieces for point in part.breaks)

    def value_at(self, x: Fraction) -> Node | None:
        """The formula that holds there, None outside."""
        for value, part in self.pieces:
            inside = part.contains(x)
            if inside is not False:
                return value if inside else _UNKNOWN
        return None


def same_pieces(work: ComparisonWork, candidate: Node, gold: Node) -> bool:
    """Whether two functions by cases are the same."""
    work.rule = "cases"
    if candidate.head != gold.head:
        return False
    mine, theirs = _function(candidate, work), _function(gold, work)
    if mine is None or theirs is None:
        return _same_by_conditions(work, candidate, gold)
    if mine.variable != theirs.variable:
        renamed = _function(rename(candidate, mine.variable, theirs.variable), work)
        if renamed is None or theirs.variable in symbols(candidate):
            return False
        mine = renamed
    breaks = mine.breaks + theirs.breaks
    if theirs.variable in INTEGER_LETTERS:
        return _same_sequence(work, mine, theirs, breaks)
    return all(
        _same_at(work, mine, theirs, x, exactly=x in breaks) for x in sample_points(breaks, work.budget)
    )


def _function(node: Node, work: ComparisonWork) -> Function | None:
    """None where a condition is no set of numbers whose ends are all known."""
    known: dict[int, RealSet] = {}
    names = set()
    for place, piece in enumerate(node.args):
        if piece.args[1] == OTHERWISE:
            continue
        sets = regions(piece.args[1], work.budget)
        if sets is None or len(sets) != 1:
            return None
        name, part = sets.popitem()
        if not part.complete or name not in symbols(piece.args[1]):
            return None
        names.add(name)
        known[place] = part
    if len(names) != 1:
        return None
    rest = complement(union(list(known.values())))
    pieces = tuple((piece.args[0], known.get(place, rest)) for place, piece in enumerate(node.args))
    return Function(names.pop(), pieces)


def _same_at(work: ComparisonWork, mine: Function, theirs: Function, x: Fraction, *, exactly: bool) -> bool:
    """Whether both are the same number at x or, beside x, the same formula."""
    one, other = mine.value_at(x), theirs.value_at(x)
    if one is None or other is None:
        return one is other
    if _UNKNOWN in (one, other):
        return False
    if exactly and not isinstance(x, Rounded):
        one, other = (_with_value(side, theirs.variable, x) for side in (one, other))
    return work.same(one, other)


def _same_sequence(
    work: ComparisonWork, mine: Function, theirs: Function, breaks: tuple[Fraction, ...]
) -> bool:
    """At every integer where both are defined, and the right answer nowhere else but below one."""
    low, high = math.floor(min(breaks)) - 1, math.ceil(max(breaks)) + 1
    if high - low > MAX_INTEGERS:
        return False
    for n in range(low, high + 1):
        x = Fraction(n)
        if x < 1 and None in (mine.value_at(x), theirs.value_at(x)):
            continue
        if theirs.value_at(x) is not None and not _same_at(work, mine, theirs, x, exactly=low < n < high):
            return False
    return True


def _same_by_conditions(work: ComparisonWork, candidate: Node, gold: Node) -> bool:
    """Each value under its own condition; "otherwise" stands for the one that is left on the other side."""
    rest = list(gold.args)
    for value, condition in sorted(
        (piece.args for piece in candidate.args), key=lambda args: args[1] == OTHERWISE
    ):
        place = next((place for place, piece in enumerate(rest) if work.same(condition, piece.args[1])), None)
        if place is None and len(rest) == 1 and OTHERWISE in (condition, rest[0].args[1]):
            place = 0
        if place is None or not work.same(value, rest[place].args[0]):
            return False
        del rest[place]
    return not rest


def _with_value(node: Node, name: str, x: Fraction) -> Node:
    if node.head == "symbol" and node.args[0] == name:
        return number(x) if x >= 0 else Node("neg", (number(-x),))
    return rebuild(node, lambda part: _with_value(part, name, x))
