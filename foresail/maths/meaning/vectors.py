r"""Vectors in unit vectors: `2\mathbf{i} - \mathbf{k}` is (2, 0, -1), `\mathbf{e}_1 + 2\mathbf{e}_2` is (1, 2)."""

from __future__ import annotations

from foresail.maths.meaning.exact import all_known
from foresail.maths.notation.tree import I, Node, number, symbol, walk

_BASES = (
    (I, symbol("j"), symbol("k")),
    tuple(symbol(f"e_{place}") for place in (1, 2, 3)),
    tuple(Node("apply", ("hat", symbol(letter))) for letter in "xyz"),
)
_ZERO, _ONE = number(0), number(1)

Vector = tuple[Node, ...]


def as_tuple(node: Node, size: int) -> Node | None:
    """The vector as a tuple of two or three numbers; None for what is no sum of multiples of unit vectors."""
    if node.head not in ("+", "*", "/", "neg", "symbol", "apply") or size not in (2, 3):
        return None
    parts = set(walk(node))
    base = next((base for base in _BASES if not parts.isdisjoint(base)), None)
    if base is None or parts.isdisjoint(base[1:]):  # 2i is a number
        return None
    vector = _components(node, base)
    if vector is None or any(component != _ZERO for component in vector[size:]):
        return None
    return Node("()", vector[:size])


def _components(node: Node, base: Vector) -> Vector | None:
    """The factors of the unit vectors, as `3(i + 2j)/2` has 3·1/2, 3·2/2 and 0."""
    if node in base:
        return tuple(_ONE if node == unit else _ZERO for unit in base)
    if node.head == "+":
        terms = all_known(_components(term, base) for term in node.args)
        return None if terms is None else tuple(map(_sum, zip(*terms, strict=True)))
    places = [place for place, part in enumerate(node.args) if isinstance(part, Node) and _holds(part, base)]
    if len(places) != 1 or node.head not in ("*", "/", "neg") or (node.head == "/" and places != [0]):
        return None
    (place,) = places
    vector = _components(node.args[place], base)
    if vector is None:
        return None
    before, after = node.args[:place], node.args[place + 1 :]
    return tuple(part if part == _ZERO else Node(node.head, (*before, part, *after)) for part in vector)


def _holds(node: Node, base: Vector) -> bool:
    return not set(walk(node)).isdisjoint(base)


def _sum(parts: Vector) -> Node:
    filled = tuple(part for part in parts if part != _ZERO)
    return Node("+", filled) if len(filled) > 1 else (filled[0] if filled else _ZERO)
