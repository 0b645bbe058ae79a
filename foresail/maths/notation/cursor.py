"""A place among the tokens, what may begin or end there, and the table of rules that call each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from foresail.maths.notation.tokens import END, Token
from foresail.maths.notation.tree import Node, Unreadable
from foresail.maths.notation.vocabulary import ACCENTS, BARS, CONSTANTS, FUNCTIONS, GREEK, OPAQUE, SEPARATORS

MAX_DEPTH = 120  # rules inside each other, of which one bracket takes about five

_FACTORS = frozenset([*FUNCTIONS, *CONSTANTS, *GREEK, *ACCENTS, *OPAQUE, "sqrt", "begin"])
_CLOSING = frozenset([")", "}", r"\}", "end", "&", "row"])
_CLOSING_COMMANDS = frozenset("rangle rvert rVert rfloor rceil end mid rbrace".split())
_BEFORE_ITEM = frozenset(["[", ",", ";"])
_LOGICAL = frozenset(["land", "lor", "wedge", "vee"])


class Rules(NamedTuple):
    """The rules of the grammar that modules below `grammar.py` call as well; it fills the table."""

    items: Callable[[Cursor], list[Node]]
    relation: Callable[[Cursor], Node]
    sum: Callable[[Cursor], Node]
    power: Callable[[Cursor], Node]
    atom: Callable[[Cursor], Node]


class Cursor:
    """A place among the tokens, and how deep the grammar is."""

    def __init__(self, tokens: list[Token], rules: Rules) -> None:
        self.tokens = tokens
        self.end = len(tokens)
        self.rules = rules
        self.position = 0
        self.depth = 0
        self.open: list[str] = []  # the brackets around the place
        self.after_number = -1  # the place right after the last bare number
        self.after_vector = -1  # and after the last letter with an arrow

    def peek(self, offset: int = 0) -> Token:
        index = self.position + offset
        return self.tokens[index] if index < self.end else END

    def kinds(self, count: int) -> list[str]:
        """The kinds of the next tokens, by which short patterns such as `(x)=` are recognised."""
        return [self.peek(offset).kind for offset in range(count)]

    def advance(self) -> Token:
        if self.position >= self.end:
            raise Unreadable("an end where something should stand")
        self.position += 1
        return self.tokens[self.position - 1]

    def replace(self, end: int, tokens: list[Token]) -> None:
        """Puts other tokens in place of those from here to `end`."""
        self.tokens[self.position : end] = tokens
        self.end = len(self.tokens)

    def more(self) -> bool:
        return self.position < self.end

    def expect(self, *kinds: str) -> Token:
        token = self.advance()
        if token.kind not in kinds:
            raise Unreadable(f"{token.text or 'the end'} where {' or '.join(kinds)} should stand")
        return token

    def enter(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Unreadable("too deep")

    def leave(self) -> None:
        self.depth -= 1

    def group(self, opening: str) -> list[Node]:
        """The items up to a closing bracket, which stays; `{}` and `()` have none."""
        self.open.append(opening)
        items = [] if self.closes() else self.rules.items(self)
        self.open.pop()
        return items

    def at_command(self, *names: str) -> bool:
        token = self.peek()
        return token.kind == "command" and token.text in names

    def at_separator(self) -> bool:
        token = self.peek()
        return (
            token.kind == ","
            or (token.kind == "command" and token.text in _LOGICAL)
            or (token.kind == "word" and token.text.lower() in SEPARATORS)
        )

    def starts_factor(self) -> bool:
        """Whether an atom begins here that multiplies what came before."""
        token = self.peek()
        if token.kind in ("letter", "{"):
            return True
        if token.kind == "(":  # words in brackets are a unit
            return self.peek(1).kind != "word"
        if token.kind == "[":
            return "[" not in self.open[-1:] and "]" not in self.open[-1:]
        if token.kind == "|":
            return "|" not in self.open
        if token.kind == "number":
            if self.position and self.tokens[self.position - 1].kind != "number":
                return True
            return (
                self.peek(1).kind == "^" and self.position > 1 and self.tokens[self.position - 2].kind == "^"
            )
        if token.kind != "command":
            return False
        if token.text in BARS:
            return token.text not in ("vert", "Vert") or token.text not in self.open
        return token.text in _FACTORS or token.text.endswith(("frac", "binom", "dots"))

    def closes(self) -> bool:
        """Whether what is open ends here."""
        token = self.peek()
        if token.kind in _CLOSING:
            return True
        if token.kind == "]":
            return bool(self.open)
        if token.kind == "|":
            return "|" in self.open
        if token.kind == "[":  # of ]1, 2[, and not of [[1, 2], [3, 4]]
            return (
                self.open[-1:] in (["["], ["]"]) and self.tokens[self.position - 1].kind not in _BEFORE_ITEM
            )
        return token.kind == "command" and (
            token.text in _CLOSING_COMMANDS or (token.text in ("vert", "Vert") and token.text in self.open)
        )
