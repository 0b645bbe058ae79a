r"""Atoms and powers, with the signs and units that may follow them.

Three tables say which function reads what: `ATOMS` by the kind of the token that an atom begins with, `COMMANDS` by
the name of a LaTeX command, `POSTFIXES` by the token after an atom.
"""

from __future__ import annotations

from collections.abc import Callable

from foresail.maths.notation.brackets import (
    angle_brackets,
    bars,
    bracket,
    loose_braces,
    script,
    set_braces,
)
from foresail.maths.notation.cursor import Cursor
from foresail.maths.notation.environments import environment
from foresail.maths.notation.functions import accented, binomial, fraction, function, opaque, root
from foresail.maths.notation.names import (
    MAX_WORDS,
    greek,
    indexed,
    label,
    name,
    read_number,
    skip_script,
    with_base,
)
from foresail.maths.notation.nouns import changes_value, names_things
from foresail.maths.notation.number_sets import SETS, number_set
from foresail.maths.notation.tokens import Token
from foresail.maths.notation.tree import (
    CONTAINERS,
    DOTS,
    EMPTY,
    INFINITY,
    PI,
    ZERO,
    I,
    Node,
    Unreadable,
    number,
    symbol,
    write,
)
from foresail.maths.notation.units import SCALE_WORDS
from foresail.maths.notation.vocabulary import (
    ACCENTS,
    BARS,
    CONDITIONAL,
    CONSTANTS,
    FUNCTIONS,
    GREEK,
    OPAQUE,
    SEPARATORS,
)

_CONSTANTS = {"pi": PI, "infinity": INFINITY, "empty": EMPTY, "i": I}
_NO_UNITS = SEPARATORS | CONDITIONAL | {"to", "otherwise"}
_ROWS = frozenset(["row", "()", "[]", "list"])
_TRANSPOSES = frozenset(["T", "top", "intercal", "t", "⊤"])
_ORDINALS = frozenset(["th", "st", "nd", "rd"])


# A value and the signs right after it.


def power(cursor: Cursor) -> Node:
    """An atom with its exponent, factorial, percent or degree sign."""
    cursor.enter()
    tree = atom(cursor)
    while (rule := POSTFIXES.get(cursor.peek().kind)) and (changed := rule(cursor, tree)) is not None:
        tree = changed
    cursor.leave()
    return tree


def raised(cursor: Cursor, base: Node) -> Node:
    r"""base^exponent, where `^\circ` is a degree sign and `^{\text{th}}` only an ordinal's tail."""
    cursor.advance()
    inner = cursor.peek(1) if cursor.peek().kind == "{" else cursor.peek()
    if inner.kind == "command" and inner.text in ("circ", "degree"):
        skip_script(cursor)
        if cursor.peek().kind == "letter" and cursor.peek().text in "CF":
            return Node("unit", (base, f"°{cursor.advance().text}"))
        return Node("deg", (base,))
    if inner.kind == "word" and inner.text in _ORDINALS:
        skip_script(cursor)
        return base
    if (base.head == "matrix" or base.head in CONTAINERS) and inner.text in _TRANSPOSES:
        skip_script(cursor)
        return transposed(base)
    if inner.text == "prime" and base.head == "symbol":
        return symbol(base.args[0] + "'" * _primes(cursor))
    cursor.enter()
    exponent = script(cursor)
    if cursor.peek().kind == "^":
        exponent = raised(cursor, exponent)
    cursor.leave()
    return Node("^", (base, exponent))


def transposed(base: Node) -> Node:
    """Rows as columns, also of ((1, 2), (3, 4)); a tuple of numbers stands for a row and for a column."""
    if base.head != "matrix" and not any(row.head in _ROWS for row in base.args):
        if base.head in _ROWS:
            return base
        raise Unreadable("a set is not transposed")
    if any(row.head not in _ROWS or len(row.args) != len(base.args[0].args) for row in base.args):
        raise Unreadable("rows of different lengths")
    columns = zip(*(row.args for row in base.args), strict=True)
    return Node(base.head, tuple(Node(base.args[0].head, column) for column in columns))


def _primes(cursor: Cursor) -> int:
    r"""How many \prime stand in the exponent."""
    count = 0
    braced = cursor.peek().kind == "{"
    if braced:
        cursor.advance()
    while cursor.at_command("prime"):
        cursor.advance()
        count += 1
    if braced:
        cursor.expect("}")
    return count


def factorial(cursor: Cursor, tree: Node) -> Node:
    cursor.advance()
    double = cursor.peek().kind == "!" and not cursor.peek().spaced
    if double:
        cursor.advance()
    return Node("!!" if double else "!", (tree,))


def percent(cursor: Cursor, tree: Node) -> Node:
    cursor.advance()
    return Node("%", (tree,))


def degrees(cursor: Cursor, tree: Node) -> Node | None:
    if not cursor.at_command("degree", "circ"):
        return None
    sign = cursor.advance().text
    if sign == "circ" and tree.head in ("symbol", "apply") and cursor.starts_factor():
        raise Unreadable("a composition of functions")
    return Node("deg", (tree,))


def index_after(cursor: Cursor, tree: Node) -> Node | None:
    """The index of `v^2_0`, and the base of `(1011)_2`."""
    if tree.head == "^" and tree.args[0].head in ("symbol", "constant"):
        return Node("^", (indexed(cursor, str(tree.args[0].args[0])), tree.args[1]))
    return with_base(cursor, write(tree.args[0])) if tree.head == "number" else None


def feet_and_inches(cursor: Cursor, feet: Node) -> Node | None:
    """`5'10''`, as a list of two lengths."""
    if feet.head != "number":
        return None
    cursor.advance()
    inches = read_number(cursor, cursor.expect("number"))
    if cursor.advance().kind == "'":
        cursor.expect("'")
    elif cursor.tokens[cursor.position - 1].kind != '"':
        raise Unreadable("a prime after a number")
    return Node("list", (Node("unit", (feet, "feet")), Node("unit", (inches, "inches"))))


# A token after an atom -> what it makes of the atom, or None where it does not belong to it.
POSTFIXES: dict[str, Callable[[Cursor, Node], Node | None]] = {
    "^": raised,
    "!": factorial,
    "%": percent,
    "command": degrees,
    "_": index_after,
    "'": feet_and_inches,
}


# Units.


def with_unit(cursor: Cursor, tree: Node) -> Node:
    """`5 miles per hour`, `15 cm^2`: words after a value name its unit."""
    words: list[str] = _bracketed_unit(cursor)
    while True:
        token = cursor.peek()
        is_word = token.kind == "word" and token.text.lower() not in _NO_UNITS
        if token.kind == "word" and token.text.lower() in SCALE_WORDS and not words:
            factors = tree.args if tree.head == "*" else (tree,)
            tree = Node("*", (*factors, number(SCALE_WORDS[cursor.advance().text.lower()])))
        elif is_word or token.kind == "currency":
            words.append(cursor.advance().text)
        elif words and token.kind == "/" and cursor.peek(1).kind in ("word", "letter"):
            cursor.advance()
            words += ["/", cursor.advance().text]
        elif words and token.kind == "." and cursor.peek(1).kind == "word":
            cursor.advance()
        elif words and cursor.at_command("cdot") and cursor.peek(1).kind in ("word", "letter"):
            cursor.advance()
            words.append(cursor.advance().text)
        else:
            break
        if cursor.peek().kind == "^" and words:
            words[-1] += _unit_power(cursor)
        if len(words) > MAX_WORDS:
            raise Unreadable("prose")
    if words and words[0] in _ORDINALS:
        if len(words) > 1:
            raise Unreadable("an ordinal")
        return tree
    if words and not names_things(words):
        raise Unreadable("words that are no unit")
    return Node("unit", (tree, " ".join(words))) if words else tree


def _bracketed_unit(cursor: Cursor) -> list[str]:
    r"""`7 \text{ (square cm)}`"""
    length = 0
    while cursor.peek().kind == "(" and cursor.peek(length + 1).kind == "word":
        length += 1
    words = [cursor.peek(place).text for place in range(1, length + 1)]
    if not words or cursor.peek(length + 1).kind != ")" or any(map(changes_value, words)):
        return []
    cursor.position += length + 2
    return words


def _unit_power(cursor: Cursor) -> str:
    cursor.advance()
    exponent = script(cursor)
    sign, size = ("-", exponent.args[0]) if exponent.head == "neg" else ("", exponent)
    return f"^{sign}{write(size.args[0])}" if size.head == "number" else "^?"


# Atoms.


def atom(cursor: Cursor) -> Node:
    """A value without anything after it: a number, a name, a bracket, a command with its arguments."""
    cursor.enter()
    token = cursor.advance()
    rule = ATOMS.get(token.kind)
    if rule is None:
        raise Unreadable(f"{token.text or 'nothing'} where a value should stand")
    tree = rule(cursor, token)
    cursor.leave()
    return tree


def command(cursor: Cursor, token: Token) -> Node:
    rule = COMMANDS.get(token.text)
    if rule is None:
        rule = next((ENDINGS[ending] for ending in ENDINGS if token.text.endswith(ending)), None)
    if rule is None:
        raise Unreadable(f"unknown command {token.text}")
    return rule(cursor, token)


def selection(cursor: Cursor, token: Token) -> Node:
    """`_{10}C_3` and `^{10}P_3`: how many ways to choose or to arrange."""
    total = script(cursor)
    letter = cursor.advance()
    if letter.kind != "letter" or letter.text not in "CP":
        raise Unreadable("an index of nothing")
    cursor.expect("_")
    return Node("binom" if letter.text == "C" else "perm", (total, script(cursor)))


def constant(cursor: Cursor, token: Token) -> Node:
    return _CONSTANTS[CONSTANTS[token.text]]


def without_sign(cursor: Cursor, token: Token) -> Node:
    r"""`\angle A` and `\triangle ABC` are what they mark."""
    return power(cursor)


def plus_or_minus(cursor: Cursor, token: Token) -> Node:
    return Node(token.text, (ZERO, power(cursor)))


Rule = Callable[[Cursor, Token], Node]  # the token has been read

ATOMS: dict[str, Rule] = {
    "number": read_number,
    "letter": name,
    "command": command,
    **dict.fromkeys(["(", "[", "]"], bracket),
    "{": loose_braces,
    r"\{": set_braces,
    "|": bars,
    "word": label,
    **dict.fromkeys(["_", "^"], selection),
}
# Where a name stands in several rows, the last one counts.
COMMANDS: dict[str, Rule] = {
    **dict.fromkeys(GREEK, greek),
    **dict.fromkeys(["pm", "mp"], plus_or_minus),
    **dict.fromkeys(OPAQUE, opaque),
    **dict.fromkeys(ACCENTS, accented),
    **dict.fromkeys(SETS, number_set),
    "begin": environment,
    **dict.fromkeys(["langle", "lbrace", "lbrack"], angle_brackets),
    **dict.fromkeys(BARS, bars),
    **dict.fromkeys(["angle", "triangle", "square"], without_sign),
    **dict.fromkeys(CONSTANTS, constant),
    **dict.fromkeys(FUNCTIONS, function),
    "sqrt": root,
    "jmath": lambda cursor, command: symbol("j"),
}
# dfrac, tbinom, ldots
ENDINGS: dict[str, Rule] = {"frac": fraction, "binom": binomial, "dots": lambda cursor, command: DOTS}
