r"""Sets of numbers and parts of them: `\mathbb{R}`, `\mathbb{R}_{>0}`, `\mathbb{Z}^+`, `\mathbb{N}_0`."""

from __future__ import annotations

import re

from foresail.maths.notation.cursor import Cursor
from foresail.maths.notation.tokens import Token
from foresail.maths.notation.tree import DOTS, INFINITY, Node, Unreadable, number
from foresail.maths.notation.vocabulary import RELATIONS

LONGEST_SCRIPT = 6  # tokens

SETS = {f"mathbb{letter}": Node("set", (letter,)) for letter in "RZQNC"}
_SHORT = {"N0": ">=0", "N*": ">0", "+": ">0", "-": "<0", "*": "!=0", "times": "!=0"}
_BOUND = re.compile(r"(>=?|<=?|!=)(-?\d{1,9})")


def number_set(cursor: Cursor, command: Token) -> Node:
    r"""`\mathbb{Z}`, and a part of it after `_` or `^`."""
    if cursor.peek().kind not in ("^", "_"):
        return SETS[command.text]
    part = part_of_set(command.text[-1], _script(cursor))
    if part is None:
        raise Unreadable("a part of a set")
    return part


def part_of_set(letter: str, which: str) -> Node | None:
    r"""part_of_set("R", ">0") -> (0, ∞); part_of_set("Z", ">=2") -> {2, 3, …}; None for `\mathbb{R}^2`."""
    which = _SHORT.get(letter + which) or _SHORT.get(which, which)
    bound = _BOUND.fullmatch(which)
    if bound is None:
        return None
    sign, limit = bound[1], int(bound[2])
    if sign == "!=":
        return Node("minus", (Node("set", (letter,)), Node("{}", (_integer(limit),))))
    if letter in "RQ":
        above, closed = sign[0] == ">", len(sign) > 1
        low, high = (_integer(limit), INFINITY) if above else (Node("neg", (INFINITY,)), _integer(limit))
        head = ("[" if above and closed else "(") + ("]" if closed and not above else ")")
        interval = Node(head, (low, high))
        return interval if letter == "R" else Node("intersect", (Node("set", (letter,)), interval))
    if letter == "C" or (letter == "N" and sign[0] == "<"):
        return None
    step = 1 if sign[0] == ">" else -1
    first = limit + step * (len(sign) == 1)
    if letter == "N":
        first = max(first, 0)
    return Node("{}", (_integer(first), _integer(first + step), DOTS))


def _integer(value: int) -> Node:
    return number(value) if value >= 0 else Node("neg", (number(-value),))


def _script(cursor: Cursor) -> str:
    """What stands after _ or ^, as text: `_{\\ge 0}` -> ">=0"."""
    cursor.advance()
    tokens = [cursor.advance()]
    if tokens[0].kind == "{":
        tokens = []
        while cursor.peek().kind != "}" and len(tokens) < LONGEST_SCRIPT:
            tokens.append(cursor.advance())
        cursor.expect("}")
    return "".join(RELATIONS.get(token.text, token.text) for token in tokens)
