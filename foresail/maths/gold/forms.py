r"""Other ways to write an answer that mean the same, and ways that do not.

equal_forms("3/4")     -> ["\frac{3}{4}", "0.75", "\frac{6}{8}", …]
other_answers("3/4")   -> ["\frac{4}{4}", "\frac{3}{5}", "-\frac{3}{4}"]

They follow from the tree that the verifier reads, so an answer that it reads as words has none. Numbers change by
one where the answer is to be another one; which answers then still mean the same is for the verifier to say.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from foresail.maths.gold.writing import Unwritable, write_node
from foresail.maths.notation.answer import read
from foresail.maths.notation.tree import CONTAINERS, Node, is_deep, number, walk

MOST_NODES = 60  # of an answer that is written otherwise
MOST_OTHERS = 3
MOST_DIGITS = 15
SETS = frozenset(["{}", "braces", "list"])


def equal_forms(answer: str) -> list[str]:
    """None of them is the answer's own text."""
    node = readable(answer)
    if node is None:
        return []
    forms: list[str] = []
    for changed in equal_trees(node):
        try:
            text = write_node(changed)
        except Unwritable:
            continue
        if text not in (answer, *forms):
            forms.append(text)
    return forms


def other_answers(answer: str) -> list[str]:
    """Answers with one number changed, as if somebody had made a mistake."""
    node = readable(answer)
    if node is None:
        return []
    others: list[str] = []
    for changed in changed_trees(node):
        try:
            text = write_node(changed)
        except Unwritable:
            continue
        if text not in (answer, *others):
            others.append(text)
        if len(others) == MOST_OTHERS:
            break
    return others


def readable(answer: str) -> Node | None:
    """The likeliest reading, where it is a formula of some size."""
    readings = read(answer)
    if not readings or is_deep(readings[0], 12):
        return None
    heads = [part.head for _, part in zip(range(MOST_NODES + 1), walk(readings[0]), strict=False)]
    return None if len(heads) > MOST_NODES or "word" in heads or "opaque" in heads else readings[0]


def equal_trees(node: Node) -> Iterator[Node]:
    """The tree as it is, which changes the notation, and with its parts in other order or other numbers."""
    yield node
    if node.head in SETS and len(node.args) > 1 and all(item.head != "symbol" for item in node.args):
        yield Node(node.head, node.args[::-1])
    if node.head in ("number", "/", "neg") and (value := exact_value(node)) is not None:
        yield from equal_numbers(value, is_decimal=node.head == "number" and node.args[1] is not None)
    if node.head in ("+", "*") and len(node.args) > 1 and all(map(commutes, node.args)):
        yield Node(node.head, node.args[1:] + node.args[:1])


def commutes(part: Node) -> bool:
    """Not a capital, which may be a matrix or a digit, nor a tuple."""
    names = [node.args[0] for node in walk(part) if node.head == "symbol"]
    return part.head not in CONTAINERS and part.head != "matrix" and all(name.islower() for name in names)


def equal_numbers(value: Fraction, *, is_decimal: bool) -> Iterator[Node]:
    """75/100 as 3/4 and 0.75; a decimal is rounded perhaps, and stays one."""
    if value.denominator == 1:
        if not is_decimal:
            yield Node("/", (number(2 * value), number(2))) if value >= 0 else Node("neg", (number(-value),))
        return
    if is_decimal:
        return
    top, bottom = abs(value.numerator), value.denominator
    doubled: Node = Node("/", (number(2 * top), number(2 * bottom)))
    yield Node("neg", (doubled,)) if value < 0 else doubled
    if (places := decimal_places(bottom)) and places <= 6:
        decimal = number(abs(value), MOST_DIGITS)
        yield Node("neg", (decimal,)) if value < 0 else decimal


def decimal_places(denominator: int) -> int:
    """decimal_places(8) -> 3; 0 where the decimals never end."""
    for places in range(1, 13):
        if 10**places % denominator == 0:
            return places
    return 0


def changed_trees(node: Node) -> Iterator[Node]:
    """One number at a time, from the left, one more; then the other sign."""
    heads = [part.head for part in in_order(node)]
    for place in range(0 if "binom" in heads else heads.count("number")):  # 99 over 49 is 99 over 50
        yield replace_number(node, place)
    if node.head in ("number", "/", "*", "^", "sqrt", "+", "symbol") and exact_value(node) != 0:
        yield Node("neg", (node,))


def replace_number(node: Node, place: int) -> Node:
    """With the number at that place one more in its last digit."""
    counter = iter(range(10_000))

    def change(part: Node) -> Node:
        if part.head == "number":
            value, digits = part.args
            if next(counter) != place:
                return part
            places = decimal_places(value.denominator) if value.denominator > 1 else 0
            return Node("number", (value + Fraction(1, 10**places), digits))
        return Node(part.head, tuple(change(arg) if isinstance(arg, Node) else arg for arg in part.args))

    return change(node)


def in_order(node: Node) -> Iterator[Node]:
    yield node
    for part in node.args:
        if isinstance(part, Node):
            yield from in_order(part)


def exact_value(node: Node) -> Fraction | None:
    """Of a number, a fraction of numbers, or the negative of one."""
    if node.head == "number":
        value: Fraction = node.args[0]
        return value if value.numerator.bit_length() < 200 and value.denominator.bit_length() < 200 else None
    if node.head not in ("neg", "/"):
        return None
    parts = [exact_value(part) for part in node.args]
    if any(part is None for part in parts):
        return None
    if node.head == "neg":
        return -(parts[0] or Fraction(0))
    top, bottom = parts
    return top / bottom if top is not None and bottom else None
