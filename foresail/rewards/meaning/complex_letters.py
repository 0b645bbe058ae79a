r"""Letters that stand for complex numbers, such as the z of `|z|^2`, which is not `z^2` then."""

from __future__ import annotations

from foresail.rewards.notation.tree import I, Node, heads, rebuild, symbol, symbols, walk

_USUAL = frozenset("z w z_1 z_2 w_1 w_2".split())
_PARTS = frozenset(["re", "im", "conj", "arg"])


def complex_letters(one: Node, other: Node) -> frozenset[str]:
    """The letters that either side takes for complex: those in Re, Im or a conjugate, and z and w in bars."""
    found: set[str] = set()
    for part in (*walk(one), *walk(other)):
        if part.head in _PARTS or (part.head == "apply" and part.args[0] == "bar"):
            found |= symbols(part)
        elif part.head == "abs":
            found |= symbols(part) & _USUAL
    return frozenset(found)


def with_both_parts(node: Node, letters: frozenset[str]) -> Node:
    """z as a + bi, so that both parts take values of their own; a bar over such a letter is its conjugate."""
    if node.head == "symbol" and node.args[0] in letters:
        name = node.args[0]
        return Node("+", (symbol(name), Node("*", (I, symbol(f"{name}\0i")))))
    if node.head == "apply" and node.args[0] == "bar" and symbols(node) <= letters:
        return Node("conj", (with_both_parts(node.args[1], letters),))
    return rebuild(node, lambda part: with_both_parts(part, letters)) if heads(node) & {"symbol"} else node
