r"""Brackets of every kind: (…), […], \{…\}, |…|, \langle…\rangle, and LaTeX environments.

Each function is called with its opening token read, and reads up to its closing one.
"""

from __future__ import annotations

from foresail.maths.notation.cursor import Cursor
from foresail.maths.notation.tokens import Token
from foresail.maths.notation.tree import Node, Unreadable, is_condition, join, symbols
from foresail.maths.notation.vocabulary import BARS

_BAR_HEADS = {"lfloor": "floor", "lceil": "ceil"}
_MATRICES = frozenset("pmatrix bmatrix Bmatrix vmatrix Vmatrix matrix smallmatrix array".split())
_SYSTEMS = frozenset("cases aligned align gathered split alignedat rcases".split())


def bracket(cursor: Cursor, opening: Token) -> Node:
    """(…), […], and the French ]…[ for an open interval."""
    items = cursor.group(opening.kind)
    closing = cursor.expect(")", "]", "[").kind
    head = ("(" if opening.kind in "(]" else "[") + (")" if closing in ")[" else "]")
    if len(items) == 1 and head in ("()", "[]"):
        return items[0]
    if head == "()" and items and all(map(is_condition, items)):  # (x > 1 and x < 3)
        return join("intersect", items)
    if not items or (head in ("(]", "[)") and len(items) != 2):
        raise Unreadable("brackets around nothing")
    return Node(head, tuple(items))


def arguments(cursor: Cursor) -> tuple[Node, ...]:
    """What stands in brackets after the name of a function."""
    cursor.expect("(")
    items = cursor.group("(")
    cursor.expect(")")
    return tuple(items)


def braced(cursor: Cursor, opening: Token) -> Node:
    """A LaTeX group, or a bare `{1, 2}`."""
    if cursor.peek().kind == "}":
        cursor.advance()
        return cursor.rules.atom(cursor)
    items = cursor.group("{")
    if cursor.at_command("choose", "over") and len(items) == 1:
        head = "binom" if cursor.advance().text == "choose" else "/"
        cursor.open.append("{")
        items = [Node(head, (items[0], cursor.rules.sum(cursor)))]
        cursor.open.pop()
    cursor.expect("}")
    return items[0] if len(items) == 1 else Node("braces", tuple(items))


def script(cursor: Cursor) -> Node:
    """What stands after ^ or _: a group, a whole number, a signed atom."""
    cursor.enter()
    kind = cursor.peek().kind
    if kind == "{":
        tree = braced(cursor, cursor.advance())
    elif kind in ("-", "+"):
        cursor.advance()
        atom = cursor.rules.atom(cursor)
        tree = Node("neg", (atom,)) if kind == "-" else atom
    else:
        tree = cursor.rules.atom(cursor)
    cursor.leave()
    return tree


def set_braces(cursor: Cursor, opening: Token) -> Node:
    r"""\{1, 2\}, or \{x \mid x > 2\}, which says what its condition says."""
    items = cursor.group(r"\{")
    conditions: list[Node] | None = None
    if cursor.peek().kind in ("|", ":") or cursor.at_command("mid", "colon", "vert"):
        cursor.advance()
        conditions = cursor.group(r"\{")
    cursor.expect(r"\}", "}")
    if conditions is not None:
        return _described(items, conditions)
    if len(items) == 1 and items[0].head == ":":
        raise Unreadable("a set whose condition is not understood")
    return Node("{}", tuple(items))


def _described(elements: list[Node], conditions: list[Node]) -> Node:
    r"""`\{x \mid x > 2\}` is what its conditions say, all at once; `\{2x \mid x > 2\}` is something else."""
    if len(elements) != 1 or not conditions:
        raise Unreadable("a set whose condition is not understood")
    (element,) = elements
    if element.head == "chain" and element.args[1:] == ("in", Node("set", ("R",))):
        element = element.args[0]
    about_it = all(element in part.args[::2] or symbols(part) == symbols(element) for part in conditions)
    if element.head == "symbol" and about_it:
        return join("intersect", conditions)
    return Node("builder", (element, *conditions))


def bars(cursor: Cursor, opening: Token) -> Node:
    r"""|…|, \lvert…\rvert, \lfloor…\rfloor."""
    cursor.open.append(opening.text)
    tree = cursor.rules.sum(cursor)
    cursor.open.pop()
    if cursor.advance().text != BARS.get(opening.text, opening.text):
        raise Unreadable("an unclosed bar")
    return Node(_BAR_HEADS.get(opening.text, "abs"), (tree,))


def angle_brackets(cursor: Cursor, opening: Token) -> Node:
    r"""\langle…\rangle, and \lbrace…\rbrace."""
    items = cursor.group(opening.text)
    cursor.advance()
    return Node("{}" if opening.text == "lbrace" else "()", tuple(items))


def environment(cursor: Cursor, opening: Token) -> Node:
    r"""\begin{pmatrix}…\end{pmatrix}: a matrix, or several equations."""
    name = _environment_name(cursor)
    if name == "array":
        _environment_name(cursor)  # the column letters
    if name not in _MATRICES | _SYSTEMS:
        raise Unreadable(f"unknown environment {name}")
    cursor.open.append("{")
    rows: list[list[Node]] = [[]]
    while not cursor.at_command("end"):
        if not cursor.more():
            raise Unreadable("an environment without its end")
        if cursor.peek().kind == "row":
            cursor.advance()
            rows.append([])
        elif cursor.peek().kind in ("&", ","):
            cursor.advance()
        else:
            rows[-1].append(cursor.rules.relation(cursor))
    cursor.advance()
    _environment_name(cursor)
    cursor.open.pop()
    filled = [row for row in rows if row]
    if name in _SYSTEMS:
        if not filled:
            raise Unreadable("an empty environment")
        if any(len(row) > 1 for row in filled):
            raise Unreadable("a function by cases")
        return Node("list", tuple(row[0] for row in filled))
    if not filled or len({len(row) for row in filled}) > 1:
        raise Unreadable("a ragged matrix")
    matrix = Node("matrix", tuple(Node("row", tuple(row)) for row in filled))
    return Node("det", (matrix,)) if name == "vmatrix" else matrix


def _environment_name(cursor: Cursor) -> str:
    cursor.expect("{")
    name = ""
    while cursor.more() and cursor.peek().kind != "}":
        name += cursor.advance().text
    cursor.expect("}")
    return name.rstrip("*")
