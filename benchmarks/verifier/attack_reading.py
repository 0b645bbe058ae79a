r"""A small reader of answers that shares no code with the verifier: the oracle of `verifier_attack.py`.

    understood("(1, x)") -> Answer("()", (Answer("value", …), Answer("value", …)))

It knows numbers, letters, fractions, roots, powers, a few functions, brackets, lists, intervals, unions, matrices
and simple relations, and gives up on everything else.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple

_GONE = re.compile(
    r"\\(?:left|right|displaystyle|bigl?|bigr|Bigl?|Bigr|quad|qquad)(?![a-zA-Z])|\\[,;:! ]|[$~]|\\\s"
)
_ROW = "\N{PILCROW SIGN}"  # for the two backslashes that end a row
_GROUPED = re.compile(r"-?[1-9]\d{0,2}(?:(?:,|\{,\})\d{3})+")
_TOKEN = re.compile(r"\\[a-zA-Z]+|\\[{}]|\d+\.\d+|\d+|\.\d+|[a-zA-Z]|[-+*/^_(){}\[\]|!=<>,&]|\S")
_WORDS = re.compile(r"\\(?:text|textbf|mbox|mathrm)\{\s*([A-Za-z][A-Za-z '-]*)\s*\}|[A-Z]|[A-Za-z]{4,}")
_LOOSE_WORD = re.compile(
    r"(?<![\\a-zA-Z])(?:[a-z]{4,}|[A-Z][a-z]+|[A-Z]{3,}|yes|no|odd|or|and|ln)(?![a-zA-Z])|\d[eE][+-]?\d"
)  # words outside \text{…}, and 1e-5
_UNIT = re.compile(r"\s*\\(?:text|mathrm|mbox|textrm)\{\s*[A-Za-z][^{}]*\}(?:\^\{?\d\}?)?$|\^\{?\\circ\}?$")
_RELATIONS = {"<": "<", ">": ">", "\\le": "<=", "\\leq": "<=", "\\ge": ">=", "\\geq": ">="}
_FUNCTIONS = {
    name: name for name in ("sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh", "exp")
}
_FUNCTIONS |= {"ln": "log", "arcsin": "asin", "arccos": "acos", "arctan": "atan"}
_GREEK = frozenset("alpha beta gamma delta theta lambda mu nu rho sigma tau phi omega epsilon".split())


class Unread(Exception):
    """Not one of the forms this reader knows."""


class Answer(NamedTuple):
    """`kind` is value, word, list, set, a pair of brackets, union, matrix, named or equation."""

    kind: str
    parts: tuple[Any, ...]


@lru_cache(maxsize=20_000)
def understood(text: str) -> Answer | None:
    """What an answer says; None where this reader does not know."""
    try:
        text = text.replace("\\\\", _ROW)
        return _answer(_GONE.sub(" ", text).replace("\\dfrac", "\\frac").replace("\\tfrac", "\\frac").strip())
    except (Unread, RecursionError):
        return None


# Reading.


def _answer(text: str) -> Answer:
    if words := _WORDS.fullmatch(text):
        return Answer("word", ((words[1] or text).strip().lower(),))
    while bare := _UNIT.sub("", text).removeprefix("\\$").strip():
        if bare == text:
            break
        text = bare
    if _GROUPED.fullmatch(text):
        text = text.replace(",", "").replace("{", "").replace("}", "")
    if _LOOSE_WORD.search(text.replace("pmatrix", "").replace("bmatrix", "")):
        raise Unread
    tokens = _TOKEN.findall(text.removesuffix("%").removesuffix("\\"))
    if len(tokens) > 200:
        raise Unread
    return _from_tokens(tokens)


def _from_tokens(tokens: list[str]) -> Answer:
    if not tokens:
        raise Unread
    if len(items := _split(tokens, ",")) > 1:
        return Answer("list", tuple(map(_from_tokens, items)))
    if len(sides := _split(tokens, "=")) > 1:
        return _from_equation(sides)
    if any(token in _RELATIONS for token in tokens):
        return _from_inequality(tokens)
    if len(sets := _split(tokens, "\\cup")) > 1:
        return Answer("union", tuple(map(_from_tokens, sets)))
    if tokens[0] == "\\begin" and tokens.count("\\begin") == tokens.count("\\end") == 1:
        return _from_matrix(tokens)
    if tokens[0] in ("(", "[", "\\{") and _closing(tokens) == len(tokens) - 1:
        items = _split(tokens[1:-1], ",")
        if len(items) > 1 or tokens[0] == "\\{":
            kind = "set" if tokens[0] == "\\{" else tokens[0] + tokens[-1]
            return Answer(kind, tuple(map(_from_tokens, items)))
    return Answer("value", (_Values(tokens).whole(),))


def _from_equation(sides: list[list[str]]) -> Answer:
    if len(sides) != 2:
        raise Unread
    left, right = sides
    if len(left) == 1 and left[0].isalpha() and left[0] not in "ei" and left[0] not in right:
        return Answer("named", (left[0], _from_tokens(right)))
    return Answer("equation", (("+", _Values(left).whole(), ("neg", _Values(right).whole())),))


def _from_inequality(tokens: list[str]) -> Answer:
    """`1 < x \\le 3` as the interval from 1 to 3; nothing but a bare letter may be bounded."""
    sides: list[list[str]] = [[]]
    signs: list[str] = []
    for token in tokens:
        if token in _RELATIONS:
            signs.append(_RELATIONS[token])
            sides.append([])
        else:
            sides[-1].append(token)
    if signs[0][0] == ">":
        sides.reverse()
        signs = [sign.replace(">", "<") for sign in reversed(signs)]
    places = [place for place, side in enumerate(sides) if len(side) == 1 and side[0].isalpha()]
    if len(places) != 1 or len(sides) > 3 or any(sign[0] != "<" for sign in signs):
        raise Unread
    place = places[0]
    low = _from_tokens(sides[place - 1]) if place else Answer("value", (("-infinity",),))
    high = _from_tokens(sides[place + 1]) if place + 1 < len(sides) else Answer("value", (("infinity",),))
    opening = "[" if place and signs[place - 1] == "<=" else "("
    closing = "]" if place < len(signs) and signs[place] == "<=" else ")"
    return Answer("named", (sides[place][0], Answer(opening + closing, (low, high))))


def _from_matrix(tokens: list[str]) -> Answer:
    if "".join(tokens[2 : tokens.index("}")]) not in ("pmatrix", "bmatrix"):
        raise Unread
    body = tokens[tokens.index("}") + 1 : tokens.index("\\end")]
    rows = [tuple(map(_from_tokens, _split(row, "&"))) for row in _split(body, _ROW)]
    return Answer("matrix", tuple(Answer("row", row) for row in rows))


def _split(tokens: list[str], sign: str) -> list[list[str]]:
    pieces: list[list[str]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token in ("(", "[", "{", "\\{")) - (token in (")", "]", "}", "\\}"))
        if token == sign and depth == 0:
            pieces.append([])
        else:
            pieces[-1].append(token)
    return pieces


def _closing(tokens: list[str]) -> int:
    depth = 0
    for place, token in enumerate(tokens):
        depth += (token in ("(", "[", "{", "\\{")) - (token in (")", "]", "}", "\\}"))
        if depth == 0:
            return place
    return -1


class _Values:
    """Recursive descent over the tokens of one formula."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens, self.place = tokens, 0

    def whole(self) -> tuple[Any, ...]:
        tree = self.sum()
        if self.place != len(self.tokens):
            raise Unread
        return tree

    def peek(self) -> str:
        return self.tokens[self.place] if self.place < len(self.tokens) else ""

    def take(self, *expected: str) -> str:
        token = self.peek()
        if not token or (expected and token not in expected):
            raise Unread
        self.place += 1
        return token

    def sum(self) -> tuple[Any, ...]:
        terms: list[Any] = []
        while not terms or self.peek() in ("+", "-"):
            negative = self.peek() in ("+", "-") and self.take() == "-"
            term = self.product()
            terms.append(("neg", term) if negative else term)
        return terms[0] if len(terms) == 1 else ("+", *terms)

    def product(self) -> tuple[Any, ...]:
        tree = self.power()
        while True:
            token = self.peek()
            if token in ("*", "\\cdot", "\\times"):
                self.take()
                tree = ("*", tree, self.power())
            elif token == "/":
                self.take()
                tree = ("/", tree, self.power())
                if self.starts():  # 1/2x
                    raise Unread
            elif self.starts():
                if (tree[0] == "number" and token[0] in ".0123456789") or (
                    token == "\\frac" and tree[0] == "number"
                ):
                    raise Unread  # a mixed fraction, perhaps
                tree = ("*", tree, self.power())
            else:
                return tree

    def starts(self) -> bool:
        token = self.peek()
        if token.startswith("\\"):
            return token[1:] in _FUNCTIONS or token[1:] in _GREEK or token in ("\\frac", "\\sqrt", "\\pi")
        return bool(token) and (token.isalnum() or token in "({.")

    def power(self) -> tuple[Any, ...]:
        tree = self.atom()
        if self.peek() == "^":
            self.take()
            tree = ("^", tree, self.script())
        if self.peek() == "!":
            self.take()
            tree = ("!", tree)
        if self.peek() in ("^", "!"):  # two exponents, two bangs
            raise Unread
        return tree

    def script(self) -> tuple[Any, ...]:
        if self.peek() == "{":
            return self.group("{", "}")
        token = self.take()
        if len(token) != 1 or not token.isalnum():
            raise Unread
        return ("number", token) if token.isdigit() else ("letter", token)

    def group(self, opening: str, closing: str) -> tuple[Any, ...]:
        self.take(opening)
        tree = self.sum()
        self.take(closing)
        return tree

    def atom(self) -> tuple[Any, ...]:
        token = self.peek()
        if token in ("(", "{"):
            return self.group(token, ")" if token == "(" else "}")
        if token == "|":
            return ("abs", self.group("|", "|"))
        self.take()
        if token[0].isdigit() or token[0] == ".":
            return ("number", token)
        if token == "\\frac":
            return ("/", self.script(), self.script())
        if token == "\\sqrt":
            index = self.group("[", "]") if self.peek() == "[" else ("number", "2")
            return ("root", self.script(), index)
        if token in ("\\pi", "e", "i", "\\infty"):
            return (token.lstrip("\\").replace("infty", "infinity"),)
        if token[1:] in _FUNCTIONS:
            return self.function(_FUNCTIONS[token[1:]])
        if token.isalpha() or token[1:] in _GREEK:
            return self.letter(token)
        raise Unread

    def letter(self, name: str) -> tuple[Any, ...]:
        if (name in "fgh" or name.isupper()) and self.peek() == "(":  # f(2), W(2)
            raise Unread
        if self.peek() == "_":
            if name in "CcKk":  # constants of integration, which may be called otherwise
                raise Unread
            self.take()
            name += "_" + str(self.script())
        if self.peek() == "'":
            raise Unread
        return ("letter", name)

    def function(self, name: str) -> tuple[Any, ...]:
        power = None
        if self.peek() == "^":
            self.take()
            power = self.script()
            if power[0] == "neg":
                raise Unread
        argument = self.group("(", ")") if self.peek() == "(" else self.loose()
        tree = (name, argument)
        return tree if power is None else ("^", tree, power)

    def loose(self) -> tuple[Any, ...]:
        r"""`\sin x`, `\ln 2`: one factor, and nothing that could belong to it behind."""
        tree = self.power()
        if self.starts():
            raise Unread
        return tree
