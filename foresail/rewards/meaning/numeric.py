r"""Values to many digits: every expression evaluated twice, at two precisions, so that its error is known.

The difference of the two runs is the error of the coarse one; the fine one is better by the digits it has
more. Two values are equal when they differ by no more than their errors: a relative bound, at any
magnitude. A number far larger or smaller than the digits reach would swallow others (`1 + 10^{-999}`) or vanish
in them (`\cos 10^{-999}`), so every step must stay within a fixed range: beyond it the value is not known, and
what is not known equals nothing. mpmath contexts are kept per thread, because a context holds its precision.
"""

from __future__ import annotations

import hashlib
import random
import threading
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from foresail.rewards.meaning.budget import Budget
from foresail.rewards.meaning.functions import (
    COSTS,
    DEEP_COSTS,
    RULES,
    SATURATING,
    BeyondLimits,
    NoValue,
    constant,
    is_real,
)
from foresail.rewards.notation.tree import Node, heads

CLEAR = 1e-20
BITS = 3.33  # of one decimal digit
_draw = random.SystemRandom()  # so that nobody can aim at a place
TERMS = (Fraction(0), *(Fraction(_draw.randint(5, 9999)) for _ in range(2)))  # of two sums that are compared
INSIDE = tuple(
    Fraction(_draw.randint(-(10**5), 10**5), _draw.choice((7, 997, 99991))) for _ in range(3)
)  # and integrands

_local = threading.local()


class Depth(NamedTuple):
    """Decimal digits of both runs, and how many places before or after the point a step may reach.

    Twice as many still fit into the digits: the cosine of a small number is one less half its square.
    """

    coarse: int
    fine: int
    places: int


USUAL_DEPTH = Depth(40, 140, 60)
DEEP = Depth(140, 1500, 700)
_COARSE = {depth.fine: depth.coarse for depth in (USUAL_DEPTH, DEEP)}


class Value:
    """A number known to so many digits, with the error that its evaluation showed.

    `noisy` says that some step lost all of its digits: it is zero, or too near to it to tell at this depth.
    """

    __slots__ = ("depth", "error", "fine", "noisy")

    def __init__(self, coarse: Any, fine: Any, depth: Depth, noisy: bool) -> None:
        self.fine = fine
        self.depth = depth
        self.noisy = noisy
        floor, gained = context(depth.fine).scales
        self.error = abs(fine - coarse) * gained + abs(fine) * floor

    def equals(self, other: Value) -> bool:
        return bool(abs(self.fine - other.fine) <= self.error + other.error)

    def is_blurred(self, other: Value) -> bool:
        """Whether the errors are as large as the numbers: terms cancelled, or the number is zero."""
        if self.noisy or other.noisy:
            return True
        return bool(self.error + other.error > max(abs(self.fine), abs(other.fine)) * CLEAR)

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
    node: Node,
    point: Mapping[str, Fraction],
    budget: Budget,
    setting: Setting = USUAL,
    depth: Depth = USUAL_DEPTH,
) -> Value:
    """The value at a point. Raises NoValue."""
    run = _Evaluation(point, budget, setting, depth)
    coarse, fine = run.value(node)
    return Value(coarse, fine, depth, run.noisy)


def has_value(node: Node) -> bool:
    """Whether every step is one that can be evaluated; at some points there may be no value all the same."""
    return heads(node) <= RULES.keys() | {"number", "base", "symbol", "constant"}


def context(digits: int = USUAL_DEPTH.fine) -> Any:
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


class _Evaluation:
    """One walk over a tree that carries both runs along."""

    def __init__(self, point: Mapping[str, Fraction], budget: Budget, setting: Setting, depth: Depth) -> None:
        self.point = point
        self.budget = budget
        self.setting = setting
        self.contexts = context(depth.coarse), context(depth.fine)
        self.widest = depth.places * BITS
        self.costs = DEEP_COSTS if depth is DEEP else COSTS
        self.known = (
            depth.fine - 30
        )  # digits by which the argument of an unknown function is told from others
        self.noisy = False

    def value(self, node: Node) -> Pair:
        head = node.head
        self.budget.spend(self.costs.get(head, 8))
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
            return self.oracle(node.args[0], [self.value(child) for child in node.args[1:]])
        if head == "opaque":
            return self.opaque(node)
        rule = RULES.get(head)
        if rule is None:
            raise NoValue(f"no value for {head}")
        arguments = [self.value(child) for child in node.args]
        if head == "log" and len(arguments) == 1 and self.setting.log_base:
            arguments.append(self.from_fraction(Fraction(self.setting.log_base)))
        if head in SATURATING:
            self.within_saturation(arguments[0][1])
        try:
            coarse, fine = (
                rule(ctx, *values)
                for ctx, values in zip(self.contexts, zip(*arguments, strict=True), strict=True)
            )
        except (ZeroDivisionError, ValueError, OverflowError, TypeError, NotImplementedError) as error:
            raise NoValue(f"{head}: {error}") from None
        return self.checked(head, coarse, fine)

    def within_saturation(self, argument: Any) -> None:
        if abs(argument) > self.widest / 3:
            raise BeyondLimits("too near to one")

    def checked(self, head: str, coarse: Any, fine: Any) -> Pair:
        ctx = self.contexts[1]
        if not ctx.isfinite(fine) or not self.contexts[0].isfinite(coarse):
            raise NoValue(f"{head} is not finite")
        if self.setting.real and not is_real(ctx, fine):
            raise NoValue(f"{head} is not real")
        magnitude = ctx.mag(fine) if fine else 0
        if abs(magnitude) > self.widest:
            # a small number is one where both runs see it; otherwise it is what zero looks like
            if magnitude > 0 or (coarse and ctx.mag(fine - coarse) < magnitude - 20):
                raise BeyondLimits("too large or too small", hopeless=abs(magnitude) > DEEP.places * BITS)
            self.noisy = True
        return coarse, fine

    def from_fraction(self, value: Fraction) -> Pair:
        size = abs(value.numerator.bit_length() - value.denominator.bit_length())
        if size > self.widest and value:
            raise BeyondLimits("too large or too small", hopeless=size > DEEP.places * BITS)
        coarse, fine = self.contexts
        return coarse.mpf(value.numerator) / value.denominator, fine.mpf(value.numerator) / value.denominator

    def oracle(self, name: str, arguments: list[Pair]) -> Pair:
        """A function nobody defined: some fixed value for each argument, so f(x) equals f(x) and not f(y)."""
        text = name + "|" + "|".join(self.contexts[1].nstr(fine, self.known) for _, fine in arguments)
        digest = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])
        return self.from_fraction(Fraction(digest * 3, 2**64) + Fraction(1, 4))

    def opaque(self, node: Node) -> Pair:
        """A sum is the same as another when their terms and bounds are; its value is not worked out."""
        name, body, *bounds = node.args
        values: list[Pair] = []
        index = None
        for bound in bounds:
            name += "|" + "".join(
                str(part) for part in bound.args if bound.head == "chain" and isinstance(part, str)
            )
            sides = bound.args[::2] if bound.head == "chain" else (bound,)
            if bound.head == "chain" and sides[0].head == "symbol":
                index, sides = sides[0].args[0], sides[1:]
            for side in sides:
                if side.head in ("constant", "neg") and "constant" in heads(side):  # infinities
                    name += str(side)
                else:
                    values.append(self.value(side))
        if node.args[0] == "int" and body.args[-2:-1] == (Node("symbol", ("d",)),):
            index = body.args[-1].args[0] if body.args[-1].head == "symbol" else index
            body = Node("*", body.args[:-2] or (Node("number", (Fraction(1), None)),))
        values += (
            self.terms(body, index, INSIDE if node.args[0] == "int" else TERMS)
            if index
            else [self.value(body)]
        )
        return self.oracle(name, values)

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
