"""The worker behind `last_resort`: trees in; `same`, `different` or `unknown` out. Runs in its own process."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

MEMORY = 4 << 30


def serve() -> None:
    """One question a line until the pipe closes. Whatever goes wrong, the answer is `unknown`."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for line in sys.stdin:
        try:
            answer = compare(*json.loads(line))
        except Exception:
            answer = "unknown"
        sys.stdout.write(answer + "\n")
        sys.stdout.flush()


def compare(given: Any, gold: Any) -> str:
    """By what is left when one is taken from the other; an integral that sympy leaves standing decides nothing."""
    import sympy

    difference = sympy.simplify(to_sympy(given).doit() - to_sympy(gold).doit())
    if difference == 0:
        return "same"
    return "unknown" if difference.has(sympy.Integral, sympy.Sum, sympy.Product, sympy.Limit) else "different"


def to_sympy(tree: Any) -> Any:
    """A JSON tree as a sympy expression, node by node; a head without a rule is an error."""
    import sympy

    head, *args = tree
    if head == "number":
        return sympy.Rational(*(int(digits, 16) for digits in args[0]))
    if head == "symbol":
        return sympy.Symbol(args[0])
    if head == "constant":
        return {"pi": sympy.pi, "e": sympy.E, "i": sympy.I, "infinity": sympy.oo}[args[0]]
    if head == "opaque":
        return _opaque(*args)
    if head == "apply":
        return sympy.Function(args[0])(*map(to_sympy, args[1:]))
    return _RULES[head](sympy, *map(to_sympy, args))


def _opaque(name: str, body: Any, *bounds: Any) -> Any:
    import sympy

    if name == "int":
        return _integral(body, bounds)
    (chain, *rest) = bounds
    variable, start = to_sympy(chain[1]), to_sympy(chain[3])
    if name == "lim":
        return sympy.Limit(to_sympy(body), variable, start)
    kind = {"sum": sympy.Sum, "prod": sympy.Product}[name]
    return kind(to_sympy(body), (variable, start, to_sympy(rest[0])))


def _integral(body: Any, bounds: tuple[Any, ...]) -> Any:
    r"""The factors of `x^2\,dx` end on the letters d and x."""
    import sympy

    *factors, letter, variable = body[1:]
    if letter != ["symbol", "d"]:
        raise ValueError("an integral without its variable")
    integrand = sympy.Mul(*map(to_sympy, factors))
    limits = [to_sympy(bound) for bound in bounds]
    return sympy.Integral(integrand, (to_sympy(variable), *limits) if limits else to_sympy(variable))


def _named(name: str) -> Callable[..., Any]:
    return lambda sympy, value: getattr(sympy, name)(value)


_RULES: dict[str, Callable[..., Any]] = {
    "+": lambda sympy, *terms: sympy.Add(*terms),
    "*": lambda sympy, *factors: sympy.Mul(*factors),
    "/": lambda sympy, top, bottom: top / bottom,
    "^": lambda sympy, base, exponent: base**exponent,
    "neg": lambda sympy, value: -value,
    "sqrt": lambda sympy, value: sympy.sqrt(value),
    "root": lambda sympy, value, index: sympy.root(value, index),
    "!": lambda sympy, value: sympy.factorial(value),
    "binom": lambda sympy, n, k: sympy.binomial(n, k),
    "abs": lambda sympy, value: sympy.Abs(value),
    "ln": lambda sympy, value: sympy.log(value),
    "log": lambda sympy, value, *base: sympy.log(value, *base),
    "exp": lambda sympy, value: sympy.exp(value),
    "floor": lambda sympy, value: sympy.floor(value),
    "ceil": lambda sympy, value: sympy.ceiling(value),
}
_RULES |= {name: _named(name) for name in "sin cos tan cot sec csc sinh cosh tanh".split()}
_RULES |= {f"arc{name}": _named(f"a{name}") for name in "sin cos tan cot sinh cosh tanh".split()}
HEADS = _RULES.keys() | {"number", "symbol", "constant", "opaque", "apply"}
