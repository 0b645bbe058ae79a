r"""Values to many digits: every expression is evaluated twice, at two precisions, so that its error is known.

The difference of the two runs is the error of the coarse one; the fine one is better by its additional digits.
Two values are equal when they differ by no more than their errors: a relative bound, at any magnitude. Numbers
beyond the digits would be lost in a sum (`1 + 10^{-999}`) or in a function (`\cos 10^{-999}`), so every step must
stay within a fixed range: beyond it the value is unknown, and unknown equals nothing. mpmath contexts are kept per
thread, because a context holds its precision.
"""

from __future__ import annotations

import hashlib
import random
import threading
from fractions import Fraction
from typing import Any, NamedTuple

from foresail.maths.meaning.budget import Budget
from foresail.maths.meaning.exact import Point
from foresail.maths.meaning.functions import (
    COSTS,
    HIGH_PRECISION_COSTS,
    POLES,
    RULES,
    SATURATING,
    BeyondLimits,
    NoValue,
    constant,
    is_real,
)
from foresail.maths.notation.tree import Node, fingerprint, heads, number, symbol

MAX_RELATIVE_ERROR = 1e-20  # of a value that needs no second evaluation
BITS_PER_DIGIT = 3.33
_rng = random.SystemRandom()  # so that no response can be made to agree at just these points
# Where the terms of two sums, and two integrands, are compared.
TERM_POINTS = (Fraction(0), *(Fraction(_rng.randint(5, 9999)) for _ in range(2)))
BODY_POINTS = tuple(Fraction(_rng.randint(-(10**5), 10**5), _rng.choice((7, 997, 99991))) for _ in range(3))

_local = threading.local()


class Precision(NamedTuple):
    """Decimal digits of both runs, and how many places before or after the point a step may reach.

    Twice as many still fit into the digits: the cosine of a small number is one less half its square.
    """

    coarse: int
    fine: int
    places: int

    @property
    def max_bits(self) -> float:
        return self.places * BITS_PER_DIGIT


USUAL_PRECISION = Precision(40, 140, 60)
HIGH_PRECISION = Precision(140, 1500, 700)
_COARSE = {precision.fine: precision.coarse for precision in (USUAL_PRECISION, HIGH_PRECISION)}


class NumericValue:
    """A number known to so many digits, with the error that its evaluation showed.

    `noisy` says that some step lost all of its digits: it is zero, or too near to it to tell at this precision.
    """

    __slots__ = ("error", "fine", "noisy", "precision")

    def __init__(self, coarse: Any, fine: Any, precision: Precision, noisy: bool) -> None:
        self.fine = fine
        self.precision = precision
        self.noisy = noisy
        floor, gained = context(precision.fine).scales
        self.error = abs(fine - coarse) * gained + abs(fine) * floor

    def equals(self, other: NumericValue) -> bool:
        return bool(abs(self.fine - other.fine) <= self.error + other.error)

    def is_imprecise(self, other: NumericValue) -> bool:
        """Whether the errors are as large as the numbers: terms cancelled, or the number is zero."""
        if self.noisy or other.noisy:
            return True
        return bool(self.error + other.error > max(abs(self.fine), abs(other.fine)) * MAX_RELATIVE_ERROR)

    @property
    def is_real(self) -> bool:
        ctx = self.fine.context
        return bool(abs(ctx.im(self.fine)) <= self.error + abs(self.fine) * ctx.mpf(10) ** -60)


class Setting(NamedTuple):
    """How an evaluation reads what notation leaves open."""

    log_base: int = 0  # of a bare \\log: 10, or 0 for the natural one
    real: bool = False  # a step that is not real has no value, as for \\sqrt{x} where x is negative


USUAL = Setting()


def evaluate(
    node: Node, point: Point, budget: Budget, setting: Setting = USUAL, precision: Precision = USUAL_PRECISION
) -> NumericValue:
    """The value at a point. Raises NoValue."""
    run = _Evaluation(point, budget, setting, precision)
    coarse, fine = run.value(node)
    return NumericValue(coarse, fine, precision, run.noisy)


def has_value(node: Node) -> bool:
    """Whether every step is one that can be evaluated; at some points there may be no value all the same."""
    return heads(node) <= RULES.keys() | {"number", "base", "symbol", "constant"}


def context(digits: int = USUAL_PRECISION.fine) -> Any:
    """This thread's mpmath context of so many digits."""
    contexts = getattr(_local, "contexts", None)
    if contexts is None:
        contexts = _local.contexts = {}
    if digits not in contexts:
        from mpmath.ctx_mp import MPContext  # type: ignore[import-untyped]

        ctx = contexts[digits] = MPContext()
        ctx.dps = digits
        # how much of a value its error is at least, and how much better the fine run is than the coarse one
        ctx.scales = ctx.mpf(10) ** (10 - digits), ctx.mpf(10) ** (10 - digits + _COARSE.get(digits, 0))
    return contexts[digits]


Pair = tuple[Any, Any]  # of one number, coarse and fine
_TOO_FAR = "too large or too small"


class _Evaluation:
    """One walk over a tree that carries both runs along."""

    def __init__(self, point: Point, budget: Budget, setting: Setting, precision: Precision) -> None:
        self.point = point
        self.budget = budget
        self.setting = setting
        self.contexts = context(precision.coarse), context(precision.fine)
        self.max_bits = precision.max_bits
        self.costs = HIGH_PRECISION_COSTS if precision is HIGH_PRECISION else COSTS
        self.usual_cost = 40 if precision is HIGH_PRECISION else 8
        self.known_digits = precision.fine - 30  # by which arguments of an unknown function are told apart
        self.noisy = False

    def value(self, node: Node) -> Pair:
        head = node.head
        self.budget.spend(self.costs.get(head, self.usual_cost))
        if head == "number":
            return self.from_fraction(node.args[0])
        if head == "base":
            return self.from_fraction(Fraction(node.args[2]))
        if head == "symbol":
            return self.from_fraction(self.point[node.args[0]])
        if head == "constant":
            coarse, fine = self.contexts
            return constant(node.args[0], coarse), constant(node.args[0], fine)
        if head == "apply":
            return self.unknown_function(node.args[0], [self.value(child) for child in node.args[1:]])
        if head == "opaque":
            return self.opaque(node)
        rule = RULES.get(head)
        if rule is None:
            raise NoValue(f"no value for {head}")
        arguments = [self.value(child) for child in node.args]
        if head == "log" and len(arguments) == 1 and self.setting.log_base:
            arguments.append(self.from_fraction(Fraction(self.setting.log_base)))
        if head in SATURATING and abs(arguments[0][1]) > self.max_bits / 3:
            raise BeyondLimits("too near to one")
        if self.noisy and head in POLES:
            self.check_zero(head, *arguments)
        try:
            coarse, fine = map(rule, self.contexts, *arguments)
        except (ZeroDivisionError, ValueError, OverflowError, TypeError, NotImplementedError) as error:
            raise NoValue(f"{head}: {error}") from None
        return self.checked(head, coarse, fine)

    def checked(self, head: str, coarse: Any, fine: Any) -> Pair:
        ctx = self.contexts[1]
        if not ctx.isfinite(fine) or not self.contexts[0].isfinite(coarse):
            raise NoValue(f"{head} is not finite")
        if self.setting.real and not is_real(ctx, fine):
            raise NoValue(f"{head} is not real")
        magnitude = ctx.mag(fine) if fine else 0
        if abs(magnitude) > self.max_bits:
            if not self.looks_like_zero(coarse, fine):
                raise BeyondLimits(_TOO_FAR, hopeless=abs(magnitude) > HIGH_PRECISION.max_bits)
            self.noisy = True
        return coarse, fine

    def looks_like_zero(self, coarse: Any, fine: Any) -> bool:
        """Whether a number is smaller than both runs can tell; where they see it, it is a small number."""
        ctx = self.contexts[1]
        if not fine:
            return True
        magnitude = ctx.mag(fine)
        return magnitude < -self.max_bits and not (coarse and ctx.mag(fine - coarse) < magnitude - 20)

    def check_zero(self, head: str, left: Pair, right: Pair) -> None:
        r"""`(\sin\pi)^0` and `\frac{\sin\pi}{\sin\pi}` are no 1, unless more digits show a small number."""
        if self.looks_like_zero(*right) and (head == "/" or self.looks_like_zero(*left)):
            raise BeyondLimits("a division by what looks like zero, or a power of it")

    def from_fraction(self, value: Fraction) -> Pair:
        above, below = value.numerator.bit_length(), value.denominator.bit_length()
        self.budget.spend((above + below) // 200)
        size = abs(above - below)
        if size > self.max_bits and value:
            raise BeyondLimits(_TOO_FAR, hopeless=size > HIGH_PRECISION.max_bits)
        coarse, fine = (ctx.mpf(value.numerator) for ctx in self.contexts)
        if value.denominator == 1:
            return coarse, fine
        return coarse / value.denominator, fine / value.denominator

    def unknown_function(self, name: str, arguments: list[Pair]) -> Pair:
        """A hash of the arguments, so that f(x) equals f(x) and not f(y)."""
        text = "|".join([name, *(self.contexts[1].nstr(fine, self.known_digits) for _, fine in arguments)])
        digest = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])
        return self.from_fraction(Fraction(digest * 3, 2**64) + Fraction(1, 4))

    def opaque(self, node: Node) -> Pair:
        """A sum is the same as another when their terms and bounds are; its value is not worked out."""
        name, body, *bounds = node.args
        values: list[Pair] = []
        index = None
        for bound in bounds:
            is_chain = bound.head == "chain"
            sides, signs = (bound.args[::2], bound.args[1::2]) if is_chain else ((bound,), ())
            name += "|" + "".join(signs)
            if is_chain and sides[0].head == "symbol":
                index, sides = sides[0].args[0], sides[1:]
            for side in sides:
                if side.head in ("constant", "neg") and "constant" in heads(side):  # infinities
                    name += fingerprint(side)
                else:
                    values.append(self.value(side))
        if node.args[0] == "int" and body.args[-2:-1] == (symbol("d"),):
            index = body.args[-1].args[0] if body.args[-1].head == "symbol" else index
            body = Node("*", body.args[:-2] or (number(1),))
        points = BODY_POINTS if node.args[0] == "int" else TERM_POINTS
        values += self.terms(body, index, points) if index else [self.value(body)]
        return self.unknown_function(name, values)

    def terms(self, body: Node, index: str, places: tuple[Fraction, ...]) -> list[Pair]:
        """The body at some places of its index, those left out where it has no value."""
        outside, values = self.point, []
        for place in places:
            self.point = {**outside, index: place}
            try:
                values.append(self.value(body))
            except BeyondLimits:
                raise
            except NoValue:
                continue
            finally:
                self.point = outside
        if not values:
            raise NoValue("a sum without terms")
        return values
