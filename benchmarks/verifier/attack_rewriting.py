r"""Right answers written otherwise by sympy, `(x+1)^2` as `x^{2} + 2 x + 1`: a verifier must not refuse them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import sympy
from attack_case import Case, boxed
from attack_golds import Gold
from attack_oracle import surely_differ
from attack_reading import understood

LONGEST = 300  # characters of what sympy writes
_NAMES = {"log": sympy.log, "asin": sympy.asin, "acos": sympy.acos, "atan": sympy.atan}
_RULES: dict[str, Callable[..., Any]] = {
    "+": lambda *terms: sympy.Add(*terms),
    "neg": lambda value: -value,
    "*": lambda one, other: one * other,
    "/": lambda top, bottom: top / bottom,
    "^": lambda base, exponent: base**exponent,
    "root": lambda value, index: sympy.root(value, index),
    "!": sympy.factorial,
}
_FORMS: dict[str, Callable[[Any], Any]] = {
    "expanded": sympy.expand,
    "factored": sympy.factor,
    "together": sympy.together,
    "apart": lambda value: sympy.Add(*sympy.Add.make_args(sympy.expand(value))),
    "as it is": lambda value: value,
}


def rewritten(golds: list[Gold], rng: random.Random) -> Iterator[Case]:
    """One other form of each right answer that is a formula."""
    for gold in golds:
        answer = understood(gold.text)
        if answer is None or answer.kind != "value" or "%" in gold.text or "circ" in gold.text:
            continue
        name = rng.choice(tuple(_FORMS))
        text = _write(answer.parts[0], _FORMS[name])
        if text is not None and understood(text) is not None and not surely_differ(text, gold.text):
            yield Case(f"rewritten: {name}", boxed(text), gold.text, right=True)


def _write(tree: tuple[Any, ...], change: Callable[[Any], Any]) -> str | None:
    try:
        text = sympy.latex(change(_to_sympy(tree)), ln_notation=True)
    except (AttributeError, KeyError, TypeError, ValueError, ZeroDivisionError, sympy.PolynomialError):
        return None
    return text if len(text) <= LONGEST else None


def _to_sympy(tree: tuple[Any, ...]) -> Any:
    head, *args = tree
    if head == "number":
        return sympy.Rational(args[0])
    if head == "letter":
        if len(args[0]) > 1 and not args[0].startswith("\\"):
            raise KeyError(args[0])  # an index
        return sympy.Symbol(args[0].lstrip("\\"), positive=True)
    if head in ("pi", "e", "i"):
        return {"pi": sympy.pi, "e": sympy.E, "i": sympy.I}[head]
    parts = [_to_sympy(part) for part in args]
    if head == "^" and parts[1].is_number and abs(parts[1]) > 20:
        raise ValueError("a power too large to write out")
    rule = _RULES.get(head) or _NAMES.get(head) or getattr(sympy, head)
    return rule(*parts)
