r"""A tree as LaTeX: write_node(read("3/4")[0]) -> r"\frac{3}{4}"; Unwritable for what is not written here."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from foresail.maths.notation.tree import Node

LOOSE = frozenset(["+", "neg", "pm", "mp"])  # stand in brackets inside a product or a power
BRACKETS = {"()": ("(", ")"), "[]": ("[", "]"), "(]": ("(", "]"), "[)": ("[", ")")}
SIGNS = {"=": "=", "<": "<", ">": ">", "<=": r"\le", ">=": r"\ge"}
CONSTANTS = {"pi": r"\pi", "e": "e", "i": "i", "infinity": r"\infty"}
FUNCTIONS = frozenset(["sin", "cos", "tan", "sec", "csc", "cot", "ln", "arcsin", "arccos", "arctan"])


class Unwritable(Exception):
    """Has a head that is not written here."""


def write_node(node: Node) -> str:
    if (rule := RULES.get(node.head)) is not None:
        return rule(*node.args)
    if node.head in BRACKETS:
        opening, closing = BRACKETS[node.head]
        return opening + ", ".join(map(write_node, node.args)) + closing
    if node.head in FUNCTIONS and len(node.args) == 1:
        return rf"\{node.head} {bracketed(node.args[0])}"
    raise Unwritable(node.head)


def write_number(value: Fraction, digits: int | None) -> str:
    if value.numerator.bit_length() > 400 or value.denominator.bit_length() > 400:
        raise Unwritable("a number too long to write")
    if value.denominator == 1:
        return str(value.numerator)
    for places in range(1, 40):
        scaled = value * 10**places
        if scaled.denominator == 1:
            sign, text = "-" if scaled < 0 else "", f"{abs(scaled.numerator):0{places + 1}d}"
            return f"{sign}{text[:-places]}.{text[-places:]}"
    raise Unwritable("no decimal")


def write_sum(*terms: Node) -> str:
    text = write_node(terms[0])
    for term in terms[1:]:
        text += f" - {factor(term.args[0])}" if term.head == "neg" else f" + {write_node(term)}"
    return text


def write_product(*factors: Node) -> str:
    return r" \cdot ".join(map(factor, factors))


def write_power(base: Node, exponent: Node) -> str:
    is_plain = base.head in ("symbol", "constant") or (
        base.head == "number" and base.args[0].denominator == 1
    )
    return f"{write_node(base) if is_plain else rf'({write_node(base)})'}^{{{write_node(exponent)}}}"


def factor(node: Node) -> str:
    return f"({write_node(node)})" if node.head in LOOSE else write_node(node)


def bracketed(node: Node) -> str:
    return f"({write_node(node)})"


def write_symbol(name: str) -> str:
    if len(name) != 1 or not name.isalpha():
        raise Unwritable(name)
    return name


def write_constant(name: str) -> str:
    return CONSTANTS[name]


def write_chain(*parts: Any) -> str:
    try:
        return " ".join(write_node(part) if isinstance(part, Node) else SIGNS[part] for part in parts)
    except KeyError as error:
        raise Unwritable(str(error)) from None


def write_root(value: Node, index: Node) -> str:
    return rf"\sqrt[{write_node(index)}]{{{write_node(value)}}}"


def write_matrix(*rows: Node) -> str:
    lines = r" \\ ".join(" & ".join(map(write_node, row.args)) for row in rows)
    return rf"\begin{{pmatrix}} {lines} \end{{pmatrix}}"


def write_set(*items: Node) -> str:
    return rf"\{{{', '.join(map(write_node, items))}\}}"


def write_union(*parts: Node) -> str:
    """Conditions are joined by a word: x < 1 or x > 3."""
    conditions = [part.head == "chain" for part in parts]
    if any(conditions) != all(conditions):
        raise Unwritable("a union of unlike parts")
    return (r" \text{ or } " if all(conditions) else r" \cup ").join(map(write_node, parts))


RULES: dict[str, Any] = {
    "number": write_number,
    "symbol": write_symbol,
    "constant": write_constant,
    "+": write_sum,
    "*": write_product,
    "/": lambda top, bottom: rf"\frac{{{write_node(top)}}}{{{write_node(bottom)}}}",
    "^": write_power,
    "neg": lambda value: f"-{factor(value)}",
    "!": lambda value: f"{bracketed(value)}!",
    "sqrt": lambda value: rf"\sqrt{{{write_node(value)}}}",
    "root": write_root,
    "list": lambda *items: ", ".join(map(write_node, items)),
    "braces": write_set,
    "{}": write_set,
    "chain": write_chain,
    "union": write_union,
    "deg": lambda value: rf"{write_node(value)}^\circ",
    "%": lambda value: rf"{write_node(value)}\%",
    "matrix": write_matrix,
    ":": lambda *parts: ":".join(map(write_node, parts)),
    "binom": lambda top, bottom: rf"\binom{{{write_node(top)}}}{{{write_node(bottom)}}}",
}
