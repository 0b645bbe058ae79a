r"""What an answer says, as a tree: `2x+1` -> ("+", ("*", 2, x), 1).

Heads: `number` (a Fraction and, for a decimal, how many digits it gives), `symbol`, `constant` (pi, e, i,
infinity), `word`; the operations `+ * / ^ neg ! !!`, `pm`/`mp` (a ± b), function names; `apply` (an
unknown function or an indexed name); the containers `()`, `[]`, `(]`, `[)`, `{}`, `braces` (bare, as in
`{1,2}`), `list` (nothing around), `matrix` of `row`s; `chain` (a relation: side, sign, side, …);
`pieces` (a function by cases, each a `piece` of a value and a condition);
`builder` (a set by a condition on something else than a name, `\{2k \mid k > 1\}`);
`union`, `intersect`, `minus`; `unit` (a value and its unit), `%`, `deg`, `:`, `base`, `mod`; `opaque` (a sum, an
integral or the like, which is compared but not carried out).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, NamedTuple

MAX_LEVELS = 64  # of a tree; the deepest of 13,000 real answers has eight


class Unreadable(Exception):
    """The text is no mathematics this reader knows; it is compared as text."""


class Node(NamedTuple):
    """A head and what it holds: nodes, or plain values in the leaves."""

    head: str
    args: tuple[Any, ...] = ()


def number(value: Fraction | int, digits: int | None = None) -> Node:
    return Node("number", (value if type(value) is Fraction else Fraction(value), digits))


def symbol(name: str) -> Node:
    return Node("symbol", (name,))


def fingerprint(part: Any) -> str:
    """A tree as text that no other tree has, in hexadecimal: Python refuses to write more than 4,300 digits."""
    if isinstance(part, Node):
        return f"({part.head} {' '.join(map(fingerprint, part.args))})"
    return f"{part.numerator:x}/{part.denominator:x}" if isinstance(part, int | Fraction) else repr(part)


def write(value: Fraction) -> str:
    """A number as part of a name. Python refuses to write more than 4,300 digits, so long ones are unreadable."""
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > 10_000:
        raise Unreadable("a number too long to write")
    return str(value)


PI, E, I, INFINITY = (Node("constant", (name,)) for name in ("pi", "e", "i", "infinity"))
EMPTY = Node("{}", ())
ZERO = number(0)
DOTS = symbol("…")
OTHERWISE = Node("otherwise")
POSITIVE_INTEGERS = Node("{}", (number(1), number(2), DOTS))

CONTAINERS = frozenset(["()", "[]", "(]", "[)", "{}", "braces", "list"])


_LEAVES = frozenset(["number", "symbol", "constant"])  # nothing stands below them
_INEQUALITIES = frozenset(["<", ">", "<=", ">="])


def is_condition(node: Node) -> bool:
    """An inequality, or several of them joined."""
    if node.head in ("union", "intersect"):
        return any(is_condition(part) for part in node.args)
    return node.head == "chain" and not _INEQUALITIES.isdisjoint(node.args[1::2])


def join(head: str, items: list[Node]) -> Node:
    """`x < 1 or x > 3` as a union, `x > 1 and x < 3` as an intersection."""
    joined = items[0]
    for item in items[1:]:
        joined = Node(head, (joined, item))
    return joined


def rebuild(node: Node, change: Callable[[Node], Node]) -> Node:
    """The node with every part changed; plain values in it stay."""
    parts = []
    for part in node.args:  # no generator: each would take more of Python's stack
        parts.append(change(part) if isinstance(part, Node) else part)
    return Node(node.head, tuple(parts))


def is_deep(node: Node, levels: int = MAX_LEVELS) -> bool:
    """Whether the tree has more levels than that: is_deep(parse("1/2"), 1) -> True."""
    level = [node]
    for _ in range(levels):
        level = [child for parent in level for child in parent.args if isinstance(child, Node)]
        if not level:
            return False
    return True


def walk(node: Node) -> Iterator[Node]:
    """The node and every node below it."""
    stack = [node]
    while stack:
        node = stack.pop()
        yield node
        if node.head not in _LEAVES:
            stack += [child for child in node.args if isinstance(child, Node)]


def symbols(node: Node) -> set[str]:
    return {part.args[0] for part in walk(node) if part.head == "symbol"}


def heads(node: Node) -> set[str]:
    return {part.head for part in walk(node)}
