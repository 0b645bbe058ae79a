r"""Values to many digits: every expression evaluated twice, at two precisions, so that its error is known.

The difference of the two runs is the error of the coarse one; the fine one is better by the digits it has
more. Two values are equal when they differ by no more than their errors: a relative bound, at any
magnitude. mpmath contexts are kept per thread, because a context holds its precision.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from foresail.rewards.meaning.budget import Budget
from foresail.rewards.notation.tree import Node

COARSE, FINE, DEEP = 40, 140, 1500  # decimal digits
MAX_EXPONENT = 10**9  # of a power; what lies beyond is no number here
MAX_ARGUMENT = 10**7  # of exp, trigonometric functions and factorials

CLEAR = 1e-20

_local = threading.local()


class NoValue(Exception):
    """There is no number: a pole, an unknown function."""


class BeyondLimits(NoValue):
    """There may be a number, but it is too large to look at."""


class Value:
    """A number known to `FINE` digits (or `DEEP`), with the error that its evaluation showed."""

    __slots__ = ("error", "fine")

    def __init__(self, coarse: Any, fine: Any, gained: int, digits: int) -> None:
        context = fine.context
        self.fine = fine
        floor = abs(fine) * context.mpf(10) ** (10 - digits)
        self.error = abs(fine - coarse) * context.mpf(10) ** (10 - gained) + floor

    def equals(self, other: Value) -> bool:
        return bool(abs(self.fine - other.fine) <= self.error + other.error)

    def is_blurred(self, other: Value) -> bool:
        """Whether the errors are as large as the numbers: terms cancelled, or the number is zero."""
        return bool(self.error + other.error > max(abs(self.fine), abs(other.fine)) * CLEAR)

    @property
    def is_real(self) -> bool:
        context = self.fine.context
        return bool(abs(context.im(self.fine)) <= self.error + abs(self.fine) * context.mpf(10) ** -60)


class Setting(NamedTuple):
    """How an evaluation reads what notation leaves open."""

    log_base: int = 0  # of a bare \\log: 10, or 0 for the natural one
    real: bool = False  # a step that is not real has no value, as for \\sqrt{x} where x is negative


USUAL = Setting()


def evaluate(node: Node, point: Mapping[str, Fraction], budget: Budget, setting: Setting = USUAL) -> Value:
    """The value at a point. Raises NoValue."""
    coarse = _run(node, point, budget, setting, _context(COARSE))
    return Value(coarse, _run(node, point, budget, setting, _context(FINE)), FINE - COARSE, FINE)


def evaluate_deeply(
    node: Node, point: Mapping[str, Fraction], budget: Budget, setting: Setting = USUAL
) -> Value:
    """The same with ten times the digits, for values that came out blurred."""
    coarse = _run(node, point, budget, setting, _context(FINE))
    return Value(coarse, _run(node, point, budget, setting, _context(DEEP)), DEEP - FINE, DEEP)


def _context(digits: int) -> Any:
    contexts = getattr(_local, "contexts", None)
    if contexts is None:
        contexts = _local.contexts = {}
    if digits not in contexts:
        from mpmath.ctx_mp import MPContext  # type: ignore[import-untyped]

        contexts[digits] = MPContext()
        contexts[digits].dps = digits
        contexts[digits].costs = _DEEP_COSTS if digits > FINE else _COSTS
    return contexts[digits]


def _run(node: Node, point: Mapping[str, Fraction], budget: Budget, setting: Setting, ctx: Any) -> Any:
    head = node.head
    budget.spend(ctx.costs.get(head, 4))
    if head == "number":
        value = node.args[0]
        return ctx.mpf(value.numerator) / value.denominator
    if head == "base":
        return ctx.mpf(node.args[2])
    if head == "symbol":
        value = point[node.args[0]]
        return ctx.mpf(value.numerator) / value.denominator
    if head == "constant":
        return _constant(node.args[0], ctx)
    if head == "apply":
        arguments = [_run(child, point, budget, setting, ctx) for child in node.args[1:]]
        return _oracle(node.args[0], arguments, ctx)
    if head == "opaque":
        return _opaque(node, point, budget, setting, ctx)
    rule = _RULES.get(head)
    if rule is None:
        raise NoValue(f"no value for {head}")
    arguments = [_run(child, point, budget, setting, ctx) for child in node.args]
    if head == "log" and len(arguments) == 1 and setting.log_base:
        arguments.append(ctx.mpf(setting.log_base))
    try:
        result = rule(ctx, *arguments)
    except (ZeroDivisionError, ValueError, OverflowError, TypeError, NotImplementedError) as error:
        raise NoValue(f"{head}: {error}") from None
    if not ctx.isfinite(result):
        raise NoValue(f"{head} is not finite")
    if setting.real and not _is_real(ctx, result):
        raise NoValue(f"{head} is not real")
    return result


def _constant(name: str, ctx: Any) -> Any:
    if name == "pi":
        return +ctx.pi
    if name == "e":
        return +ctx.e
    if name == "i":
        return ctx.mpc(0, 1)
    raise NoValue(name)


def _oracle(name: str, arguments: list[Any], ctx: Any) -> Any:
    """A function nobody defined: some fixed value for each argument, so f(x) equals f(x) and not f(y)."""
    text = name + "|" + "|".join(ctx.nstr(argument, 20) for argument in arguments)
    digest = hashlib.sha256(text.encode()).digest()
    return ctx.mpf(int.from_bytes(digest[:8])) / 2**64 * 3 + ctx.mpf(1) / 4


def _opaque(node: Node, point: Mapping[str, Fraction], budget: Budget, setting: Setting, ctx: Any) -> Any:
    """A sum is the same as another when their terms and bounds are; its value is not worked out."""
    name, *parts = node.args
    values = []
    for part in parts:
        sides = part.args[::2] if part.head == "chain" else (part,)
        values += [_run(side, point, budget, setting, ctx) for side in sides if side.head != "constant"]
    return _oracle(name, values, ctx)


def _is_real(ctx: Any, value: Any) -> bool:
    return not isinstance(value, ctx.mpc) or value.imag == 0


def _bounded(ctx: Any, value: Any, most: int = MAX_ARGUMENT) -> Any:
    if abs(value) > most:
        raise BeyondLimits("too large")
    return value


def _power(ctx: Any, base: Any, exponent: Any) -> Any:
    _bounded(ctx, exponent, MAX_EXPONENT)
    if base == 0:
        if _is_real(ctx, exponent) and ctx.re(exponent) > 0:
            return ctx.mpf(0)
        raise NoValue("a power of zero")
    if abs(ctx.re(exponent)) * abs(ctx.log(abs(base))) > 10**10:
        raise BeyondLimits("too large")
    return ctx.power(base, exponent)


def _root(ctx: Any, value: Any, index: Any) -> Any:
    """The real root where there is one, as for the cube root of a negative number."""
    if not _is_real(ctx, index) or index == 0:
        raise NoValue("a root of that index")
    odd = ctx.isint(index) and int(ctx.re(index)) % 2 == 1
    if odd and _is_real(ctx, value) and ctx.re(value) < 0:
        return -_power(ctx, -ctx.re(value), 1 / index)
    return _power(ctx, value, 1 / index)


def _of(name: str, most: int = MAX_ARGUMENT) -> Callable[..., Any]:
    return lambda ctx, value: getattr(ctx, name)(_bounded(ctx, value, most))


def _logarithm(ctx: Any, value: Any, base: Any = None) -> Any:
    return ctx.log(value) if base is None else ctx.log(value) / ctx.log(base)


def _real(ctx: Any, value: Any) -> Any:
    if not _is_real(ctx, value):
        raise NoValue("not real")
    return ctx.re(value)


def _rounded(name: str) -> Callable[..., Any]:
    return lambda ctx, value: getattr(ctx, name)(_real(ctx, value))


_GROWING = ("!", "!!", "gamma", "binom", "perm")
_RULES: dict[str, Callable[..., Any]] = {
    "+": lambda ctx, *terms: sum(terms, ctx.mpf(0)),
    "*": lambda ctx, *factors: ctx.fprod(factors),
    "/": lambda ctx, top, bottom: top / bottom,
    "neg": lambda ctx, value: -value,
    "^": _power,
    "root": _root,
    "sqrt": lambda ctx, value: ctx.sqrt(value),
    "cbrt": lambda ctx, value: _root(ctx, value, ctx.mpf(3)),
    "abs": lambda ctx, value: abs(value),
    "!": _of("factorial"),
    "!!": _of("fac2"),
    "gamma": _of("gamma"),
    "binom": lambda ctx, n, k: ctx.binomial(_bounded(ctx, n), _bounded(ctx, k)),
    "perm": lambda ctx, n, k: ctx.ff(_bounded(ctx, n), _bounded(ctx, k)),
    "floor": _rounded("floor"),
    "ceil": _rounded("ceil"),
    "sgn": lambda ctx, value: ctx.sign(_real(ctx, value)),
    "max": lambda ctx, *values: max(_real(ctx, value) for value in values),
    "min": lambda ctx, *values: min(_real(ctx, value) for value in values),
    "re": lambda ctx, value: ctx.re(value),
    "im": lambda ctx, value: ctx.im(value),
    "conj": lambda ctx, value: ctx.conj(value),
    "cis": lambda ctx, value: ctx.expj(_bounded(ctx, value)),
    "arg": lambda ctx, value: ctx.arg(value),
    "exp": _of("exp"),
    "ln": _logarithm,
    "log": _logarithm,
    "lg": lambda ctx, value: ctx.log(value) / ctx.log(10),
    "lb": lambda ctx, value: ctx.log(value) / ctx.log(2),
    "%": lambda ctx, value: value / 100,
    "deg": lambda ctx, value: value * ctx.pi / 180,
    "arccot": lambda ctx, value: ctx.pi / 2 - ctx.atan(value),
}
_RULES |= {name: _of(name) for name in "sin cos tan cot sec csc sinh cosh tanh coth sech csch".split()}
_RULES |= {f"arc{short}": _of(f"a{short}") for short in "sin cos tan sec csc sinh cosh tanh".split()}

# About the microseconds that one node takes, where that is more than the usual few.
_HARD = _RULES.keys() - set("+ * / neg % deg abs floor ceil sgn max min re im conj arg sqrt".split())
_COSTS = dict.fromkeys(_HARD, 25) | {"sqrt": 10, "apply": 15, "opaque": 15}
_COSTS |= dict.fromkeys(["^", "root", "cbrt"], 40)
_COSTS |= dict.fromkeys(_GROWING, 150)
_DEEP_COSTS = dict.fromkeys(_HARD, 2_500) | {"sqrt": 200} | dict.fromkeys(["^", "root", "cbrt"], 6_000)
_DEEP_COSTS |= dict.fromkeys(_GROWING, 120_000)
