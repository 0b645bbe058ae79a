r"""Domains of letters, however they are added: `k\pi (k \in \mathbb{Z})`, "k\pi where k is an integer".

Both become `k\pi, k \in \mathbb{Z}` before the grammar sees them.
"""

from __future__ import annotations

from typing import NamedTuple

from foresail.maths.lexicon.table import words_for
from foresail.maths.notation.tokens import END, Token
from foresail.maths.notation.vocabulary import CONSTANTS

MAX_NAMES = 4  # of one domain

_LEADS = frozenset(words_for("domain"))
_WHOLE = frozenset(words_for("integers"))
_OPENING = _WHOLE | {"in"}  # of which every domain has one
_IS = frozenset(words_for("denotes"))
_SETS = frozenset(["mathbbZ", "mathbbN", "mathbbR", "mathbbQ", "mathbbC"])
_LETTERS = frozenset("ZNRQC")
_VALUE_ENDS = frozenset(["number", "letter", ")", "}", "]", "%"])
_CONSTANTS = CONSTANTS.keys() | {"circ", "degree"}
_COMMA, _MEMBER, _INTEGERS = Token(",", ","), Token("command", "in"), Token("command", "mathbbZ")


class LetterDomain(NamedTuple):
    """Letters, the tokens of the set they are in, and the place after them."""

    names: list[Token]
    members: list[Token]
    end: int


def with_domains_apart(tokens: list[Token]) -> list[Token]:
    """The tokens with every domain after a comma; the same list where there is none."""
    if _OPENING.isdisjoint([token.text for token in tokens]):
        return tokens
    apart: list[Token] = []
    place = 0
    while place < len(tokens):
        domain = _domain_at(tokens, place) if apart else None
        if domain is None:
            apart.append(tokens[place])
            place += 1
            continue
        for name in domain.names:
            apart += [_COMMA, name, _MEMBER, *domain.members]
        place = domain.end
    return apart


def _domain_at(tokens: list[Token], place: int) -> LetterDomain | None:
    """The domain that is added to what stands before the place; None where there is none, or it has its comma."""

    def token(at: int) -> Token:
        return tokens[at] if at < len(tokens) else END

    start = place
    after_comma = token(place).kind == ","
    place += after_comma
    bracketed = token(place).kind == "("
    place += bracketed
    whole, led = False, place
    while token(place).kind == "word" and token(place).text in _LEADS | _WHOLE:
        whole = whole or token(place).text in _WHOLE
        place += 1
    led = place > led
    names: list[Token] = []
    while token(place).kind == "letter" and len(names) < MAX_NAMES:
        names.append(token(place))
        place += 1
        if token(place).kind == "," and token(place + 1).kind == "letter":
            place += 1
    if not names:
        return None
    if token(place)[:2] == _MEMBER[:2]:
        members = _set_at(tokens, place + 1)
        place += 1 + len(members)
    else:
        said = place
        while token(place).text in _IS or token(place).text in ("a", "an", "n"):
            place += 1
        if token(place).text in _WHOLE:
            place += 1
        elif not whole or place > said:
            return None
        members = [_INTEGERS]
    if not members:
        return None
    if bracketed:
        if token(place).kind != ")":
            return None
        place += 1
    if after_comma and not (bracketed or led or members[0] is not tokens[place - len(members)]):
        return None  # it is where it belongs
    if not (after_comma or bracketed or led) and not _is_added(tokens, start):
        return None
    return LetterDomain(names, members, place)


def _is_added(tokens: list[Token], place: int) -> bool:
    r"""Whether the letter there opens a domain and is no factor: the second k of `k\pi \quad k \in \mathbb{Z}`."""
    before, name = tokens[place - 1], tokens[place]
    ends_value = before.kind in _VALUE_ENDS or (before.kind == "command" and before.text in _CONSTANTS)
    return name.spaced and ends_value and any(earlier[:2] == name[:2] for earlier in tokens[:place])


def _set_at(tokens: list[Token], place: int) -> list[Token]:
    r"""The tokens of `\mathbb{Z}^+` or of the letter Z; none of anything else."""
    first = tokens[place] if place < len(tokens) else END
    if first.kind == "letter" and first.text in _LETTERS:
        first = Token("command", f"mathbb{first.text}")
    if first.kind != "command" or first.text not in _SETS:
        return []
    members, place = [first], place + 1
    while place + 1 < len(tokens) and tokens[place].kind in ("^", "_"):
        end = place + 1
        if tokens[end].kind == "{":
            while end < len(tokens) and tokens[end].kind != "}":
                end += 1
        members += tokens[place : end + 1]
        place = end + 1
    return members
