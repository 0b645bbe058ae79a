"""Formulas of Word (OMML) as MathML, which the renderer of pages writes as LaTeX.

formula = Formula(); formula.begin("f", {}); …; formula.mathml() -> "<math><mfrac>…</mfrac></math>"
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import escape

MAX_NODES = 20_000
TOKEN = re.compile(r"\d+(?:[.,]\d+)*|\s+|.", re.DOTALL)
PROPERTIES = (
    "chr",
    "begChr",
    "endChr",
    "sepChr",
    "type",
    "degHide",
    "subHide",
    "supHide",
    "sty",
    "nor",
    "pos",
    "limLoc",
)
ACCENTS = {
    "\u0302": "^",
    "\u0303": "~",
    "\u0304": "¯",
    "\u0305": "¯",
    "\u0307": "˙",
    "\u0308": "¨",
    "\u20d7": "→",
}


@dataclass
class Node:
    name: str
    properties: dict[str, str] = field(default_factory=dict)
    children: list[Node] = field(default_factory=list)
    text: str = ""

    def child(self, name: str) -> str:
        """MathML of the child of this name: one element."""
        return row("".join(mathml(child) for child in self.children if child.name == name))


class Formula:
    """Takes the elements of one <m:oMath> in their order."""

    def __init__(self) -> None:
        self.root = Node("oMath")
        self.stack = [self.root]
        self.nodes = 0

    def begin(self, name: str, attributes: dict[str, str]) -> None:
        self.nodes += 1
        node = Node(name)
        parent = self.stack[-1]
        if name in PROPERTIES:
            # <m:f><m:fPr><m:type m:val="bar"/>: a property belongs to the fraction; of a run, to the run
            owner = self.stack[-2] if parent.name.endswith("Pr") and len(self.stack) > 1 else parent
            value = next(
                (value for key, value in attributes.items() if key.endswith("}val") or key == "val"), ""
            )
            owner.properties[name] = value
        elif self.nodes <= MAX_NODES:
            parent.children.append(node)
        self.stack.append(node)

    def end(self) -> None:
        if len(self.stack) > 1:
            self.stack.pop()

    def text(self, text: str) -> None:
        self.stack[-1].text += text

    def mathml(self, *, display: bool = False) -> str:
        body = "".join(map(mathml, self.root.children))
        opening = '<math display="block">' if display else "<math>"
        return f"{opening}{body}</math>" if body else ""


def row(content: str) -> str:
    return f"<mrow>{content}</mrow>"


def operator(text: str) -> str:
    return f"<mo>{escape(text)}</mo>" if text else ""


def mathml(node: Node) -> str:
    child, properties = node.child, node.properties
    match node.name:
        case "r":
            return run(node)
        case "t":
            return tokens(node.text)
        case "f":
            if properties.get("type") == "noBar":
                return f'<mfrac linethickness="0">{child("num")}{child("den")}</mfrac>'
            if properties.get("type") == "lin":
                return row(child("num") + operator("/") + child("den"))
            return f"<mfrac>{child('num')}{child('den')}</mfrac>"
        case "sSup":
            return f"<msup>{child('e')}{child('sup')}</msup>"
        case "sSub":
            return f"<msub>{child('e')}{child('sub')}</msub>"
        case "sSubSup":
            return f"<msubsup>{child('e')}{child('sub')}{child('sup')}</msubsup>"
        case "sPre":
            return row(f"<msubsup><mrow></mrow>{child('sub')}{child('sup')}</msubsup>{child('e')}")
        case "rad":
            degree = child("deg")
            if degree == row("") or is_on(properties, "degHide"):
                return f"<msqrt>{child('e')}</msqrt>"
            return f"<mroot>{child('e')}{degree}</mroot>"
        case "nary":
            return n_ary(node)
        case "d":
            return fenced(node)
        case "m":
            rows = [
                [child for child in line.children if child.name == "e"]
                for line in node.children
                if line.name == "mr"
            ]
            return table(rows)
        case "eqArr":
            return table([[line] for line in node.children if line.name == "e"])
        case "func":
            return row(child("fName") + "<mo>&#x2061;</mo>" + child("e"))
        case "limLow":
            return f"<munder>{child('e')}{child('lim')}</munder>"
        case "limUpp":
            return f"<mover>{child('e')}{child('lim')}</mover>"
        case "acc":
            mark = properties.get("chr", "\u0302")
            return f'<mover accent="true">{child("e")}{operator(ACCENTS.get(mark, mark))}</mover>'
        case "bar":
            if properties.get("pos") == "top":
                return f'<mover accent="true">{child("e")}{operator("¯")}</mover>'
            return f"<munder>{child('e')}{operator('_')}</munder>"
        case "groupChr":
            over = properties.get("pos") == "top"
            mark = operator(properties.get("chr", "\u23df"))
            return f"<mover>{child('e')}{mark}</mover>" if over else f"<munder>{child('e')}{mark}</munder>"
    if node.name.endswith("Pr"):
        return ""
    return "".join(map(mathml, node.children))


def is_on(properties: dict[str, str], name: str) -> bool:
    return name in properties and properties[name] not in ("0", "off", "false")


def run(node: Node) -> str:
    text = "".join(child.text for child in node.children if child.name == "t")
    if is_on(node.properties, "nor"):
        return f"<mtext>{escape(text)}</mtext>" if text else ""
    if node.properties.get("sty") == "p" and text.isalpha() and len(text) > 1:
        return f"<mi>{escape(text)}</mi>"  # sin, log: one name
    return tokens(text)


def tokens(text: str) -> str:
    """tokens("2x+1") -> "<mn>2</mn><mi>x</mi><mo>+</mo><mn>1</mn>" """
    parts = []
    for token in TOKEN.findall(text):
        if token[0].isdecimal():
            parts.append(f"<mn>{token}</mn>")
        elif token.isalpha():
            parts.append(f"<mi>{token}</mi>")
        elif not token.isspace():
            parts.append(operator(token))
    return "".join(parts)


def n_ary(node: Node) -> str:
    mark = operator(node.properties.get("chr", "∫"))
    under = node.child("sub") if not is_on(node.properties, "subHide") else row("")
    over = node.child("sup") if not is_on(node.properties, "supHide") else row("")
    match (under != row(""), over != row("")):
        case (True, True):
            mark = f"<munderover>{mark}{under}{over}</munderover>"
        case (True, False):
            mark = f"<munder>{mark}{under}</munder>"
        case (False, True):
            mark = f"<mover>{mark}{over}</mover>"
    return row(mark + node.child("e"))


def fenced(node: Node) -> str:
    parts = [row("".join(map(mathml, child.children))) for child in node.children if child.name == "e"]
    opening, closing = (
        node.properties.get(key, default) for key, default in (("begChr", "("), ("endChr", ")"))
    )
    return row(
        operator(opening) + operator(node.properties.get("sepChr", "|")).join(parts) + operator(closing)
    )


def table(rows: list[list[Node]]) -> str:
    cells = ("".join(f"<mtd>{''.join(map(mathml, cell.children))}</mtd>" for cell in cells) for cells in rows)
    return f"<mtable>{''.join(f'<mtr>{line}</mtr>' for line in cells)}</mtable>"
