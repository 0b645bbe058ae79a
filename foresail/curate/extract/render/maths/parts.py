r"""Parts of a formula, and how they are put together as LaTeX: what MathML and AsciiMath have in common.

row([ATOM("x"), operator("+"), fraction(ATOM("1"), ATOM("2"))]).latex   ->   x+\frac{1}{2}

Brackets around something high grow (\left, \right); brackets around a table make it a matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from foresail.curate.extract.render.maths.symbols import (
    BIG,
    FUNCTIONS,
    WITH_LIMITS,
    symbol,
    symbols,
)

OPENING = {
    "(": "(",
    "[": "[",
    "{": "\\{",
    "⟨": "\\langle ",
    "\u2329": "\\langle ",
    "⌈": "\\lceil ",
    "⌊": "\\lfloor ",
}
CLOSING = {
    ")": ")",
    "]": "]",
    "}": "\\}",
    "⟩": "\\rangle ",
    "\u232a": "\\rangle ",
    "⌉": "\\rceil ",
    "⌋": "\\rfloor ",
}
BARS = {"|": "|", "∣": "|", "‖": "\\|", "∥": "\\|"}
MATRICES = {
    "()": "pmatrix",
    "[]": "bmatrix",
    "||": "vmatrix",
    "∣∣": "vmatrix",
    "‖‖": "Vmatrix",
    "{}": "Bmatrix",
}
APPLY = "\u2061"
ACCENTS = {
    "^": ("hat", "widehat"),
    "\u0302": ("hat", "widehat"),
    "ˆ": ("hat", "widehat"),
    "~": ("tilde", "widetilde"),
    "∼": ("tilde", "widetilde"),
    "˜": ("tilde", "widetilde"),
    "\u0303": ("tilde", "widetilde"),
    "¯": ("bar", "overline"),
    "‾": ("bar", "overline"),
    "ˉ": ("bar", "overline"),
    "\u0304": ("bar", "overline"),
    "\u0305": ("bar", "overline"),
    "―": ("overline", "overline"),
    "_": ("bar", "overline"),
    "−": ("bar", "overline"),
    "→": ("vec", "overrightarrow"),
    "⃗": ("vec", "overrightarrow"),
    "⇀": ("vec", "overrightarrow"),
    "⟶": ("vec", "overrightarrow"),
    "←": ("overleftarrow", "overleftarrow"),
    "↔": ("overleftrightarrow", "overleftrightarrow"),
    "˙": ("dot", "dot"),
    ".": ("dot", "dot"),
    "\u0307": ("dot", "dot"),
    "¨": ("ddot", "ddot"),
    "\u0308": ("ddot", "ddot"),
    "⃛": ("dddot", "dddot"),
    "ˇ": ("check", "check"),
    "\u030c": ("check", "check"),
    "˘": ("breve", "breve"),
    "\u0306": ("breve", "breve"),
    "´": ("acute", "acute"),
    "`": ("grave", "grave"),
    "˚": ("mathring", "mathring"),
    "⏞": ("overbrace", "overbrace"),
    "︷": ("overbrace", "overbrace"),
    "⏜": ("overparen", "overparen"),
}
BELOW = {
    "⏟": "underbrace",
    "︸": "underbrace",
    "_": "underline",
    "¯": "underline",
    "‾": "underline",
    "̲": "underline",
    "̱": "underline",
    "―": "underline",
    "→": "underrightarrow",
    "←": "underleftarrow",
}
ARROWS = {"→": "xrightarrow", "⟶": "xrightarrow", "←": "xleftarrow", "⟵": "xleftarrow", "⇒": "xRightarrow"}
PRIMES = {"′": "'", "'": "'", "’": "'", "″": "''", "‴": "'''", "⁗": "''''"}


class Part(NamedTuple):
    r"""`kind`: atom (one token), row, scripts, operator, name (letters set upright), big (∑, lim), brace (of
    \overbrace), table, stack (two lines without a bar), empty. `high`: brackets around it grow."""

    latex: str
    kind: str = "row"
    high: bool = False
    raw: str = ""
    cells: tuple[
        Part, ...
    ] = ()  # of a table's line, of a group in AsciiMath, of what stands one above another


EMPTY = Part("", "empty")


def atom(latex: str) -> Part:
    return Part(latex, "atom" if latex else "empty")


def identifier(text: str) -> Part:
    if len(text) < 2:
        return atom(symbols(text))
    if text in FUNCTIONS:
        return Part(f"\\{text} ", "big" if text in WITH_LIMITS else "atom", raw=text)
    if text.isalpha() and text.isascii():
        return Part(f"\\mathrm{{{text}}}", "name", raw=text)
    return atom(f"\\text{{{text}}}" if text.isalpha() and not text.isascii() else symbols(text))


def operator(text: str) -> Part:
    if text in BIG:
        return Part(symbol(text), "big", True, text)
    if len(text) > 1 and text.isalpha() and text.isascii():
        return identifier(text)._replace(raw="")
    latex = symbols(text)
    return Part(latex, "operator" if latex or text == APPLY else "empty", raw=text)


def row(parts: Sequence[Part]) -> Part:
    parts = [part for part in parts if part.kind != "empty"]
    if not parts:
        return EMPTY
    if len(parts) == 1:
        return parts[0]
    pieces = [part.latex for part in parts]
    for at, (part, following) in enumerate(pairwise(parts)):
        if part.kind == "scripts" and pieces[at][-1:].isdigit() and following.latex[:1].isdigit():
            pieces[at] += " "
    high = [part.high for part in parts]
    for at, part in enumerate(parts):
        if part.kind == "name" and at + 1 < len(parts) and parts[at + 1].raw == APPLY:
            pieces[at] = f"\\operatorname{{{part.raw}}}"
    grow_brackets(parts, pieces, high)
    latex = "".join(pieces)
    return Part(latex, "row", any(high)) if latex else EMPTY


def grow_brackets(parts: Sequence[Part], pieces: list[str], high: list[bool]) -> None:
    """Changes the pieces of brackets that belong together."""
    highs = [0]
    for part in parts:
        highs.append(highs[-1] + part.high)
    open_at: list[int] = []
    last = len(parts) - 1
    for at, part in enumerate(parts):
        if part.kind != "operator":
            continue
        if part.raw in BARS:
            if open_at and parts[open_at[-1]].raw == part.raw and open_at[-1] != at - 1:
                start = open_at.pop()
            elif at == 0 or parts[at - 1].kind == "operator" or parts[at - 1].raw == APPLY:
                open_at.append(at)
                continue
            else:
                continue
        elif part.raw in OPENING:
            open_at.append(at)
            continue
        elif part.raw in CLOSING and open_at:
            while open_at and parts[open_at[-1]].raw in BARS and len(open_at) > 1:
                open_at.pop()
            start = open_at.pop()
        else:
            continue
        if highs[at] - highs[start]:
            close_brackets(parts, pieces, start, at)
    if open_at and open_at[-1] == last - 1 and parts[last].kind == "table" and parts[open_at[-1]].raw == "{":
        pieces[open_at[-1]] = ""
        pieces[last] = as_environment(pieces[last], "cases")


def close_brackets(parts: Sequence[Part], pieces: list[str], start: int, end: int) -> None:
    opening, closing = parts[start].raw, parts[end].raw
    if end == start + 2:
        inner = parts[start + 1]
        name = MATRICES.get(opening + closing)
        if inner.kind == "table" and name is not None and is_plain_table(inner.latex):
            pieces[start], pieces[end] = "", ""
            pieces[start + 1] = as_environment(inner.latex, name)
            return
        if inner.kind == "stack" and opening + closing == "()":
            pieces[start], pieces[end] = "", ""
            pieces[start + 1] = f"\\binom{inner.raw}"
            return
    pieces[start] = f"\\left{bracket(opening)}"
    pieces[end] = f"\\right{bracket(closing)}"


def bracket(char: str) -> str:
    return OPENING.get(char) or CLOSING.get(char) or BARS.get(char) or (symbol(char) if char else ".")


def fenced(opening: str, closing: str, inner: Part) -> Part:
    """Brackets that the source names itself; an empty one is invisible."""
    if not opening and not closing:
        return inner
    if opening and closing:
        return row(
            [
                Part(bracket(opening), "operator", raw=opening),
                inner,
                Part(bracket(closing), "operator", raw=closing),
            ]
        )
    if opening == "{" and inner.kind == "table":
        return Part(as_environment(inner.latex, "cases"), "row", True)
    return Part(f"\\left{bracket(opening)}{inner.latex}\\right{bracket(closing)}", "row", inner.high)


def braced(part: Part) -> str:
    return f"{{{part.latex.strip()}}}"


def fraction(above: Part, below: Part) -> Part:
    return Part(f"\\frac{braced(above)}{braced(below)}", "atom", True)


def stack(above: Part, below: Part) -> Part:
    r"""Two lines without a bar; in round brackets a binomial."""
    return Part(f"{{{above.latex}\\atop {below.latex}}}", "stack", True, braced(above) + braced(below))


def square_root(inside: Part) -> Part:
    return Part(f"\\sqrt{braced(inside)}", "atom", inside.high)


def root(inside: Part, degree: Part) -> Part:
    shown = degree.latex.strip()
    shown = f"{{{shown}}}" if "]" in shown else shown
    return Part(f"\\sqrt[{shown}]{braced(inside)}", "atom", inside.high)


def scripts(base: Part, below: Part, above: Part) -> Part:
    if below.kind == above.kind == "empty":
        return base
    latex = script_base(base)
    if below.kind != "empty":
        latex += f"_{script(below)}"
    if above.kind != "empty":
        prime = prime_of(above)
        latex += prime if prime else f"^{script(above)}"
    if base.kind == "big" and latex[-1] != "}":
        latex += " "
    high = base.high or above.high or below.high
    return Part(latex, "scripts", high, base.raw if base.kind == "big" else "")


def script_base(base: Part) -> str:
    latex = base.latex.rstrip() if base.latex[-2:] != "\\ " else base.latex
    if base.kind == "empty":
        return "{}"
    if base.kind in ("atom", "operator", "big", "name", "brace", "table"):
        return latex
    closes = latex.endswith((")", "]", "|", "\\}", "matrix}")) and latex.startswith(
        ("(", "[", "|", "\\{", "\\left", "\\begin")
    )
    return latex if closes and base.kind == "row" else f"{{{latex}}}"


def script(part: Part) -> str:
    latex = part.latex.strip()
    return latex if len(latex) == 1 and latex not in "'^_" else f"{{{latex}}}"


def prime_of(part: Part) -> str:
    if part.raw:
        return PRIMES.get(part.raw, "")
    latex = part.latex.replace("\\prime ", "'")
    return latex if latex and not latex.strip("'") else ""


def under_and_over(base: Part, below: Part, above: Part) -> Part:
    if above.kind == "operator" and above.raw in ACCENTS and base.kind != "big":
        return under_and_over(accented(base, above.raw), below, EMPTY)
    if below.kind == "operator" and below.raw in BELOW and base.kind != "big":
        name = BELOW[below.raw]
        kind = "brace" if name == "underbrace" else "atom"
        return under_and_over(Part(f"\\{name}{braced(base)}", kind, base.high), EMPTY, above)
    if below.kind == above.kind == "empty":
        return base
    if base.kind in ("big", "brace", "scripts") and (base.kind != "scripts" or base.raw):
        return scripts(base, below, above)
    if base.kind == "operator" and base.raw in ARROWS:
        low = f"[{below.latex.strip()}]" if below.kind != "empty" else ""
        return Part(f"\\{ARROWS[base.raw]}{low}{braced(above)}", "operator")
    latex = base.latex.strip()
    if above.kind != "empty":
        latex = f"\\overset{braced(above)}{{{latex}}}"
    if below.kind != "empty":
        latex = f"\\underset{braced(below)}{{{latex}}}"
    return Part(latex, "atom", True)


def accented(base: Part, mark: str) -> Part:
    narrow, wide = ACCENTS[mark]
    is_wide = base.kind not in ("atom", "operator", "empty") or base.latex.count("{") > 1
    name = wide if is_wide else narrow
    return Part(f"\\{name}{braced(base)}", "brace" if name == "overbrace" else "atom", base.high)


def table(rows: Sequence[Sequence[Part]], alignment: str = "") -> Part:
    r"""A table without brackets: aligned where its columns are right, left, right, …"""
    width = max(map(len, rows), default=0)
    if width == 0:
        return EMPTY
    lines = "\\\\\n".join(" & ".join(cell.latex.strip() for cell in line) for line in rows)
    if width == len(rows) == 1:
        return rows[0][0]
    if "|" in alignment:
        return Part(f"\\begin{{array}}{{{alignment}}}\n{lines}\n\\end{{array}}", "table", True)
    name = "aligned" if alignment.startswith("rl") else "matrix"
    return Part(f"\\begin{{{name}}}\n{lines}\n\\end{{{name}}}", "table", True)


def is_plain_table(latex: str) -> bool:
    return latex.startswith(("\\begin{matrix}", "\\begin{aligned}"))


def as_environment(latex: str, name: str) -> str:
    for old in ("matrix", "aligned"):
        opening, closing = f"\\begin{{{old}}}", f"\\end{{{old}}}"
        if latex.startswith(opening):
            return f"\\begin{{{name}}}{latex[len(opening) : -len(closing)]}\\end{{{name}}}"
    return latex
