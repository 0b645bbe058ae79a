r"""Numbers and names: 1011_2, x_1, f(x), \alpha, \text{Area}."""

from __future__ import annotations

from foresail.maths.notation import numeral
from foresail.maths.notation.brackets import arguments, braced, script
from foresail.maths.notation.cursor import Cursor
from foresail.maths.notation.nouns import changes_value
from foresail.maths.notation.tokens import Token
from foresail.maths.notation.tree import E, I, Node, Unreadable, is_deep, number, rebuild, symbol, write
from foresail.maths.notation.units import CURRENCY_WORDS

MAX_WORDS = 8  # of a label or a unit

_FILLERS = CURRENCY_WORDS | {"about", "approximately", "roughly", "exactly", "around", "约", "大约", "RM"}
# Words that leave a value open: in `the square of: 7` the answer is not 7.
_LEAVING_OPEN = frozenset("of than to by under over above below beyond except times".split())
_COPULAS = frozenset(["is", "are", "equals"])
_FUNCTION_LETTERS = frozenset("fghFGH")
_GREEK_FUNCTIONS = frozenset("Gamma zeta Phi Psi psi phi varphi Theta".split())
_BASE_WORDS = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
               "twelve": 12, "sixteen": 16}  # fmt: skip


def read_number(cursor: Cursor, token: Token) -> Node:
    """A numeral, in base ten or in the base that its index names."""
    is_exponent = cursor.position > 1 and cursor.tokens[cursor.position - 2].kind == "^"
    if cursor.peek().kind == "_" and not is_exponent:  # v^2_0 has an index, and no base
        return with_base(cursor, token.text.replace(",", "").replace(" ", ""))
    value = numeral.value_of(token.text)
    if value is None:
        raise Unreadable("a numeral beyond the limits")
    cursor.after_number = cursor.position
    exact = value.denominator == 1 and "." not in token.text
    decimal = not exact and token.text.replace(".", "").replace("e", "").replace("E", "").isdigit()
    return number(value, numeral.significant_digits(token.text) if decimal else None)


def with_base(cursor: Cursor, digits: str) -> Node:
    """`1011_2`: a numeral in another base."""
    cursor.expect("_")
    base_token = cursor.peek(1) if cursor.peek().kind == "{" else cursor.peek()
    skip_script(cursor)
    base = _BASE_WORDS.get(base_token.text) or (
        int(base_token.text) if base_token.text[:3].isdigit() and len(base_token.text) < 3 else 0
    )
    value = numeral.in_base(digits, base)
    if value is None:
        raise Unreadable(f"{digits} is no numeral in base {base}")
    return Node("base", (digits, base, value))


def skip_script(cursor: Cursor) -> None:
    if cursor.advance().kind == "{":
        cursor.advance()
        cursor.expect("}")


def name(cursor: Cursor, token: Token) -> Node:
    """A variable with its primes and index, or a function of that name."""
    letter = token.text
    while cursor.peek().kind == "'":
        letter += cursor.advance().text
    if cursor.peek().kind == "_":
        return indexed(cursor, letter)
    if letter == "C" and cursor.kinds(5) == ["(", "number", ",", "number", ")"]:
        return Node("binom", arguments(cursor))
    if letter[0] in _FUNCTION_LETTERS and cursor.peek().kind == "{" and cursor.peek(1).kind == "(":
        return Node("apply", (letter, braced(cursor, cursor.advance())))  # f{\left(x\right)}, as in sympy
    if cursor.peek().kind == "(" and (letter[0] in _FUNCTION_LETTERS or _is_applied(cursor, letter)):
        return Node("apply", (letter, *arguments(cursor)))
    return {"e": E, "i": I}.get(letter) or symbol(letter)


def _is_applied(cursor: Cursor, letter: str) -> bool:
    """`P(x) =`, `P(2)` and `a(0)`: nobody multiplies a letter by a number after it, least of all by zero."""
    if cursor.kinds(3) == ["(", "number", ")"]:
        return letter.isupper() or cursor.peek(1).text == "0"
    return cursor.kinds(4) == ["(", "letter", ")", "="]


def indexed(cursor: Cursor, letter: str) -> Node:
    """`x_1` and `S_{ABC}` are names, `a_{n+1}` is a function of its index."""
    cursor.advance()
    if (extreme := _extreme_index(cursor)) is not None:
        return symbol(f"{letter}_{extreme}")
    index = script(cursor)
    if letter in "CPA" and cursor.peek().kind == "^" and index.head == "number":  # C_{10}^{3}
        cursor.advance()
        return Node("binom" if letter == "C" else "perm", (index, script(cursor)))
    if index.head == "number":
        return symbol(f"{letter}_{write(index.args[0])}")
    if index.head == "*" and all(part.head in ("symbol", "constant") for part in index.args):  # S_{ABC}
        return symbol(f"{letter}_{''.join(str(part.args[0]) for part in index.args)}")
    if is_deep(index):
        raise Unreadable("too deep")
    return Node("apply", (f"{letter}_", with_letters(index)))


def _extreme_index(cursor: Cursor) -> str | None:
    r"""The index of `f_{\max}` or `x_\min`."""
    place = 1 if cursor.peek().kind == "{" else 0
    token = cursor.peek(place)
    if token.kind != "command" or token.text not in ("max", "min") or (place and cursor.peek(2).kind != "}"):
        return None
    cursor.position += 2 * place + 1
    return token.text


def label(cursor: Cursor, word: Token) -> Node:
    r"""Words are a value only as the left side of `\text{Area} = 5`."""
    words = [word.text]
    while cursor.peek().kind in ("word", "letter") and len(words) < MAX_WORDS:
        words.append(cursor.advance().text)
    named = cursor.peek().kind == "=" or cursor.at_command("approx")
    if named and not any(map(changes_value, words)):
        return symbol(" ".join(words).lower())
    raise Unreadable("words")


def skip_lead(cursor: Cursor) -> None:
    r"""Passes `about` and the like, and what leads up to a value: `\text{The area is } 7`."""
    while cursor.peek().kind == "word" and cursor.peek().text in _FILLERS:
        cursor.advance()
    if cursor.peek().kind != "word":
        return
    words = 0
    while cursor.peek(words).kind in ("word", "letter") and not changes_value(cursor.peek(words).text):
        words += 1
    if cursor.peek(words).kind == ":" and words <= MAX_WORDS:
        if words and cursor.peek(words - 1).text.lower() in _LEAVING_OPEN:
            raise Unreadable("something of a value")
        cursor.position += words + 1
    elif 1 < words <= MAX_WORDS and cursor.peek(words - 1).text in _COPULAS:
        cursor.position += words


def greek(cursor: Cursor, command: Token) -> Node:
    r"""`\alpha`, `\theta_1`, and the functions `\Gamma(x)` and `\zeta(x)`."""
    name = command.text
    if cursor.peek().kind == "_":
        return indexed(cursor, f"\\{name}")
    if name in _GREEK_FUNCTIONS and cursor.peek().kind == "(":
        candidate = arguments(cursor)
        if name != "Gamma":
            return Node("apply", (name.removeprefix("var"), *candidate))
        if len(candidate) != 1:
            raise Unreadable("an incomplete gamma function")
        return Node("gamma", candidate)
    return symbol(f"\\{name.removeprefix('var')}")


def with_letters(node: Node) -> Node:
    """An index, or a sum over i, with i and e as letters: the i of a_i is no root of -1."""
    if node.head == "constant" and node.args[0] in "ie":
        return symbol(node.args[0])
    return rebuild(node, with_letters)
