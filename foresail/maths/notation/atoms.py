r"""Atoms and powers, with the signs and units that may follow them.

Three tables say which function reads what: `ATOMS` by the kind of the token that an atom begins with, `COMMANDS` by
the name of a LaTeX command, `POSTFIXES` by the token after an atom.
"""

from __future__ import annotations

from collections.abc import Callable

from foresail.maths.notation.brackets import (
    angle_brackets,
    bars,
    braced,
    bracket,
    environment,
    script,
    set_braces,
)
from foresail.maths.notation.cursor import Cursor
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
from foresail.maths.notation.tokens import Token
from foresail.maths.notation.tree import (
    CONTAINERS,
    DOTS,
    EMPTY,
    INFINITY,
    PI,
    POSITIVE_INTEGERS,
    ZERO,
    I,
    Node,
    Unreadable,
    number,
    symbol,
    write,
)
from foresail.maths.notation.units import SCALE_WORDS
from foresail.maths.notation.vocabulary import ACCENTS, BARS, CONSTANTS, FUNCTIONS, GREEK, OPAQUE, SEPARATORS

MAX_POSTFIXES = 10  # factorials and the like on one atom
_SETS = {f"mathbb{letter}": Node("set", (letter,)) for letter in "RZQNC"}
_CONSTANTS = {"pi": PI, "infinity": INFINITY, "empty": EMPTY, "i": I}
_ORDINALS = frozenset(["th", "st", "nd", "rd"])


# A value and the signs right after it.


def power(cursor: Cursor) -> Node:
    """An atom with its exponent, factorial, percent or degree sign."""
    cursor.enter()
    tree = atom(cursor)
    for _ in range(MAX_POSTFIXES):
        rule = POSTFIXES.get(cursor.peek().kind)
        changed = rule(cursor, tree) if rule else None
        if changed is None:
            break
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
    if inner.text == "prime" and base.head == "symbol":
        return symbol(base.args[0] + "'" * _primes(cursor))
    cursor.enter()
    exponent = script(cursor)
    if cursor.peek().kind == "^":
        exponent = raised(cursor, exponent)
    cursor.leave()
    if base.head in CONTAINERS and exponent.args[:1] in (("T",), ("\\top",)):  # (1, 2)^T
        return base
    return Node("^", (base, exponent))


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
        is_word = token.kind == "word" and token.text.lower() not in SEPARATORS and token.text != "to"
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


def number_set(cursor: Cursor, command: Token) -> Node:
    r"""`\mathbb{Z}`, and `\mathbb{Z}^+` or `\mathbb{Z}_{>0}`, which is \{1, 2, …\} there."""
    shape = " ".join(token.text for token in cursor.tokens[cursor.position : cursor.position + 5])
    for positive in ("_ { > 0 }", "^ { + }", "_ { + }", "^ +", "_ +"):
        if command.text == "mathbbZ" and shape.startswith(positive):
            cursor.position += len(positive.split())
            return POSITIVE_INTEGERS
    if cursor.peek().kind in ("^", "_"):
        raise Unreadable("a part of a set")
    return _SETS[command.text]


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
    "{": braced,
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
    **dict.fromkeys(_SETS, number_set),
    "begin": environment,
    **dict.fromkeys(["langle", "lbrace", "lbrack"], angle_brackets),
    **dict.fromkeys(BARS, bars),
    **dict.fromkeys(["angle", "triangle", "square"], without_sign),
    **dict.fromkeys(CONSTANTS, constant),
    **dict.fromkeys(FUNCTIONS, function),
    "sqrt": root,
}
# dfrac, tbinom, ldots
ENDINGS: dict[str, Rule] = {"frac": fraction, "binom": binomial, "dots": lambda cursor, command: DOTS}
