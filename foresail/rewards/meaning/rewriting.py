r"""The sign ± and arithmetic on matrices: rewritten before anything is compared."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

from foresail.rewards.notation.tree import Node, heads, rebuild

MAX_SIGNS = 4


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


def with_matrices_done(node: Node) -> Node:
    """Sums, multiples and products of matrices carried out entry by entry."""
    if "matrix" not in heads(node) or node.head == "matrix":
        return node
    parts = rebuild(node, with_matrices_done).args
    matrices = [part for part in parts if isinstance(part, Node) and part.head == "matrix"]
    if not matrices:
        return Node(node.head, parts)
    if node.head == "det":
        return _determinant([row.args for row in matrices[0].args])
    if node.head == "neg":
        return _map(matrices[0], lambda entry: Node("neg", (entry,)))
    if node.head == "+" and len(matrices) == len(parts):
        return _sum(matrices)
    if node.head == "*":
        scalars = tuple(part for part in parts if part.head != "matrix")
        total = matrices[0]
        for factor in matrices[1:]:
            total = _product(total, factor)
        return _map(total, lambda entry: Node("*", (*scalars, entry))) if scalars else total
    if node.head == "/" and parts[0].head == "matrix" and len(matrices) == 1:
        return _map(parts[0], lambda entry: Node("/", (entry, parts[1])))
    return Node(node.head, parts)


def _determinant(rows: list[tuple[Node, ...]]) -> Node:
    """By the first row, for matrices up to 4 by 4; larger ones stay as they are."""
    if len(rows) != len(rows[0]) or len(rows) > 4:
        return Node("det", (Node("matrix", tuple(Node("row", row) for row in rows)),))
    if len(rows) == 1:
        return rows[0][0]
    terms = []
    for column, entry in enumerate(rows[0]):
        minor = _determinant([row[:column] + row[column + 1 :] for row in rows[1:]])
        term = Node("*", (entry, minor))
        terms.append(Node("neg", (term,)) if column % 2 else term)
    return Node("+", tuple(terms))


def _map(matrix: Node, change: Callable[[Node], Node]) -> Node:
    return rebuild(matrix, lambda row: rebuild(row, change))


def _shape(matrix: Node) -> tuple[int, int]:
    return len(matrix.args), len(matrix.args[0].args)


def _sum(matrices: list[Node]) -> Node:
    if len({_shape(matrix) for matrix in matrices}) > 1:
        return Node("+", tuple(matrices))
    rows, columns = _shape(matrices[0])
    return Node("matrix", tuple(
        Node("row", tuple(Node("+", tuple(m.args[i].args[j] for m in matrices)) for j in range(columns)))
        for i in range(rows)
    ))  # fmt: skip


def _product(one: Node, other: Node) -> Node:
    (rows, inner), (height, columns) = _shape(one), _shape(other)
    if inner != height or rows * inner * columns > 1000:
        return Node("*", (one, other))
    return Node("matrix", tuple(
        Node("row", tuple(
            Node("+", tuple(Node("*", (one.args[i].args[k], other.args[k].args[j])) for k in range(inner)))
            for j in range(columns)
        ))
        for i in range(rows)
    ))  # fmt: skip
