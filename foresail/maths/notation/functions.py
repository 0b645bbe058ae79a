r"""Functions with their arguments: \sin 2x, \log_2 8, \sqrt[3]{x}, \frac12, \sum."""

from __future__ import annotations

from foresail.maths.notation.brackets import arguments, braced, script
from foresail.maths.notation.cursor import Cursor
from foresail.maths.notation.names import with_letters
from foresail.maths.notation.tokens import Token
from foresail.maths.notation.tree import PI, I, Node, Unreadable, number, symbol
from foresail.maths.notation.vocabulary import FUNCTIONS

_ONE = range(1, 2)
_VECTORS = frozenset(["vec", "overrightarrow"])
_UNIT__VECTORS = (I, symbol("j"), symbol("k"))
_INVERSES = frozenset("sin cos tan cot sec csc sinh cosh tanh".split())
_ARGUMENTS = dict.fromkeys(["max", "min", "gcd", "lcm"], range(1, 100)) | {
    "log": range(1, 3),  # log(8, 2)
    "binom": range(2, 3),
}


def fraction(cursor: Cursor, command: Token) -> Node:
    return Node("/", (_piece(cursor), _piece(cursor)))


def binomial(cursor: Cursor, command: Token) -> Node:
    return Node("binom", (_piece(cursor), _piece(cursor)))


def _piece(cursor: Cursor) -> Node:
    r"""An argument of \frac: a group, or one character, so that `\frac12` is a half."""
    token = cursor.peek()
    if token.kind == "{":
        return braced(cursor, cursor.advance())
    if token.kind == "number" and len(token.text) > 1 and token.text.isdigit():
        cursor.tokens[cursor.position] = Token("number", token.text[1:])
        return number(int(token.text[0]))
    if token.kind in ("number", "letter", "command", "("):
        return cursor.rules.atom(cursor)
    raise Unreadable("a fraction without its parts")


def root(cursor: Cursor, command: Token) -> Node:
    if cursor.peek().kind == "[":
        cursor.advance()
        cursor.open.append("[")
        index = cursor.rules.sum(cursor)
        cursor.open.pop()
        cursor.expect("]")
        return Node("root", (script(cursor), index))
    return Node("sqrt", (script(cursor),))


def function(cursor: Cursor, command: Token) -> Node:
    r"""`\sin^2 x`, `\log_2 8`, `\sin^{-1} x`, with the argument in brackets or without."""
    head = FUNCTIONS[command.text]
    power: Node | None = None
    base: Node | None = None
    while cursor.peek().kind in ("^", "_"):
        if cursor.advance().kind == "^":
            power = script(cursor)
        else:
            base = _log_base(cursor) if head == "log" else script(cursor)
    if power is not None and head in _INVERSES and power == Node("neg", (number(1),)):
        head, power = f"arc{head}", None
    candidate = _function_arguments(cursor, head)
    if head == "log" and base is not None:
        candidate = (candidate[0], base)
    elif base is not None:
        return Node("apply", (head, base, *candidate))
    tree = Node(head, candidate)
    return tree if power is None else Node("^", (tree, power))


def _log_base(cursor: Cursor) -> Node:
    r"""`\log_28`: LaTeX takes one character for the base when the argument would be missing otherwise."""
    token = cursor.peek()
    cursor.position += 1
    alone = not (cursor.starts_factor() or cursor.peek().kind == "number")
    cursor.position -= 1
    if token.kind == "number" and token.text.isdigit() and len(token.text) > 1 and alone:
        cursor.tokens[cursor.position] = Token("number", token.text[1:])
        return number(int(token.text[0]))
    return script(cursor)


def _function_arguments(cursor: Cursor, head: str) -> tuple[Node, ...]:
    if cursor.peek().kind == "(":
        candidate = arguments(cursor)
    elif cursor.peek().kind in (r"\{", "{"):
        group = cursor.rules.atom(cursor)
        candidate = group.args if group.head in ("{}", "braces") else (group,)
    else:
        candidate = (_loose_argument(cursor),)
    if len(candidate) not in _ARGUMENTS.get(head, _ONE):
        raise Unreadable(f"{head} of so many things")
    return candidate


def _loose_argument(cursor: Cursor) -> Node:
    r"""The argument of `\sin 2x` or `\cos 2\pi/7`: factors up to the next sign, function or bracket."""
    negative = cursor.peek().kind == "-"
    if negative:
        cursor.advance()
    factors = [cursor.rules.power(cursor)]
    while cursor.starts_factor() and cursor.peek().kind not in ("(", "{", "[", "|"):
        if cursor.peek().kind == "command" and cursor.peek().text in FUNCTIONS:
            break
        factors.append(cursor.rules.power(cursor))
    tree = factors[0] if len(factors) == 1 else Node("*", tuple(factors))
    if PI in factors and cursor.peek().kind == "/" and cursor.peek(1).kind == "number":
        cursor.advance()
        tree = Node("/", (tree, cursor.rules.power(cursor)))
    return Node("neg", (tree,)) if negative else tree


def accented(cursor: Cursor, command: Token) -> Node:
    r"""`\bar z` is a conjugate, `\vec v` a vector; any other accent makes another name."""
    name, tree = command.text, script(cursor)
    if tree.head == "number":
        raise Unreadable("an accent on a number")
    if name in ("bar", "overline"):
        return Node("apply", ("bar", tree)) if tree.head == "symbol" else Node("conj", (tree,))
    if name in _VECTORS:
        cursor.after_vector = cursor.position
        return tree
    if name in ("hat", "widehat") and tree in _UNIT__VECTORS:
        return tree
    return Node("apply", (name, tree))


def opaque(cursor: Cursor, command: Token) -> Node:
    """A sum or an integral: read, so that it can be compared, and never carried out."""
    bounds: dict[str, list[Node]] = {"_": [], "^": []}
    while cursor.peek().kind in ("_", "^"):
        bound = bounds[cursor.advance().kind]
        if cursor.peek().kind == "{":
            cursor.advance()
            bound += [] if cursor.closes() else cursor.rules.items(cursor)
            cursor.expect("}")
        elif cursor.peek().kind == "letter":  # the n of \\sum^n_{k=1} has no index
            bound.append(symbol(cursor.advance().text))
        else:
            bound.append(cursor.rules.atom(cursor))
    factors = [cursor.rules.power(cursor)]
    while cursor.starts_factor():
        factors.append(cursor.rules.power(cursor))
    body = factors[0] if len(factors) == 1 and command.text != "int" else Node("*", tuple(factors))
    operator = Node("opaque", (command.text, body, *bounds["_"], *bounds["^"]))
    counts_with_i = any(bound.head == "chain" and bound.args[0] == I for bound in bounds["_"])
    return with_letters(operator) if counts_with_i else operator
