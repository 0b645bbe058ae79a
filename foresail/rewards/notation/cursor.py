"""A place among the tokens, and the levels of the grammar that call each other."""

from __future__ import annotations

from foresail.rewards.notation.tokens import END, Token
from foresail.rewards.notation.tree import Node, Unreadable

MAX_DEPTH = 120  # levels of the grammar, of which one bracket takes about five


class Cursor:
    """A place among the tokens, and how deep the grammar is."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.position = 0
        self.depth = 0
        self.open: list[str] = []  # the brackets around the place
        self.after_number = -1  # the place right behind the last bare number
        self.after_vector = -1  # and behind the last letter with an arrow

    def peek(self, offset: int = 0) -> Token:
        index = self.position + offset
        return self.tokens[index] if index < len(self.tokens) else END

    def advance(self) -> Token:
        if not self.more():
            raise Unreadable("an end where something should stand")
        self.position += 1
        return self.tokens[self.position - 1]

    def more(self) -> bool:
        return self.position < len(self.tokens)

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

    def at_command(self, *names: str) -> bool:
        token = self.peek()
        return token.kind == "command" and token.text in names

    @property
    def last_was_number(self) -> bool:
        return self.after_number == self.position


class Levels(Cursor):
    """What every level may call on; each is written in the module that the comment names."""

    def group_items(self) -> list[Node]:  # grammar
        raise NotImplementedError

    def relation(self) -> Node:  # grammar
        raise NotImplementedError

    def sum(self) -> Node:  # grammar
        raise NotImplementedError

    def power(self) -> Node:  # atoms
        raise NotImplementedError

    def script(self) -> Node:  # atoms
        raise NotImplementedError

    def atom(self) -> Node:  # atoms
        raise NotImplementedError

    def starts_factor(self) -> bool:  # atoms
        raise NotImplementedError
