r"""Short forms, written out before anything is compared: `\pm 3`, `x \ne \pm 1`, `1 hour and 30 minutes`."""

from __future__ import annotations

from itertools import pairwise, product

from foresail.rewards.meaning.budget import Budget
from foresail.rewards.meaning.exact import exact
from foresail.rewards.notation.tree import CONTAINERS, Node, heads, number, rebuild
from foresail.rewards.notation.units import measure

MAX_SIGNS = 4
MONEY = (("money", 1),)


def without_signs(node: Node) -> Node:
    r"""`2 \pm \sqrt3` -> the list of both values; `\{1 \pm a, 2\}` -> three elements. One choice for all signs."""
    if not {"pm", "mp"} & heads(node):
        return node
    if node.head == "chain":
        return rebuild(node, without_signs)
    if node.head in ("list", "{}", "braces"):
        return Node(node.head, _spread(node.args))
    return Node("list", tuple(_choose(node, sign) for sign in (1, -1)))


def with_free_signs(node: Node) -> Node | None:
    r"""`\pm 1 \pm i` read as four values; None where there is at most one sign, or too many."""
    count = _count(node)
    if not 2 <= count <= MAX_SIGNS or "mp" in heads(node):
        return None
    return Node("list", tuple(_choose_each(node, list(signs)) for signs in product((1, -1), repeat=count)))


def _spread(items: tuple[Node, ...]) -> tuple[Node, ...]:
    spread: list[Node] = []
    for item in items:
        inner = without_signs(item)
        spread += inner.args if inner.head == "list" and item.head != "list" else (inner,)
    return tuple(spread)


def _choose(node: Node, sign: int) -> Node:
    if node.head in ("pm", "mp"):
        left, right = (_choose(part, sign) for part in node.args)
        plus = (node.head == "pm") == (sign > 0)
        return Node("+", (left, right if plus else Node("neg", (right,))))
    return rebuild(node, lambda part: _choose(part, sign))


def _choose_each(node: Node, signs: list[int]) -> Node:
    if node.head == "pm":
        left = _choose_each(node.args[0], signs)
        plus = signs.pop() > 0
        right = _choose_each(node.args[1], signs)
        return Node("+", (left, right if plus else Node("neg", (right,))))
    return rebuild(node, lambda part: _choose_each(part, signs))


def _count(node: Node) -> int:
    own = 1 if node.head in ("pm", "mp") else 0
    return own + sum(_count(part) for part in node.args if isinstance(part, Node))


def with_conditions_apart(node: Node) -> Node:
    r"""`x \ne \pm 1`, by now a chain with a list in it, and `x \ne 1, -1`: one condition for each value."""
    if (
        node.head == "chain"
        and node.args[1:2] == ("!=",)
        and len(node.args) == 3
        and node.args[2].head == "list"
    ):
        return Node("list", tuple(Node("chain", (node.args[0], "!=", value)) for value in node.args[2].args))
    if node.head != "list" or node.args[0].head != "chain" or node.args[0].args[1] != "!=":
        return node
    name = node.args[0].args[0]
    items: list[Node] = []
    for item in node.args:
        apart = item if item.head == "chain" else Node("chain", (name, "!=", item))
        apart = with_conditions_apart(apart)
        items += apart.args if apart.head == "list" else (apart,)
    return Node("list", tuple(items))


def one_quantity(node: Node, budget: Budget) -> Node:
    """`1 hour and 30 minutes` as 90 minutes: measures of one kind, each smaller than one of those before it."""
    if node.head != "list" or any(item.head != "unit" for item in node.args):
        return node
    sizes = [measure(item.args[1]) for item in node.args]
    values = [exact(item.args[0], budget=budget) for item in node.args]
    if None in sizes or None in values:
        return node
    known = [(size, value) for size, value in zip(sizes, values, strict=True) if size and value is not None]
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
