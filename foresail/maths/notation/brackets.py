r"""Brackets of every kind: (…), […], \{…\}, |…|, \langle…\rangle.

Each function is called with its opening token read, and reads up to its closing one.
"""

from __future__ import annotations

from foresail.maths.notation.cursor import Cursor
from foresail.maths.notation.tokens import Token
from foresail.maths.notation.tree import Node, Unreadable, is_condition, join, symbols
from foresail.maths.notation.vocabulary import BARS, RELATIONS

_OPENING, _CLOSING = frozenset(["(", "[", "{", r"\{"]), frozenset([")", "]", "}", r"\}"])
_BAR_HEADS = {"lfloor": "floor", "lceil": "ceil"}


def bracket(cursor: Cursor, opening: Token) -> Node:
    """(…), […], and the French ]…[ for an open interval."""
    items = cursor.group(opening.kind)
    closing = cursor.expect(")", "]", "[").kind
    head = ("(" if opening.kind in "(]" else "[") + (")" if closing in ")[" else "]")
    if len(items) == 1 and (head == "()" or (head == "[]" and items[0].head != "[]")):
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


def loose_braces(cursor: Cursor, opening: Token) -> Node:
    r"""Braces that are no argument: a group, a bare `{1, 2}`, or `{kπ | k∈ℤ}` for `\{kπ \mid k∈ℤ\}`."""
    divider = _divider(cursor, ("|", ":"))
    return braced(cursor, opening) if divider is None else set_braces(cursor, opening, divider)


def _divider(cursor: Cursor, signs: tuple[str, ...]) -> int | None:
    """Where the sign between a set's elements and its conditions stands: the first bar of `x | |x| > 2`."""
    depth = bars = 0
    divider, divides = None, False
    for place in range(cursor.position, len(cursor.tokens)):
        token = cursor.tokens[place]
        depth += (token.kind in _OPENING) - (token.kind in _CLOSING)
        if depth < 0:
            break
        if depth == 0 and token.kind in signs:
            if divider is None and place > cursor.position and bars % 2 == 0:
                divider = place
            bars += token.kind == "|"
        divides = divides or (divider is not None and _is_relation(token))
    if divider is None or (cursor.tokens[divider].kind == "|" and bars % 2 == 0):
        return None
    return divider if divides else None


def _is_relation(token: Token) -> bool:
    return token.kind in ("=", "<", ">") or (token.kind == "command" and token.text in RELATIONS)


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


def set_braces(cursor: Cursor, opening: Token, divider: int | None = None) -> Node:
    r"""\{1, 2\}, or \{x \mid x > 2\}, which says what its condition says."""
    if cursor.at_command("begin"):
        return _braced_environment(cursor)
    if divider is None:
        divider = _divider(cursor, ("|",))
    if divider is not None:
        cursor.tokens[divider] = Token("command", "mid")
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


def _braced_environment(cursor: Cursor) -> Node:
    r"""A brace before equations, which may stay open, adds nothing: `\{ \begin{array}{l} x = 1 \end{array}`."""
    inner = cursor.rules.atom(cursor)
    closed = cursor.peek().kind == r"\}"
    if closed:
        cursor.advance()
    if inner.head in ("list", "pieces"):
        return inner
    if not closed:
        raise Unreadable("an unclosed brace")
    return Node("{}", (inner,))


def _described(elements: list[Node], conditions: list[Node]) -> Node:
    r"""`\{x \mid x > 2\}` is what its conditions say, all at once; `\{2x \mid x > 2\}` is something else."""
    if len(elements) != 1 or not conditions:
        raise Unreadable("a set whose condition is not understood")
    (element,) = elements
    if element.head == "chain" and element.args[1:] == ("in", Node("set", ("R",))):
        element = element.args[0]
    first = conditions[0]
    if len(conditions) > 1 and first.head == "chain" and first.args[:2] == (element, "="):  # x = kπ, k ∈ ℤ
        element, conditions = first.args[-1], conditions[1:]
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
