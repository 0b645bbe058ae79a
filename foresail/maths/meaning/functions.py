r"""What each function of the notation means on mpmath numbers, and about how long it takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

MAX_EXPONENT = 10**9  # of a power; what lies beyond is no number here
MAX_ARGUMENT = 10**7  # of exp, trigonometric functions and factorials


class NoValue(Exception):
    """There is no number: a pole, an unknown function."""


class BeyondLimits(NoValue):
    """A number may exist, but too large or too small to evaluate; `hopeless`: at any precision."""

    def __init__(self, why: str, *, hopeless: bool = False) -> None:
        super().__init__(why)
        self.hopeless = hopeless


def constant(name: str, ctx: Any) -> Any:
    if name not in ("pi", "e", "i"):
        raise NoValue(name)
    return ctx.mpc(0, 1) if name == "i" else +getattr(ctx, name)


def is_real(ctx: Any, value: Any) -> bool:
    return not isinstance(value, ctx.mpc) or value.imag == 0


def _bounded(ctx: Any, value: Any, limit: int = MAX_ARGUMENT) -> Any:
    if abs(value) > limit:
        raise BeyondLimits("too large", hopeless=True)
    return value


def _power(ctx: Any, base: Any, exponent: Any) -> Any:
    _bounded(ctx, exponent, MAX_EXPONENT)
    if base == 0:
        if is_real(ctx, exponent) and ctx.re(exponent) > 0:
            return ctx.mpf(0)
        raise NoValue("a power of zero")
    if abs(ctx.re(exponent)) * abs(ctx.log(abs(base))) > 10**10:
        raise BeyondLimits("too large", hopeless=True)
    return ctx.power(base, exponent)


def _root(ctx: Any, value: Any, index: Any) -> Any:
    """The real root where there is one, as for the cube root of a negative number."""
    if not is_real(ctx, index) or index == 0:
        raise NoValue("a root of that index")
    odd = ctx.isint(index) and int(ctx.re(index)) % 2 == 1
    if odd and is_real(ctx, value) and ctx.re(value) < 0:
        return -_power(ctx, -ctx.re(value), 1 / index)
    return _power(ctx, value, 1 / index)


def _of(name: str, check: Callable[[Any, Any], Any] = _bounded) -> Callable[..., Any]:
    """mpmath's function of that name, of arguments that pass the check."""
    return lambda ctx, *values: getattr(ctx, name)(*(check(ctx, value) for value in values))


def _logarithm(ctx: Any, value: Any, base: Any = None) -> Any:
    return ctx.log(value) if base is None else ctx.log(value) / ctx.log(base)


def _real(ctx: Any, value: Any) -> Any:
    if not is_real(ctx, value):
        raise NoValue("not real")
    return ctx.re(value)


POLES = frozenset(["/", "^"])  # without a value where the right side is zero, or both are
SATURATING = frozenset(["tanh", "coth"])  # they differ from one by about exp(-2x), which no step shows
_GROWING = ("!", "!!", "gamma", "binom", "perm")
RULES: dict[str, Callable[..., Any]] = {
    "+": lambda ctx, *terms: sum(terms, ctx.mpf(0)),
    "*": lambda ctx, *factors: ctx.fprod(factors),
    "/": lambda ctx, top, bottom: top / bottom,
    "neg": lambda ctx, value: -value,
    "^": _power,
    "root": _root,
    "cbrt": lambda ctx, value: _root(ctx, value, ctx.mpf(3)),
    "abs": lambda ctx, value: abs(value),
    "!": _of("factorial"),
    "!!": _of("fac2"),
    "gamma": _of("gamma"),
    "binom": _of("binomial"),
    "perm": _of("ff"),
    "floor": _of("floor", _real),
    "ceil": _of("ceil", _real),
    "sgn": _of("sign", _real),
    "max": lambda ctx, *values: max(_real(ctx, value) for value in values),
    "min": lambda ctx, *values: min(_real(ctx, value) for value in values),
    "cis": _of("expj"),
    "exp": _of("exp"),
    "ln": _logarithm,
    "log": _logarithm,
    "lg": lambda ctx, value: ctx.log(value) / ctx.log(10),
    "lb": lambda ctx, value: ctx.log(value) / ctx.log(2),
    "%": lambda ctx, value: value / 100,
    "deg": lambda ctx, value: value * ctx.pi / 180,
    "arccot": lambda ctx, value: ctx.pi / 2 - ctx.atan(value),
}
RULES |= {name: _of(name) for name in "sin cos tan cot sec csc sinh cosh tanh coth sech csch".split()}
RULES |= {name: _of(name, lambda ctx, value: value) for name in "sqrt re im conj arg".split()}
RULES |= {f"arc{short}": _of(f"a{short}") for short in "sin cos tan sec csc sinh cosh tanh".split()}

# About the microseconds that one node takes in both runs, where that is more than the usual few.
_HARD = RULES.keys() - set("+ * / neg % deg abs floor ceil sgn max min re im conj arg sqrt".split())
COSTS = dict.fromkeys(_HARD, 50) | {"sqrt": 20, "apply": 30, "opaque": 30}
COSTS |= dict.fromkeys(["^", "root", "cbrt"], 80) | dict.fromkeys(_GROWING, 300)
HIGH_PRECISION_COSTS = dict.fromkeys(_HARD, 2_500) | {"sqrt": 200}
HIGH_PRECISION_COSTS |= dict.fromkeys(["^", "root", "cbrt"], 6_000) | dict.fromkeys(_GROWING, 120_000)
