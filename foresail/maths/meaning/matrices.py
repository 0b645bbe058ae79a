r"""Arithmetic on matrices, carried out entry by entry before anything is compared."""

from __future__ import annotations

from collections.abc import Callable

from foresail.maths.meaning.budget import Budget, admit
from foresail.maths.meaning.exact import exact
from foresail.maths.notation.tree import Node, heads, number, rebuild


def with_matrices_done(node: Node, budget: Budget) -> Node:
    """Sums, multiples and products of matrices carried out entry by entry."""
    if "matrix" not in heads(node) or node.head == "matrix":
        return node
    done = _carried_out(rebuild(node, lambda part: with_matrices_done(part, budget)), budget)
    admit(done, budget)  # a factor that is no number stands in every entry of the product
    return done


def _carried_out(node: Node, budget: Budget) -> Node:
    """The operation that joins the parts, none of which holds another one."""
    parts = node.args
    matrices = [part for part in parts if isinstance(part, Node) and part.head == "matrix"]
    if not matrices:
        return node
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
            if not _fit(total, factor):
                return node
            total = _worked_out(_product(total, factor), budget)
        return _map(total, lambda entry: Node("*", (*scalars, entry))) if scalars else total
    if node.head == "/" and parts[0].head == "matrix" and len(matrices) == 1:
        return _map(parts[0], lambda entry: Node("/", (entry, parts[1])))
    return node


def _worked_out(matrix: Node, budget: Budget) -> Node:
    """The matrix with numbers where its entries have exact values; others double in size with every product."""

    def simplest(entry: Node) -> Node:
        value = exact(entry, budget=budget)
        if value is not None:
            return number(value)
        admit(entry, budget)
        return entry

    return _map(matrix, simplest)


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


def _fit(one: Node, other: Node) -> bool:
    """Whether the second has as many rows as the first has columns, and their product is no huge one."""
    (rows, inner), (height, columns) = _shape(one), _shape(other)
    return inner == height and rows * inner * columns <= 1000


def _product(one: Node, other: Node) -> Node:
    (rows, inner), (_, columns) = _shape(one), _shape(other)
    return Node("matrix", tuple(
        Node("row", tuple(
            Node("+", tuple(Node("*", (one.args[i].args[k], other.args[k].args[j])) for k in range(inner)))
            for j in range(columns)
        ))
        for i in range(rows)
    ))  # fmt: skip
