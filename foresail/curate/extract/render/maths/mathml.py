r"""MathML, as it is displayed, to LaTeX.

<math><msup><mi>x</mi><mn>2</mn></msup><mo>+</mo><mfrac><mn>1</mn><mi>y</mi></mfrac></math>   ->   x^2+\frac{1}{y}

The nodes are read from the last to the first, so that a node's children are LaTeX already when it is its turn: no
recursion. Elements nested deeper than any formula is are read as their text.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from foresail.curate.extract.page import Page
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
    stack,
    table,
    under_and_over,
)
from foresail.curate.extract.render.maths.symbols import symbols, text_command, tidy

DEEPEST = 400
TOKENS = frozenset("mi mn mo mtext ms".split())
IGNORED = frozenset("annotation annotation-xml mprescripts none malignmark maligngroup mglyph".split())
FONTS = {
    "bold": "mathbf",
    "double-struck": "mathbb",
    "bold-italic": "boldsymbol",
    "script": "mathcal",
    "bold-script": "mathcal",
    "fraktur": "mathfrak",
    "bold-fraktur": "mathfrak",
    "sans-serif": "mathsf",
    "monospace": "mathtt",
    "-tex-calligraphic": "mathcal",
    "-tex-mathit": "mathit",
}
LENGTH = re.compile(r"(-?[\d.]+)\s*(em|ex|px|pt|mu)?")
EM = {"em": 1.0, "ex": 0.43, "px": 1 / 16, "pt": 1 / 10, "mu": 1 / 18}
NAMED_LENGTHS = {
    "thinmathspace": 0.17,
    "mediummathspace": 0.22,
    "thickmathspace": 0.28,
    "veryverythickmathspace": 0.39,
}
SPACES = ((1.8, "\\qquad "), (0.9, "\\quad "), (0.4, "\\enspace "), (0.26, "\\;"), (0.2, "\\:"), (0.1, "\\,"))
ENCLOSURES = {
    "box": "boxed",
    "roundedbox": "boxed",
    "updiagonalstrike": "cancel",
    "downdiagonalstrike": "bcancel",
    "top": "overline",
    "bottom": "underline",
    "actuarial": "overline",
    "radical": "sqrt",
}
Children = list[tuple[str, Part]]
BuildByName = Callable[[Page, int, str, Children], Part]
Build = Callable[[Page, int, Children], Part]


def mathml_to_latex(page: Page, node: int) -> str:
    return fold(page, node, build)


def fold(page: Page, node: int, build: BuildByName) -> str:
    """LaTeX of a tree whose nodes `build` makes of their children."""
    names, ends, parents = page.names, page.ends, page.parents
    last = ends[node]
    depths = {parents[node]: 0}
    for at in range(node, last):
        depths[at] = depths[parents[at]] + 1
    if max(depths.values()) > DEEPEST:
        return tidy(symbols(" ".join(page.text(node).split())))
    waiting: dict[int, Children] = {}
    part = EMPTY
    for at in range(last - 1, node - 1, -1):
        name = names[at].rpartition(":")[2]
        children = waiting.pop(at, [])
        children.reverse()
        part = build(page, at, name, children)
        waiting.setdefault(parents[at], []).append((name, part))
    return tidy(part.latex)


def build(page: Page, node: int, name: str, children: Children) -> Part:
    if not name:
        return text(page.data[node])
    if name in TOKENS:
        return token(page, node, name)
    if name in IGNORED:
        return EMPTY
    return BUILDERS.get(name, inferred_row)(page, node, children)


def text(data: str) -> Part:
    """Text that no token holds."""
    data = " ".join(data.split())
    return identifier(data) if data.isalpha() else Part(symbols(data), "row") if data else EMPTY


def token(page: Page, node: int, name: str) -> Part:
    content = page.text(node)
    if name == "mtext" or name == "ms":
        return text_token(content)
    content = " ".join(content.split()) if content.strip() else content.strip(" \t\n")
    if name == "mo":
        return operator(content)
    if name == "mn":
        return atom(symbols(content.replace(" ", "")))
    variant = page.attribute(node, "mathvariant") if page.data[node] else ""
    return in_font(identifier(content), variant, content)


def text_token(content: str) -> Part:
    if not content:
        return EMPTY
    if not content.strip():
        return Part("\\ " if len(content) < 3 else "\\quad ", "operator")
    if len(content.strip()) == 1 and not content.strip().isalpha():
        return operator(content.strip())
    return atom(text_command(content))


def in_font(part: Part, variant: str, content: str) -> Part:
    if variant in FONTS and part.kind != "empty":
        inner = content if part.kind == "name" else part.latex.strip()
        return atom(f"\\{FONTS[variant]}{{{inner}}}")
    if variant == "normal" and len(content) == 1 and content.isascii() and content.isalpha():
        return Part(f"\\mathrm{{{content}}}", "name", raw=content)
    if variant == "italic" and part.kind == "name":
        return atom(f"\\mathit{{{content}}}")
    return part


def parts_of(children: Children) -> list[Part]:
    return [part for _, part in children]


def arguments(children: Children, count: int) -> list[Part]:
    """The first `count` children that are elements; what is missing is empty, what is too many joins the last."""
    parts = [part for name, part in children if name]
    if len(parts) > count:
        parts = [*parts[: count - 1], row(parts[count - 1 :])]
    return parts + [EMPTY] * (count - len(parts))


def inferred_row(page: Page, node: int, children: Children) -> Part:
    return row(parts_of(children))


def first(page: Page, node: int, children: Children) -> Part:
    return next((part for name, part in children if name), EMPTY)


def fraction_element(page: Page, node: int, children: Children) -> Part:
    above, below = arguments(children, 2)
    attributes = page.data[node]
    if "linethickness" in attributes and ems(page.attribute(node, "linethickness")) == 0:
        return stack(above, below)
    if 'bevelled="true"' in attributes:
        return row([above, operator("/"), below])
    return fraction(above, below)


def fenced_element(page: Page, node: int, children: Children) -> Part:
    values = page.attributes(node)
    separators = "".join(values.get("separators", ",").split())
    inner: list[Part] = []
    for number, part in enumerate(part for name, part in children if name):
        if number and separators:
            inner.append(operator(separators[min(number, len(separators)) - 1]))
        inner.append(part)
    return fenced(values.get("open", "(").strip(), values.get("close", ")").strip(), row(inner))


def line_element(page: Page, node: int, children: Children) -> Part:
    cells = tuple(part for name, part in children if name)
    return Part("", "line", cells=cells) if cells else EMPTY


def labeled_line(page: Page, node: int, children: Children) -> Part:
    """Its first cell is the number of the equation."""
    label, *cells = (part for name, part in children if name) if children else (EMPTY,)
    number = label.latex.strip().removeprefix("\\text{").removesuffix("}").strip("() ")
    if number and cells:
        cells[-1] = Part(f"{cells[-1].latex.strip()} \\tag{{{number}}}", "row", cells[-1].high)
    return Part("", "line", cells=tuple(cells)) if cells else EMPTY


def table_element(page: Page, node: int, children: Children) -> Part:
    rows = [part.cells or (part,) for name, part in children if name and part.kind != "empty"]
    values = page.attributes(node) if page.data[node] else {}
    sides = [side[:1] for side in values.get("columnalign", "").split()]
    lines = values.get("columnlines", "").split()
    width = max(map(len, rows), default=0)
    if any(line in ("solid", "dashed") for line in lines) and width < 50:
        lines += lines[-1:] * width
        sides += (sides[-1:] or ["c"]) * width
        bars = ["|" if line in ("solid", "dashed") else "" for line in lines]
        bars[width - 1 :] = [""]
        return table(rows, "".join(side + bar for side, bar in zip(sides[:width], bars, strict=False)))
    return table(rows, "".join(sides))


def multiscripts(page: Page, node: int, children: Children) -> Part:
    """The base, pairs of scripts behind it, <mprescripts/>, and pairs before it."""
    items = [(name, part) for name, part in children if name]
    if not items:
        return EMPTY
    before = next((at for at, (name, _) in enumerate(items) if name.endswith("prescripts")), len(items))
    part = items[0][1]
    for below, above in pairs(items[1:before]):
        part = scripts(part, below, above)
    for below, above in pairs(items[before + 1 :]):
        part = row([scripts(Part("{}", "atom"), below, above), part])
    return part


def pairs(items: Children) -> list[tuple[Part, Part]]:
    parts = [part for _, part in items] + [EMPTY]
    return [(parts[at], parts[at + 1]) for at in range(0, len(items), 2)]


def enclosure(page: Page, node: int, children: Children) -> Part:
    part = row(parts_of(children))
    notations = page.attribute(node, "notation").split() or ["radical"]
    if "updiagonalstrike" in notations and "downdiagonalstrike" in notations:
        return Part(f"\\xcancel{braced(part)}", "atom", part.high)
    for notation in notations:
        if notation in ENCLOSURES:
            part = Part(f"\\{ENCLOSURES[notation]}{braced(part)}", "atom", part.high)
    return part


def space(page: Page, node: int, children: Children) -> Part:
    """Content belongs to what follows: an unclosed tag of an unknown parser swallowed it."""
    inner = row(parts_of(children))
    if 'linebreak="newline"' in page.data[node]:
        return row([Part("\\\\\n", "operator"), inner])
    width = ems(page.attribute(node, "width")) if page.data[node] else 0.0
    if width is None or width == 0:
        return inner
    if width < 0:
        return row([Part("\\!", "operator"), inner])
    latex = next((latex for least, latex in SPACES if width >= least), "")
    return row([Part(latex, "operator" if latex else "empty"), inner])


def ems(length: str) -> float | None:
    """ems("0.5em") -> .5; None where it is no length."""
    if length in NAMED_LENGTHS:
        return NAMED_LENGTHS[length]
    match = LENGTH.match(length)
    if match is None:
        return None
    try:
        return float(match[1]) * EM[match[2] or "em"]
    except ValueError:
        return None


def phantom(page: Page, node: int, children: Children) -> Part:
    part = row(parts_of(children))
    return Part(f"\\phantom{braced(part)}", "atom", part.high) if part.kind != "empty" else EMPTY


def subscript(base: Part, below: Part) -> Part:
    return scripts(base, below, EMPTY)


def under(base: Part, below: Part) -> Part:
    return under_and_over(base, below, EMPTY)


def superscript(base: Part, above: Part) -> Part:
    return scripts(base, EMPTY, above)


def over(base: Part, above: Part) -> Part:
    return under_and_over(base, EMPTY, above)


BUILDERS: dict[str, Build] = {
    "mfrac": fraction_element,
    "msqrt": lambda page, node, children: square_root(row(parts_of(children))),
    "mroot": lambda page, node, children: root(*arguments(children, 2)),
    "msub": lambda page, node, children: subscript(*arguments(children, 2)),
    "msup": lambda page, node, children: superscript(*arguments(children, 2)),
    "msubsup": lambda page, node, children: scripts(*arguments(children, 3)),
    "munder": lambda page, node, children: under(*arguments(children, 2)),
    "mover": lambda page, node, children: over(*arguments(children, 2)),
    "munderover": lambda page, node, children: under_and_over(*arguments(children, 3)),
    "mmultiscripts": multiscripts,
    "mfenced": fenced_element,
    "mtable": table_element,
    "mtr": line_element,
    "mlabeledtr": labeled_line,
    "menclose": enclosure,
    "mspace": space,
    "mphantom": phantom,
    "semantics": first,
    "maction": first,
}
