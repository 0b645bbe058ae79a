r"""Sets of real numbers: intervals, unions, finite sets, inequalities in one unknown.

A list of conditions has one reading: they hold at once (`x > 0, x < 1`), unless nothing satisfies them all, as for
`x < -1, x > 1`, which lists two parts. `or` always joins parts. A list of intervals lists parts.
"""

from __future__ import annotations

from fractions import Fraction

from foresail.maths.meaning.budget import Budget
from foresail.maths.meaning.exact import all_known, size_cost
from foresail.maths.meaning.inequalities import solution_set
from foresail.maths.meaning.real_line import (
    EVERYTHING,
    MEMBERSHIP_COST,
    RealSet,
    close,
    complement,
    endpoint,
    intersection,
    is_empty,
    real_value,
    union,
)
from foresail.maths.notation.tree import Node, fingerprint, symbols, walk

_ORDERS = frozenset(["<", "<=", ">", ">=", "in"])
INDEXED = "indexed "  # x_n is one of many, and no unknown of a set

Regions = dict[str, RealSet]  # by the name of the unknown; "" where a set is given without one


def regions(node: Node, budget: Budget) -> Regions | None:
    r"""`1 < x < 2` -> {"x": …}, `(1, 2)` -> {"": …}, `x > 1, y > 5` -> {"x": …, "y": …}; None for no set."""
    items: tuple[Node, ...] = node.args if node.head == "list" else (node,)
    named: dict[str, list[Node]] = {}
    for item in items:
        name = _unknown(item)
        if name is None:
            return None
        named.setdefault(name, []).append(item)
    if len(named) > 1 and ("" in named or any(len(symbols(item)) > 1 for item in items)):
        return None
    sets = all_known([_listed(parts, budget) for parts in named.values()])
    return None if sets is None else dict(zip(named, sets, strict=True))


def _unknown(node: Node) -> str | None:
    """The name that all conditions in the node are about, "" without conditions; None where there are several."""
    if node.head in ("union", "intersect", "minus"):
        names = {_unknown(part) for part in node.args} - {""}
        return names.pop() if len(names) == 1 else (None if names else "")
    if node.head != "chain":
        return ""
    sides = node.args[:1] if node.args[1] in ("in", "notin") else node.args[::2]
    labels = {part for side in sides for part in walk(side) if part.head == "apply"}
    if labels:
        label = labels.pop()
        return (INDEXED if label.args[0].endswith("_") else "") + fingerprint(label) if not labels else None
    names = {name for side in sides for name in symbols(side)}
    return names.pop() if len(names) == 1 else None


def _listed(items: list[Node], budget: Budget) -> RealSet | None:
    sets = all_known([_real_set(item, budget) for item in items])
    if sets is None:
        return None
    if len(sets) == 1:
        return sets[0]
    if any(item.head != "chain" for item in items):
        return union(sets)
    both = intersection(sets)
    if not is_empty(both, budget):
        return both
    return union(sets) if all(set(item.args[1::2]) <= _ORDERS for item in items) else None


def _real_set(node: Node, budget: Budget) -> RealSet | None:
    r"""`(0,1]`, `x < 3`, `\mathbb{R} \setminus \{0\}`, … as a set; None where the node is none of these."""
    head, args = node.head, node.args
    if head in ("()", "[]", "(]", "[)") and len(args) == 2:
        return _interval(args[0], args[1], head, budget)
    if head in ("{}", "braces"):
        points = all_known([real_value(item, budget) for item in args])
        return None if points is None else _finite(points, budget)
    if head == "set":
        return EVERYTHING if args[0] == "R" else None
    if head in ("union", "intersect", "minus"):
        return _combine(head, args, budget)
    if head == "chain":
        return _from_chain(node, budget)
    return None


def _interval(low: Node, high: Node, head: str, budget: Budget) -> RealSet | None:
    budget.spend(2 * MEMBERSHIP_COST)
    left, right = endpoint(low, budget), endpoint(high, budget)
    if left is None or right is None or (left != "-" and right != "+" and _is_less(right, left)):
        return None
    closed_left, closed_right = head[0] == "[", head[1] == "]"
    ends = tuple(side for side in (left, right) if isinstance(side, Fraction))

    def contains(x: Fraction) -> bool:
        budget.spend(MEMBERSHIP_COST + size_cost(x, *ends))
        above = closed_left if isinstance(left, Fraction) and close(x, left) else _is_less(left, x)
        below = closed_right if isinstance(right, Fraction) and close(x, right) else _is_less(x, right)
        return above and below

    return RealSet(ends, contains)


def _is_less(one: Fraction | str, other: Fraction | str) -> bool:
    """Among numbers and the signs "-" and "+" for the infinities."""
    if isinstance(one, str) or isinstance(other, str):
        return one == "-" or other == "+"
    return one < other


def _finite(points: list[Fraction], budget: Budget) -> RealSet:
    size = sum(map(size_cost, points))

    def contains(x: Fraction) -> bool:
        budget.spend(MEMBERSHIP_COST + 3 * len(points) + size)
        return any(close(x, point) for point in points)

    return RealSet(tuple(points), contains)


def _combine(head: str, args: tuple[Node, ...], budget: Budget) -> RealSet | None:
    one, other = _real_set(args[0], budget), _real_set(args[1], budget)
    if one is None or other is None:
        return None
    if head == "union":
        return union([one, other])
    return intersection([one, other if head == "intersect" else complement(other)])


def _from_chain(chain: Node, budget: Budget) -> RealSet | None:
    sides, signs = chain.args[::2], chain.args[1::2]
    if signs in (("in",), ("notin",)):
        inner = _real_set(sides[1], budget)
        return inner if inner is None or signs == ("in",) else complement(inner)
    return solution_set(chain, budget)
