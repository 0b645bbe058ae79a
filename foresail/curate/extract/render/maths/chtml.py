r"""What MathJax 3 and 4 draw as HTML, to LaTeX: for pages that were saved without the source.

<mjx-math><mjx-msup><mjx-mi><mjx-c class="mjx-c1D465"></mjx-c></mjx-mi><mjx-script><mjx-mn>…   ->   x^2

The elements have MathML's names with "mjx-" before, others between them, and characters as numbers in a class.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from foresail.curate.extract.page import Page
from foresail.curate.extract.render.maths.mathml import Children, fold
from foresail.curate.extract.render.maths.parts import (
    EMPTY,
    Part,
    atom,
    fraction,
    identifier,
    operator,
    root,
    row,
    scripts,
    square_root,
    stack,
    table,
    under_and_over,
)
from foresail.curate.extract.render.maths.symbols import symbols, text_command

CHAR = re.compile(r"mjx-c([0-9A-F]{2,6})\b")
TOKENS = frozenset("mjx-mi mjx-mo mjx-mn mjx-mtext mjx-ms".split())
IGNORED = frozenset(
    "mjx-surd mjx-line mjx-nstrut mjx-dstrut mjx-tstrut mjx-spacer mjx-assistive-mml mjx-labels mjx-speech".split()
)
STRETCHED = ("mjx-stretchy-v", "mjx-stretchy-h")
FONT_LETTERS = {
    "TEX-B": "mathbf",
    "TEX-A": "mathbb",
    "TEX-C": "mathcal",
    "TEX-F": "mathfrak",
    "TEX-T": "mathtt",
}


def chtml_to_latex(page: Page, node: int) -> str:
    return fold(page, node, build)


def build(page: Page, node: int, name: str, children: Children) -> Part:
    if not name or name in IGNORED or name == "mjx-c":
        return EMPTY
    if name in TOKENS:
        return token(page, node, name)
    parts = [part for _, part in children if part.kind != "empty"]
    builder = BUILDERS.get(name)
    return builder(page, node, parts) if builder is not None else row(parts)


def token(page: Page, node: int, name: str) -> Part:
    text = drawn_text(page, node)
    if name == "mjx-mo":
        return operator(text)
    if name == "mjx-mn":
        return atom(symbols(text))
    if name in ("mjx-mtext", "mjx-ms"):
        return atom(text_command(text)) if text.strip() else operator(text)
    if not text:
        return EMPTY
    for font, command in FONT_LETTERS.items():
        if font in page.data[node] or font in page.data[node + 1]:
            return atom(f"\\{command}{{{text}}}") if text.isalnum() and text.isascii() else identifier(text)
    return identifier(text)


def drawn_text(page: Page, node: int) -> str:
    """The characters, by text or by class: of a stretched one the first piece says which it is."""
    names, data, ends = page.names, page.data, page.ends
    chars: list[str] = []
    at, last = node + 1, ends[node]
    while at < last:
        name = names[at]
        if not name:
            chars.append(data[at])
        elif name == "mjx-c" or name in STRETCHED:
            text = page.text(at).strip("\n")
            match = CHAR.search(data[at])
            if text and name == "mjx-c":
                chars.append(text)
            elif (
                match is not None
                and int(match[1], 16) < 0x110000
                and not 0xD800 <= int(match[1], 16) < 0xE000
            ):
                chars.append(chr(int(match[1], 16)))
            if text or match is not None:
                at = ends[at]
                continue
        at += 1
    return "".join(chars)


def two(parts: list[Part]) -> tuple[Part, Part]:
    first, second, *_ = *parts, EMPTY, EMPTY
    return first, second


def drawn_fraction(page: Page, node: int, parts: list[Part]) -> Part:
    above, below = two(parts)
    return stack(above, below) if 'atop="true"' in page.data[node] else fraction(above, below)


def script(page: Page, node: int, parts: list[Part]) -> Part:
    """Both scripts, the upper first, or the only one."""
    return parts[0] if len(parts) == 1 else Part(row(parts).latex, "row", True, cells=tuple(parts))


def with_both(page: Page, node: int, parts: list[Part]) -> Part:
    base, script = two(parts)
    above, below = two(list(script.cells)) if script.cells else (script, EMPTY)
    return scripts(base, below, above)


def with_upper(page: Page, node: int, parts: list[Part]) -> Part:
    base, above = two(parts)
    return scripts(base, EMPTY, above)


def with_lower(page: Page, node: int, parts: list[Part]) -> Part:
    base, below = two(parts)
    return scripts(base, below, EMPTY)


def under(page: Page, node: int, parts: list[Part]) -> Part:
    base, below = two(parts)
    return under_and_over(base, below, EMPTY)._replace(cells=(base, below))


def over(page: Page, node: int, parts: list[Part]) -> Part:
    """Drawn from above to below."""
    above, base = two(parts)
    return under_and_over(base, EMPTY, above)


def under_over(page: Page, node: int, parts: list[Part]) -> Part:
    above, middle = two(parts)
    if 'limits="false"' in page.data[node]:
        return with_both(page, node, parts)
    base, below = two(list(middle.cells)) if middle.cells else (middle, EMPTY)
    return under_and_over(base, below, above)


def drawn_root(page: Page, node: int, parts: list[Part]) -> Part:
    degree, inside = two(parts)
    return root(inside, degree) if len(parts) > 1 else square_root(degree)


def line(page: Page, node: int, parts: list[Part]) -> Part:
    return Part("", "line", cells=tuple(parts))


def cell(page: Page, node: int, parts: list[Part]) -> Part:
    part = row(parts)
    return part if part.kind != "empty" else Part("", "row")


def drawn_table(page: Page, node: int, parts: list[Part]) -> Part:
    return table([part.cells for part in parts if part.kind == "line"])


Builder = Callable[[Page, int, list[Part]], Part]
BUILDERS: dict[str, Builder] = {
    "mjx-frac": drawn_fraction,
    "mjx-script": script,
    "mjx-msup": with_upper,
    "mjx-msub": with_lower,
    "mjx-msubsup": with_both,
    "mjx-munder": under,
    "mjx-mover": over,
    "mjx-munderover": under_over,
    "mjx-sqrt": drawn_root,
    "mjx-mtr": line,
    "mjx-mlabeledtr": line,
    "mjx-mtd": cell,
    "mjx-itable": drawn_table,
}
