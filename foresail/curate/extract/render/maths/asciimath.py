r"""AsciiMath to LaTeX.

asciimath_to_latex("sum_(k=1)^n k = (n(n+1))/2")   ->   r"\sum_{k=1}^n k=\frac{n(n+1)}{2}"

The grammar: E ::= I E | I "/" I;  I ::= S | S "_" S | S "^" S | S "_" S "^" S;  S ::= symbol | bracket E bracket |
unary S | binary S S. Whatever is written gives LaTeX: a bracket without its partner is a symbol.
"""

from __future__ import annotations

import re

from foresail.curate.extract.render.maths.ascii_names import (
    ACCENTS,
    AROUND,
    BINARY,
    CLOSING,
    DIFFERENTIALS,
    FONTS,
    FUNCTIONS,
    NAMES,
    OPENING,
    SPACING,
    UNARY,
    WORDS,
    WORDS_OF_SOURCE,
)
from foresail.curate.extract.render.maths.parts import (
    EMPTY,
    Part,
    atom,
    braced,
    fenced,
    fraction,
    identifier,
    operator,
    root,
    row,
    scripts,
    square_root,
    table,
    under_and_over,
)
from foresail.curate.extract.render.maths.symbols import WITH_LIMITS, symbols, text_command, tidy

DEEPEST = 60  # brackets and functions inside one another; deeper ones are symbols
TOKEN = re.compile(
    r'\s*(?:(?P<text>"[^"]{0,999}"|(?:text|mbox)(?:\([^)]{0,300}\)|\{[^}]{0,300}\}|\[[^\]]{0,300}\]))|(?P<number>\d+(?:\.\d+)?|\.\d+)|(?P<name>'
    + "|".join(map(re.escape, sorted(WORDS_OF_SOURCE, key=len, reverse=True)))
    + r")|(?P<char>\S))"
)


def asciimath_to_latex(source: str) -> str:
    reader = Reader(source)
    parts = reader.expression()
    while reader.at < len(reader.tokens):  # a closing bracket that nothing opened
        parts.append(operator(reader.take()[1]))
        parts += reader.expression()
    return tidy(row(parts).latex)


class Reader:
    def __init__(self, source: str) -> None:
        self.tokens = [(match.lastgroup or "", match[0].strip()) for match in TOKEN.finditer(source)]
        self.at = 0
        self.depth = 0
        self.open_bars = 0

    def peek(self) -> str:
        return self.tokens[self.at][1] if self.at < len(self.tokens) else ""

    def take(self) -> tuple[str, str]:
        self.at += 1
        return self.tokens[self.at - 1]

    def expression(self) -> list[Part]:
        """Up to a closing bracket."""
        parts: list[Part] = []
        while (following := self.peek()) and following not in CLOSING:
            if following == "|" and self.open_bars and parts:
                break
            part = self.intermediate()
            if self.peek() == "/":
                self.take()
                part = fraction(inside(part), inside(self.intermediate()))
            parts.append(part)
        return parts

    def intermediate(self) -> Part:
        base = self.simple()
        below = above = EMPTY
        if self.peek() == "_":
            self.take()
            below = inside(self.signed())
        if self.peek() == "^":
            self.take()
            above = inside(self.signed())
        if base.kind == "brace" and base.latex.startswith("\\underbrace"):
            return under_and_over(base, below, above)
        return scripts(base, below, above)

    def signed(self) -> Part:
        """x^-1: the sign belongs to the exponent."""
        if self.peek() in ("-", "+") and self.at + 1 < len(self.tokens):
            sign = operator(self.take()[1])
            return row([sign, self.simple()])
        return self.simple()

    def simple(self) -> Part:
        if self.at >= len(self.tokens) or self.peek() in CLOSING:
            return EMPTY
        kind, token = self.take()
        if kind == "text":
            return quoted(token)
        if kind == "number":
            return atom(token)
        if kind == "name":
            return self.named(token)
        if token == "|":
            return self.bars()
        if token in "fg" and self.peek() == "(" and self.depth < DEEPEST:
            return row([atom(token), self.simple()])
        return atom(token) if token.isalnum() else operator(token)

    def named(self, token: str) -> Part:
        if token in OPENING:
            return self.group(token)
        if token in UNARY or token in BINARY:
            return self.called(token)
        if token in FUNCTIONS:
            return self.function(token)
        if token in DIFFERENTIALS:
            return atom(token)
        if token in SPACING:
            return Part(SPACING[token], "operator")
        if token in WORDS:
            return atom(WORDS[token])
        char = NAMES[token]
        return atom(symbols(char)) if char.isalpha() else operator(char)

    def function(self, token: str) -> Part:
        """sin x / 2 is a fraction of sin x."""
        name = identifier(token)
        if name.kind == "name":
            name = atom(f"\\operatorname{{{token}}}")
        if token in WITH_LIMITS or self.peek() in ("_", "^", "/", "", ",") or self.depth >= DEEPEST:
            return name
        self.depth += 1
        argument = self.intermediate()
        self.depth -= 1
        return row([name, argument])

    def called(self, token: str) -> Part:
        if self.depth >= DEEPEST:
            return identifier(token)
        self.depth += 1
        if token in ("color", "class", "id"):
            self.simple()
            part = inside(self.simple())
        elif token in BINARY:
            one, two = inside(self.simple()), inside(self.simple())
            part = binary(token, one, two)
        else:
            part = unary(token, self.simple())
        self.depth -= 1
        return part

    def group(self, token: str) -> Part:
        opening = OPENING[token]
        if self.depth >= DEEPEST:
            return operator(opening)
        self.depth += 1
        bars, self.open_bars = self.open_bars, 0
        parts = self.expression()
        self.depth -= 1
        self.open_bars = bars
        if self.peek() not in CLOSING or not self.peek():
            return row([operator(opening), *parts])
        return grouped(opening, CLOSING[self.take()[1]], parts)

    def bars(self) -> Part:
        """|x|; a bar without a second one is a symbol."""
        if self.depth >= DEEPEST or self.peek() == ",":
            return operator("|")
        self.depth += 1
        self.open_bars += 1
        parts = self.expression()
        self.open_bars -= 1
        self.depth -= 1
        if self.peek() != "|" or not parts:
            return row([operator("|"), *parts])
        self.take()
        return grouped("|", "|", parts)


def grouped(opening: str, closing: str, parts: list[Part]) -> Part:
    cells = split_cells(parts)
    inner = matrix(parts) or row(parts)
    part = fenced(opening, closing, inner)
    # The first cell is the whole, without brackets.
    return Part(part.latex, "row", part.high, opening, (inner, *cells))


def split_cells(parts: list[Part]) -> list[Part]:
    cells: list[list[Part]] = [[]]
    for part in parts:
        if part.raw == "," and part.kind == "operator":
            cells.append([])
        else:
            cells[-1].append(part)
    return [row(cell) for cell in cells]


def matrix(parts: list[Part]) -> Part | None:
    """[[a, b], [c, d]]: groups of equally many cells with commas between them."""
    lines = parts[::2]
    if len(lines) < 2 or any(part.raw != "," or part.kind != "operator" for part in parts[1::2]):
        return None
    opening, width = lines[0].raw, len(lines[0].cells)
    if opening not in ("(", "[") or not width:
        return None
    if any(line.raw != opening or len(line.cells) != width or line.kind != "row" for line in lines):
        return None
    rows = [line.cells[1:] for line in lines]
    bars = [all(line[column].raw == "|" for line in rows) for column in range(width - 1)]
    if not any(bars):
        return table(rows)
    alignment = "".join("|" if is_bar else "c" for is_bar in bars)
    return table(
        [[cell for cell, bar in zip(line, bars, strict=True) if not bar] for line in rows], alignment
    )


def inside(part: Part) -> Part:
    """Without its round, square or curly brackets: what stands in a fraction or a script needs none."""
    return part.cells[0] if part.cells and part.raw in ("(", "[", "{", "") and part.kind == "row" else part


def unary(token: str, argument: Part) -> Part:
    inner = inside(argument)
    if token == "sqrt":
        return square_root(inner)
    if token == "cancel":
        return atom(f"\\cancel{braced(inner)}")
    if token in AROUND:
        opening, closing = AROUND[token]
        return fenced(opening, closing, inner)
    if token in FONTS:
        return atom(f"\\{FONTS[token]}{braced(inner)}")
    mark = ACCENTS[token]
    if mark in ("⏟", "_"):
        return under_and_over(inner, operator(mark), EMPTY)
    return under_and_over(inner, EMPTY, operator(mark))


def binary(token: str, one: Part, two: Part) -> Part:
    if token == "frac":
        return fraction(one, two)
    if token == "root":
        return root(two, one)
    command = "underset" if token == "underset" else "overset"
    return atom(f"\\{command}{braced(one)}{braced(two)}")


def quoted(token: str) -> Part:
    content = token[1:-1] if token[0] == '"' else token[5:-1]
    return atom(text_command(content)) if content else EMPTY
