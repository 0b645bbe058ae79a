r"""LaTeX environments: `pmatrix` is a matrix; `cases`, `aligned` and `array` may be a system or a function.

A row of a system is one equation, `x &= 1`; a row of a function by cases is a value and when it is taken,
`x^2 & \text{if } x > 0` or `0 & \text{otherwise}`.
"""

from __future__ import annotations

from foresail.maths.notation.cursor import Cursor
from foresail.maths.notation.tokens import Token
from foresail.maths.notation.tree import OTHERWISE, Node, Unreadable
from foresail.maths.notation.vocabulary import CONDITIONAL, RELATIONS, word_set

MAX_WORDS = 12  # of a condition

_MATRICES = frozenset("pmatrix bmatrix Bmatrix vmatrix Vmatrix smallmatrix".split())
_SYSTEMS = frozenset("cases dcases aligned align gathered split alignedat rcases".split())
_EITHER = frozenset(["array", "matrix"])
_CONDITIONS = frozenset(["chain", "union", "intersect", "list", "word", OTHERWISE.head])
_OTHERWISE = word_set("otherwise else elsewhere 其他 其它 否则 其余 Otherwise Else")
_FILLERS = CONDITIONAL | word_set("is are a an the be any all values of , 时")


def environment(cursor: Cursor, opening: Token) -> Node:
    name = _name(cursor)
    if name == "array":
        _name(cursor)  # the column letters
    if name not in _MATRICES | _SYSTEMS | _EITHER:
        raise Unreadable(f"unknown environment {name}")
    if name not in _MATRICES:
        _drop_alignment(cursor)
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
        elif rows[-1] and name not in _MATRICES:
            rows[-1].append(_later_cell(cursor))
        else:
            rows[-1].append(cursor.rules.relation(cursor))
    cursor.advance()
    _name(cursor)
    cursor.open.pop()
    filled = [row for row in rows if row]
    if not filled:
        raise Unreadable("an empty environment")
    if name in _MATRICES or (name in _EITHER and not all(_is_line(row) for row in filled)):
        return _matrix(filled, name)
    return _system(filled)


def _matrix(rows: list[list[Node]], name: str) -> Node:
    if len({len(row) for row in rows}) > 1:
        raise Unreadable("a ragged matrix")
    matrix = Node("matrix", tuple(Node("row", tuple(row)) for row in rows))
    return Node("det", (matrix,)) if name == "vmatrix" else matrix


def _is_line(row: list[Node]) -> bool:
    """Whether a row of an array is an equation, or a value with its condition, rather than numbers of a matrix."""
    return row[-1].head in _CONDITIONS


def _system(rows: list[list[Node]]) -> Node:
    """Equations, or the pieces of a function; the last piece may leave out that it is for all other numbers."""
    if all(len(row) == 1 or row[0].head == "chain" for row in rows):
        return Node("list", tuple(equation for row in rows for equation in row))
    if len(rows[-1]) == 1:
        rows = [*rows[:-1], [*rows[-1], OTHERWISE]]
    if any(len(row) != 2 or row[1].head not in _CONDITIONS for row in rows):
        raise Unreadable("a function whose cases are not understood")
    return Node("pieces", tuple(Node("piece", tuple(row)) for row in rows))


def _later_cell(cursor: Cursor) -> Node:
    """A condition, in signs or in words: `x > 0`, `\\text{if } n \\text{ is even}`, `\\text{otherwise}`."""
    start, depth, opened = cursor.position, cursor.depth, len(cursor.open)
    while cursor.peek().kind == "word" and cursor.peek().text.lower() in CONDITIONAL:
        cursor.advance()
    try:
        values = cursor.rules.items(cursor)
        if _ends_cell(cursor):
            return values[0] if len(values) == 1 else Node("list", tuple(values))
    except Unreadable:
        pass
    cursor.position, cursor.depth = start, depth
    del cursor.open[opened:]
    words: list[str] = []
    while not _ends_cell(cursor) and len(words) < MAX_WORDS:
        words.append(cursor.advance().text)
    if not _ends_cell(cursor):
        raise Unreadable("a long condition")
    return OTHERWISE if not _OTHERWISE.isdisjoint(words) else _said(words)


def _said(words: list[str]) -> Node:
    main_words = [word for word in words if word.lower() not in _FILLERS]
    return Node("word", (" ".join(main_words),))


def _ends_cell(cursor: Cursor) -> bool:
    return not cursor.more() or cursor.peek().kind in ("row", "&") or cursor.at_command("end")


def _drop_alignment(cursor: Cursor) -> None:
    """Takes out each `&` beside a sign of relation: `x &= 1`, `x & = & 1`. A condition keeps its `&`."""
    tokens, depth = cursor.tokens, 0
    end = len(tokens)
    tokens_left: list[Token] = []
    for place in range(cursor.position, end):
        token = tokens[place]
        if token.kind == "command":
            depth += (token.text == "begin") - (token.text == "end")
        if depth < 0:
            end = place
            break
        neighbours = tokens_left[-1:] + tokens[place + 1 : place + 2]
        if depth or token.kind != "&" or not any(map(_relates, neighbours)):
            tokens_left.append(token)
    cursor.replace(end, tokens_left)


def _relates(token: Token) -> bool:
    return token.kind in ("=", "<", ">") or (token.kind == "command" and token.text in RELATIONS)


def _name(cursor: Cursor) -> str:
    cursor.expect("{")
    name = ""
    while cursor.more() and cursor.peek().kind != "}":
        name += cursor.advance().text
    cursor.expect("}")
    return name.rstrip("*")
