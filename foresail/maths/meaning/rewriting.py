r"""Short forms, written out before anything is compared: `\pm 3`, `x \ne \pm 1`, `1 hour and 30 minutes`."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise, product, repeat

from foresail.maths.meaning.budget import Budget
from foresail.maths.meaning.exact import all_known, exact
from foresail.maths.notation.tree import CONTAINERS, DOTS, Node, heads, number, rebuild, walk
from foresail.maths.notation.units import measure

MAX_SIGNS = 4
MONEY = (("money", 1),)
MAX_TERMS = 256  # of a list that was written with dots


def without_signs(node: Node) -> Node:
    r"""`2 \pm \sqrt3` -> the list of both values; `\{1 \pm a, 2\}` -> three elements. One choice for all signs."""
    if not {"pm", "mp"} & heads(node):
        return node
    if node.head == "chain":
        return rebuild(node, without_signs)
    if node.head in ("list", "{}", "braces"):
        return Node(node.head, _spread(node.args))
    return Node("list", tuple(_with_signs(node, repeat(sign)) for sign in (1, -1)))


def with_free_signs(node: Node) -> Node | None:
    r"""`\pm 1 \pm i` read as four values; None where there is at most one sign, or too many."""
    count = sum(part.head == "pm" for part in walk(node))
    if not 2 <= count <= MAX_SIGNS or "mp" in heads(node):
        return None
    choices = product((1, -1), repeat=count)
    return Node("list", tuple(_with_signs(node, reversed(signs)) for signs in choices))


def _spread(items: tuple[Node, ...]) -> tuple[Node, ...]:
    spread: list[Node] = []
    for item in items:
        inner = without_signs(item)
        spread += inner.args if inner.head == "list" and item.head != "list" else (inner,)
    return tuple(spread)


def _with_signs(node: Node, signs: Iterator[int]) -> Node:
    """The node with the next of `signs` for each ±, and its opposite for each ∓."""
    if node.head in ("pm", "mp"):
        left = _with_signs(node.args[0], signs)
        plus = (node.head == "pm") == (next(signs) > 0)
        right = _with_signs(node.args[1], signs)
        return Node("+", (left, right if plus else Node("neg", (right,))))
    return rebuild(node, lambda part: _with_signs(part, signs))


def with_conditions_apart(node: Node) -> Node:
    r"""`x \ne \pm 1`, by now a chain with a list in it, and `x \ne 1, -1`: one condition for each value."""
    if node.head == "chain" and node.args[1::2] == ("!=",) and node.args[2].head == "list":
        return Node("list", tuple(Node("chain", (node.args[0], "!=", value)) for value in node.args[2].args))
    if node.head != "list" or node.args[0].head != "chain" or node.args[0].args[1] != "!=":
        return node
    name = node.args[0].args[0]
    items: list[Node] = []
    for item in node.args:
        apart = with_conditions_apart(item if item.head == "chain" else Node("chain", (name, "!=", item)))
        items += apart.args if apart.head == "list" else (apart,)
    return Node("list", tuple(items))


def one_quantity(node: Node, budget: Budget) -> Node:
    """`1 hour and 30 minutes` as 90 minutes: measures of one kind, each smaller than one of those before it."""
    if node.head != "list" or any(item.head != "unit" for item in node.args):
        return node
    sizes = all_known(measure(item.args[1]) for item in node.args)
    values = all_known([exact(item.args[0], budget=budget) for item in node.args])
    if sizes is None or values is None:
        return node
    known = list(zip(sizes, values, strict=True))
    for (larger, _), (smaller, value) in pairwise(known):
        if larger.dimension != smaller.dimension or not 0 <= value * smaller.factor < larger.factor:
            return node
    unit = 0 if known[0][0].dimension == MONEY else -1  # 7 dollars and 50 cents are 7.50
    total = sum(size.factor * value for size, value in known) / known[unit][0].factor
    return Node("unit", (number(total), node.args[unit].args[1]))


def without_sign(node: Node, sign: str) -> Node | None:
    r"""`90^\circ` -> 90 and `30^\circ, 60^\circ` -> 30, 60; None where a value is without the sign."""
    if node.head == sign:
        return Node(*node.args[0])
    if node.head not in CONTAINERS or not node.args or any(item.head != sign for item in node.args):
        return None
    return Node(node.head, tuple(item.args[0] for item in node.args))


def spelled_out(items: tuple[Node, ...], budget: Budget) -> tuple[Node, ...]:
    r"""`1, 2, \ldots, 5` in full, and `1, 2, 3, 4, \ldots` as `1, 2, \ldots`: evenly spaced, or with one ratio."""
    if items.count(DOTS) != 1 or items[0] == DOTS:
        return items
    place = items.index(DOTS)
    known = all_known([exact(item, budget=budget) for item in items[:place]])
    after = all_known([exact(item, budget=budget) for item in items[place + 1 :]])
    if known is None or after is None or len(known) < 2:
        return items
    step, ratio = known[1] - known[0], known[1] / known[0] if known[0] else None
    if step and all(right - left == step for left, right in pairwise(known)):
        if not after:
            return (number(known[0]), number(known[1]), DOTS)
        return _up_to(known[0], step, after) or items
    if after or len(known) < 3 or not ratio or any(right != left * ratio for left, right in pairwise(known)):
        return items
    return (*map(number, known[:3]), DOTS)


def _up_to(first: Fraction, step: Fraction, after: list[Fraction]) -> tuple[Node, ...] | None:
    """All terms from the first to the last one named; None where the steps do not lead there."""
    count = (after[-1] - first) / step
    if count.denominator != 1 or not 0 < count < MAX_TERMS:
        return None
    terms = [first + step * index for index in range(count.numerator + 1)]
    return tuple(map(number, terms)) if terms[-len(after) :] == after else None
