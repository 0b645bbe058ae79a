r"""Numbers and names: 1011_2, x_1, f(x), \alpha, \text{Area}."""

from __future__ import annotations

from typing import Any

from foresail.rewards.notation import numeral
from foresail.rewards.notation.functions import Functions
from foresail.rewards.notation.nouns import changes_value
from foresail.rewards.notation.tokens import Token
from foresail.rewards.notation.tree import E, I, Node, Unreadable, number, rebuild, symbol, write
from foresail.rewards.notation.units import CURRENCY_WORDS
from foresail.rewards.notation.vocabulary import GREEK

MAX_WORDS = 8  # of a label or a unit

_FILLERS = CURRENCY_WORDS | {"about", "approximately", "roughly", "exactly", "around", "约", "大约", "RM"}
_LEAVING_OPEN = frozenset(
    "of than to by under over above below beyond except times".split()
)  # the square of: 7
_COPULAS = frozenset(["is", "are", "equals"])
_FUNCTION_LETTERS = frozenset("fghFGH")
_GREEK_FUNCTIONS = frozenset("Gamma zeta Phi Psi psi phi varphi Theta".split())
_BASE_WORDS = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
               "twelve": 12, "sixteen": 16}  # fmt: skip


class Names(Functions):
    """What stands for a value."""

    def number(self, token: Token) -> Node:
        is_exponent = self.position > 1 and self.tokens[self.position - 2].kind == "^"
        if self.peek().kind == "_" and not is_exponent:  # v^2_0 has an index, and no base
            return self.with_base(token.text.replace(",", "").replace(" ", ""))
        value = numeral.value_of(token.text)
        if value is None:
            raise Unreadable("a numeral beyond the limits")
        self.after_number = self.position
        exact = value.denominator == 1 and "." not in token.text
        decimal = not exact and token.text.replace(".", "").replace("e", "").replace("E", "").isdigit()
        return number(value, numeral.significant_digits(token.text) if decimal else None)

    def with_base(self, digits: str) -> Node:
        """`1011_2`: a numeral in another base."""
        self.expect("_")
        base_token = self.peek(1) if self.peek().kind == "{" else self.peek()
        self.skip_script()
        base = _BASE_WORDS.get(base_token.text) or (
            int(base_token.text) if base_token.text[:3].isdigit() and len(base_token.text) < 3 else 0
        )
        value = numeral.in_base(digits, base)
        if value is None:
            raise Unreadable(f"{digits} is no numeral in base {base}")
        return Node("base", (digits, base, value))

    def skip_script(self) -> None:
        if self.advance().kind == "{":
            self.advance()
            self.expect("}")

    def name(self, letter: str) -> Node:
        """A variable with its primes and index, or a function of that name."""
        while self.peek().kind == "'":
            letter += self.advance().text
        if self.peek().kind == "_":
            return self.indexed(letter)
        if letter == "C" and [self.peek(k).kind for k in range(5)] == ["(", "number", ",", "number", ")"]:
            return Node("binom", self.arguments())
        if letter[0] in _FUNCTION_LETTERS and self.peek().kind == "{" and self.peek(1).kind == "(":
            return Node("apply", (letter, self.braced()))  # f{\left(x\right)}, as sympy prints it
        if self.peek().kind == "(" and (
            letter[0] in _FUNCTION_LETTERS or self.is_definition() or self.is_value_at(letter)
        ):
            return Node("apply", (letter, *self.arguments()))
        if letter == "e":
            return E
        return I if letter == "i" else symbol(letter)

    def is_definition(self) -> bool:
        """`P(x) =`: a name, one letter in brackets, an equals sign."""
        shape = [self.peek(offset).kind for offset in range(4)]
        return shape == ["(", "letter", ")", "="]

    def is_value_at(self, letter: str) -> bool:
        """`I(0)`, `P(2)`: nobody multiplies a letter by a number behind it, least of all by zero."""
        shape = [self.peek(offset).kind for offset in range(3)]
        return shape == ["(", "number", ")"] and (letter.isupper() or self.peek(1).text == "0")

    def indexed(self, letter: str) -> Node:
        self.advance()
        if (extreme := self.extreme_index()) is not None:
            return symbol(f"{letter}_{extreme}")
        index = self.script()
        if letter in "CPA" and self.peek().kind == "^" and index.head == "number":  # C_{10}^{3}
            self.advance()
            return Node("binom" if letter == "C" else "perm", (index, self.script()))
        if index.head == "number":
            return symbol(f"{letter}_{write(index.args[0])}")
        if index.head == "*" and all(part.head in ("symbol", "constant") for part in index.args):  # S_{ABC}
            return symbol(f"{letter}_{''.join(str(part.args[0]) for part in index.args)}")
        return Node("apply", (f"{letter}_", _with_letters(index)))

    def extreme_index(self) -> str | None:
        r"""The index of `f_{\max}` or `x_\min`."""
        place = 1 if self.peek().kind == "{" else 0
        token = self.peek(place)
        if (
            token.kind != "command"
            or token.text not in ("max", "min")
            or (place and self.peek(2).kind != "}")
        ):
            return None
        self.position += 2 * place + 1
        return token.text

    def label(self, word: str) -> Node:
        r"""Words are a value only as the left side of `\text{Area} = 5`."""
        words = [word]
        while self.peek().kind in ("word", "letter") and len(words) < MAX_WORDS:
            words.append(self.advance().text)
        named = self.peek().kind == "=" or self.at_command("approx")
        if named and not any(map(changes_value, words)):
            return symbol(" ".join(words).lower())
        raise Unreadable("words")

    def skip_lead(self) -> None:
        r"""Passes `about` and the like, and what leads up to a value: `\text{The area is } 7`."""
        while self.peek().kind == "word" and self.peek().text in _FILLERS:
            self.advance()
        if self.peek().kind != "word":
            return
        words = 0
        while self.peek(words).kind in ("word", "letter") and not changes_value(self.peek(words).text):
            words += 1
        if self.peek(words).kind == ":" and words <= MAX_WORDS:
            if words and self.peek(words - 1).text.lower() in _LEAVING_OPEN:
                raise Unreadable("something of a value")
            self.position += words + 1
        elif 1 < words <= MAX_WORDS and self.peek(words - 1).text in _COPULAS:
            self.position += words

    def greek(self, name: str) -> Node:
        if name not in GREEK:
            raise Unreadable(f"unknown command {name}")
        if self.peek().kind == "_":
            return self.indexed(f"\\{name}")
        if name in _GREEK_FUNCTIONS and self.peek().kind == "(":
            return Node("gamma" if name == "Gamma" else "apply", self.greek_arguments(name))
        return symbol(f"\\{name.removeprefix('var')}")

    def greek_arguments(self, name: str) -> tuple[Any, ...]:
        """What a special function is applied to, behind its name unless it is Γ, which has values."""
        arguments = self.arguments()
        if name != "Gamma":
            return (name.removeprefix("var"), *arguments)
        if len(arguments) != 1:
            raise Unreadable("an incomplete gamma function")
        return arguments


def _with_letters(index: Node) -> Node:
    """An index with i and e as letters: the i of a_i is no root of -1."""
    if index.head == "constant" and index.args[0] in "ie":
        return symbol(index.args[0])
    return rebuild(index, _with_letters)
