r"""Whether two expressions are the same: by exact value, else at random points to many digits.

Variables take random rational values, so a polynomial is compared exactly and a formula wherever both of
its sides are real. The points depend on nothing but `seed`, so a verdict can be repeated. A value that no
evaluation reaches, such as `9^{9^9}`, is told apart by remainders or by its tree; unknown is never equal.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from itertools import islice

from foresail.maths.meaning.budget import Budget
from foresail.maths.meaning.exact import exact, size_cost
from foresail.maths.meaning.functions import BeyondLimits, NoValue
from foresail.maths.meaning.letters import complex_letters, with_both_parts
from foresail.maths.meaning.numeric import HIGH_PRECISION, USUAL, NumericValue, Setting, evaluate
from foresail.maths.meaning.points import POINTS, Point, Points, far_points, integer_names, near_points
from foresail.maths.meaning.remainders import remainders
from foresail.maths.notation.tree import INFINITY, Node, heads, number, symbols

WRITTEN_OUT = 10**16  # what divides it has that many decimal places at most
LONG_DECIMAL = 10  # significant digits from which a decimal may stand for an irrational or endless value
END_DECIMAL = 4  # the same at an end of an interval, rounded to as many places at least
MAX_SYMBOLS = 40
_TEN = number(10)
COMPOSED = frozenset(["+", "*", "/", "^", "neg", "sqrt", "root", "!", "binom", "exp", "ln", "log"])
PARTIAL = frozenset(["/", "^", "ln", "log", "tan"])  # functions without a value here and there
ARITHMETIC = frozenset(["number", "+", "*", "/", "^", "neg", "sqrt", "root", "ln", "log", "tan"])


class Facts:
    """One expression with what was found out about it, each thing once."""

    def __init__(self, node: Node, budget: Budget) -> None:
        self.node = node
        self.budget = budget
        self.values: dict[object, NumericValue | None] = {}  # an item of a list is compared with many others

    @cached_property
    def symbols(self) -> frozenset[str]:
        return frozenset(symbols(self.node))

    @cached_property
    def heads(self) -> frozenset[str]:
        return frozenset(heads(self.node))

    @cached_property
    def exact(self) -> Fraction | None:
        return exact(self.node, budget=self.budget)

    @property
    def value(self) -> NumericValue | None:
        """The value of an expression without variables."""
        return self.at({}) if not self.symbols else None

    def exactly(self, point: Point) -> Fraction | None:
        return exact(self.node, point, self.budget)

    def at(self, point: Point, setting: Setting = USUAL) -> NumericValue | None:
        key = (tuple(point.items()), setting)
        if key not in self.values:
            try:
                self.values[key] = evaluate(self.node, point, self.budget, setting)
            except BeyondLimits as error:  # a constant is worth high precision; of points there are others
                self.values[key] = None if point or error.hopeless else self.at_high_precision(point, setting)
            except NoValue:
                self.values[key] = None
        return self.values[key]

    def at_high_precision(self, point: Point, setting: Setting = USUAL) -> NumericValue | None:
        try:
            return evaluate(self.node, point, self.budget, setting, HIGH_PRECISION)
        except NoValue:
            return None

    @cached_property
    def is_undefined(self) -> bool:
        """A number that is none, such as 1/0: it equals nothing, not even itself."""
        if self.heads.isdisjoint(PARTIAL) or not self.heads <= ARITHMETIC or self.exact is not None:
            return False
        try:
            evaluate(self.node, {}, self.budget)
        except NoValue as error:
            return not isinstance(error, BeyondLimits)
        return False

    @property
    def decimal_digits(self) -> int:
        """Significant digits, where the expression is a decimal, with a sign or a power of ten at most."""
        node = self.node.args[0] if self.node.head == "neg" else self.node
        if node.head == "*" and len(node.args) == 2:
            first, power = node.args
            node = first if power.head == "^" and power.args[0] == _TEN else node
        return node.args[1] or 0 if node.head == "number" else 0


def same_expression(one: Facts, other: Facts, seed: str) -> bool:
    r"""`2\sqrt3` and `\sqrt{12}`; `(x+1)^2` and `x^2+2x+1`; never `\pi` and `3.14`."""
    if one.exact is not None and other.exact is not None:
        return one.exact == other.exact or _rounds_to(one, other) or _rounds_to(other, one)
    if not one.symbols and not other.symbols:
        return _same_constant(one, other)
    if letters := complex_letters(one.node, other.node):
        one, other = (Facts(with_both_parts(side.node, letters), side.budget) for side in (one, other))
    names = sorted(one.symbols | other.symbols)
    if len(names) > MAX_SYMBOLS:
        return False
    near = Points(near_points(names, integer_names(one.node, other.node), seed))
    decided = _same_polynomial(one, other, near)
    if decided is None:
        bases = (0, 10) if "log" in one.heads | other.heads else (0,)
        decided = any(_same_somewhere(one, other, near, Setting(log_base=base)) for base in bases)
    return decided and _same_far_away(one, other, names, seed)


def constant_ratio(one: Node, other: Node, seed: str, budget: Budget) -> Fraction | NumericValue | None:
    """The constant ratio of two expressions that are not constants themselves, or None."""
    first, second = Facts(one, budget), Facts(other, budget)
    names = sorted(first.symbols | second.symbols)
    if not names or first.symbols != second.symbols or len(names) > MAX_SYMBOLS:
        return None
    ratio = Facts(Node("/", (one, other)), budget)
    exacts: list[Fraction] = []
    values: list[NumericValue] = []
    far = far_points((one, other), first.heads | second.heads, names, seed, budget)
    for point in (*near_points(names, frozenset(), seed), *far):
        quotient = ratio.exactly(point)
        if quotient is not None:
            exacts.append(quotient)
            if quotient == 0 or quotient != exacts[0]:
                return None
        elif (value := ratio.at(point)) is not None:
            values.append(value)
            if value.fine == 0 or not value.equals(values[0]):
                return None
        if not far and (len(exacts) == POINTS or len(values) == POINTS):
            break
    enough = max(len(exacts), len(values)) >= POINTS and not (exacts and values)
    return (exacts or values)[0] if enough else None


def _same_constant(one: Facts, other: Facts) -> bool:
    first = remainders(one.node, one.budget)
    if first is not None and (second := remainders(other.node, one.budget)) is not None:
        return first == second or _rounds_to(one, other) or _rounds_to(other, one)
    if one.value is not None and other.value is not None:
        if _agree(one, other, {}, USUAL) or _rounds_to(one, other) or _rounds_to(other, one):
            return True
        if "log" not in one.heads | other.heads:
            return False
        return bool(_agree(one, other, {}, Setting(log_base=10)))
    if (sign := _infinity_sign(one.node)) and sign == _infinity_sign(other.node):
        return True
    return not one.is_undefined and _same_tree(one.node, other.node, one.budget)


def _same_tree(one: Node, other: Node, budget: Budget) -> bool:
    """Numbers that nobody can evaluate are equal where they are made of equal parts in the same way."""
    budget.spend(4)
    if one.head != other.head or len(one.args) != len(other.args) or one.head not in COMPOSED:
        return one == other
    if one.head not in ("+", "*"):
        return all(_same_part(*pair, budget) for pair in zip(one.args, other.args, strict=True))
    rest = list(other.args)
    for mine in one.args:
        place = next((i for i, theirs in enumerate(rest) if _same_part(mine, theirs, budget)), None)
        if place is None:
            return False
        del rest[place]
    return True


def _same_part(one: Node, other: Node, budget: Budget) -> bool:
    return same_expression(Facts(one, budget), Facts(other, budget), "")


def _agree(one: Facts, other: Facts, point: Point, setting: Setting) -> bool | None:
    """Whether the values are equal there; None where one has none. Imprecise ones are evaluated once more."""
    first = one.at(point, setting)
    second = other.at(point, setting) if first is not None else None
    if first is None or second is None:
        return None
    if first.precision is second.precision:
        if not first.equals(second):
            return False
        if not first.is_imprecise(second) or not (first.fine or second.fine):
            return True
    first, second = one.at_high_precision(point, setting), other.at_high_precision(point, setting)
    return first is not None and second is not None and first.equals(second)


def _infinity_sign(node: Node) -> int:
    """1 or -1 for an infinity, 0 for anything else."""
    if node.head == "neg":
        return -_infinity_sign(node.args[0])
    return int(node == INFINITY)


def is_rounded_end(decimal: Facts, other: Facts) -> bool:
    """2.6667 is 8/3 at an end of an interval; 2.6666 and 2.667 are not."""
    value = decimal.exact
    return (
        value is not None
        and (value * 10 ** (END_DECIMAL - 1)).denominator != 1
        and _rounds_to(decimal, other, END_DECIMAL, Fraction(1, 2))
    )


def _rounds_to(
    decimal: Facts, other: Facts, least: int = LONG_DECIMAL, within: Fraction = Fraction(1)
) -> bool:
    """4.123105625617661 stands for the root of 17: so many digits, all of them right, can be meant no other way.

    `least` digits are asked for, and `within` how much of the last one's unit they may be off.
    """
    digits = decimal.decimal_digits
    candidate = decimal.exact if digits >= least and not other.decimal_digits else None
    if candidate is None or candidate.denominator == 1:
        return False
    decimal.budget.spend(
        2 * size_cost(candidate) + (size_cost(other.exact) if other.exact is not None else 0)
    )
    unit = within * Fraction(10) ** (_magnitude(abs(candidate)) - digits + 1)
    if other.exact is not None:
        # integers and short decimals such as 99999999.99 must be given in full; 1/3 and 2**-40 need not
        return WRITTEN_OUT % other.exact.denominator != 0 and abs(candidate - other.exact) < unit
    if other.value is None or not other.value.is_real:
        return False
    candidate_fine, unit_fine = (
        other.value.fine.context.mpf(value.numerator) / value.denominator for value in (candidate, unit)
    )
    return bool(abs(other.value.fine - candidate_fine) < unit_fine)


def _magnitude(value: Fraction) -> int:
    """The place of the first digit: _magnitude(123) -> 2; _magnitude(0.05) -> -2."""
    place = round((value.numerator.bit_length() - value.denominator.bit_length()) * 0.30103)
    while Fraction(10) ** (place + 1) <= value:
        place += 1
    while value < Fraction(10) ** place:
        place -= 1
    return place


def _same_polynomial(one: Facts, other: Facts, near: Points) -> bool | None:
    """Exact comparison at random rational points; None where one side is not rational there."""
    agreed = 0
    for point in islice(near, POINTS + 2):
        first, second = one.exactly(point), other.exactly(point)
        if first is not None and second is not None:
            if first != second:
                return False
            agreed += 1
        elif not agreed:
            return None
    return agreed >= 3 or None


def _same_somewhere(one: Facts, other: Facts, near: Points, setting: Setting) -> bool:
    """Whether both are equal wherever both are real or, where they hardly ever are, as complex numbers."""
    real = _same_function(one, other, near, setting._replace(real=True))
    return bool(_same_function(one, other, near, setting) if real is None else real)


def _same_function(one: Facts, other: Facts, near: Points, setting: Setting) -> bool | None:
    """Whether both are equal wherever both have a value; None where they hardly ever do."""
    agreed = 0
    for point in near:
        same = _agree(one, other, point, setting)
        if same is False:
            return False
        agreed += same is True
        if agreed == POINTS + 2:
            break
    return True if agreed >= POINTS - 1 else None


def _same_far_away(one: Facts, other: Facts, names: list[str], seed: str) -> bool:
    """Whether formulas with corners or steps that agree near zero agree at every other point as well."""
    for point in far_points((one.node, other.node), one.heads | other.heads, names, seed, one.budget):
        first, second = one.exactly(point), other.exactly(point)
        if first is not None and second is not None:
            same: bool | None = first == second
        else:
            same = _agree(one, other, point, Setting(real=True))
            if same is None and "constant" in one.heads | other.heads:  # i may be among them
                same = _agree(one, other, point, USUAL)
        if same is False:
            return False
    return True
