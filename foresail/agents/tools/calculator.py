"""A calculator with bounded work: exact fractions where possible, else floats; it never runs Python code.

calculate("(1/3 + 1/6) * 2") -> "1"
calculate("0.1 + 0.2") -> "0.3"
calculate("9**9**9") -> ValueError: the result has too many digits
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction

LONGEST = 1000  # characters of an expression
DEEPEST = 100  # levels of brackets and signs
MAX_BITS = 10_000  # of a numerator or a denominator: some 3000 digits
MAX_FACTORIAL = 1000
DIGITS = Context(prec=15)
SAME = str.maketrans(
    {"×": "*", "·": "*", "÷": "/", "−": "-", "–": "-", "^": "**", "[": "(", "]": ")", "$": " "}
)

Number = Fraction | float


async def calculator(expression: str) -> str:
    """Compute an arithmetic expression and return its value.

    expression: such as (3 + 4.5) * 2**10 / 7; may use sqrt, exp, ln, log10, log2, sin, cos, tan, asin, acos, atan,
        abs, round, floor, ceil, min, max, gcd, lcm, factorial, comb, pi, e
    """
    return calculate(expression)


def calculate(expression: str) -> str:
    """An expression's value as text. Raises ValueError."""
    if len(expression) > LONGEST:
        raise ValueError(f"the expression is longer than {LONGEST} characters; compute it in parts")
    text = expression.translate(SAME).strip().rstrip("=").strip()
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError("this is no arithmetic expression; write one such as (3 + 4.5) * 2**10") from None
    try:
        return show(evaluate(tree, 0))
    except ZeroDivisionError:
        raise ValueError("division by zero") from None
    except OverflowError:
        raise ValueError("the result is too large") from None
    except RecursionError:
        raise ValueError("this is nested too deeply to be an arithmetic expression") from None


def show(value: Number) -> str:
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError("the result is no number")
        return plain(Decimal(repr(value)))
    if value.denominator == 1:
        return str(value.numerator)
    return plain(DIGITS.divide(Decimal(value.numerator), Decimal(value.denominator)))


def plain(value: Decimal) -> str:
    """plain(Decimal("0.50")) -> "0.5"."""
    short = DIGITS.plus(value).normalize(DIGITS)
    return f"{short:f}" if -7 < short.adjusted() < 15 else f"{short:e}"


def evaluate(node: ast.expr, depth: int) -> Number:
    if depth > DEEPEST:
        raise ValueError(f"the expression is nested deeper than {DEEPEST} levels; compute it in parts")
    if isinstance(node, ast.Constant):
        return fits(constant(node.value))
    if isinstance(node, ast.Name) and node.id.lower() in CONSTANTS:
        return CONSTANTS[node.id.lower()]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        value = evaluate(node.operand, depth + 1)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.BinOp):
        return chain(node, depth)
    if isinstance(node, ast.Call):
        return call(node, depth)
    raise ValueError(f"{called(node)} is not arithmetic")


def chain(node: ast.BinOp, depth: int) -> Number:
    """Evaluate 1 + 2 + 3 … of any length, which nests to the left."""
    steps: list[ast.BinOp] = []
    first: ast.expr = node
    while isinstance(first, ast.BinOp):
        steps.append(first)
        first = first.left
    value = evaluate(first, depth + 1)
    for step in reversed(steps):
        if type(step.op) not in OPERATORS:
            raise ValueError(f"{type(step.op).__name__} is no operation here; there are: + - * / // % **")
        value = fits(OPERATORS[type(step.op)](value, evaluate(step.right, depth + 1)))
    return value


def constant(value: object) -> Number:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{str(value)[:40]!r} is no number")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("a number is too large")
    return Fraction(value) if isinstance(value, int) else Fraction(repr(value))


def call(node: ast.Call, depth: int) -> Number:
    name = node.func.id.lower().removeprefix("math.") if isinstance(node.func, ast.Name) else ""
    if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
        name = node.func.attr.lower() if node.func.value.id == "math" else ""
    if name not in FUNCTIONS or node.keywords:
        raise ValueError(f"{called(node.func)} is no function here; there are: {', '.join(FUNCTIONS)}")
    values = [evaluate(argument, depth + 1) for argument in node.args]
    try:
        return fits(FUNCTIONS[name](*values))
    except TypeError:
        raise ValueError(f"{name} does not take {len(values)} values") from None
    except ValueError as error:
        why = str(error).replace("math domain error", "outside of what it is defined for")
        raise ValueError(why if why.startswith(name) else f"{name}: {why}") from None


def called(node: ast.expr) -> str:
    """A function's name for errors, or the type of another expression."""
    return repr(node.id[:40]) if isinstance(node, ast.Name) else type(node).__name__


def fits(value: Number) -> Number:
    """The value itself, or a ValueError for one with too many digits."""
    if isinstance(value, Fraction) and max(bits(value.numerator), bits(value.denominator)) > MAX_BITS:
        raise ValueError("the result has too many digits")
    return value


def bits(value: int) -> int:
    return value.bit_length()


def power(base: Number, exponent: Number) -> Number:
    if isinstance(base, float) or isinstance(exponent, float) or exponent.denominator != 1:
        return root(float(base), float(exponent))
    size = max(bits(base.numerator), bits(base.denominator)) - (base in (0, 1, -1))
    if abs(exponent) * size > MAX_BITS:
        raise ValueError("the result has too many digits")
    return Fraction(base**exponent.numerator)


def root(base: float, exponent: float) -> float:
    if base < 0 and not exponent.is_integer():
        raise ValueError("a root of a negative number is no real number")
    return float(base**exponent)


def square_root(value: Number) -> Number:
    if value < 0:
        raise ValueError("a root of a negative number is no real number")
    if isinstance(value, Fraction):
        exact = Fraction(math.isqrt(value.numerator), math.isqrt(value.denominator))
        if exact * exact == value:
            return exact
    return math.sqrt(value)


def whole(value: Number, limit: int | None = None) -> int:
    if value != int(value) or (limit is not None and not 0 <= value <= limit):
        limits = "" if limit is None else f" from 0 to {limit}"
        raise ValueError(f"takes whole numbers{limits}")
    return int(value)


def modulo(left: Number, right: Number) -> Number:
    return left % right


def of_floats(function: Callable[..., float]) -> Callable[..., Number]:
    return lambda *values: function(*map(float, values))


def of_integers(function: Callable[..., int], limit: int | None = None) -> Callable[..., Number]:
    return lambda *values: Fraction(function(*(whole(value, limit) for value in values)))


def rounded(value: Number, digits: Number = 0.0) -> Number:
    return Fraction(round(Fraction(value), whole(digits + 50, 100) - 50))


OPERATORS: dict[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: lambda left, right: Fraction(left // right),
    ast.Mod: modulo,
    ast.Pow: power,
}
CONSTANTS: dict[str, Number] = {"pi": math.pi, "π": math.pi, "e": math.e}
FUNCTIONS: dict[str, Callable[..., Number]] = {
    "sqrt": square_root,
    "exp": of_floats(math.exp),
    "ln": of_floats(math.log),
    "log": of_floats(math.log),
    "log10": of_floats(math.log10),
    "log2": of_floats(math.log2),
    "sin": of_floats(math.sin),
    "cos": of_floats(math.cos),
    "tan": of_floats(math.tan),
    "asin": of_floats(math.asin),
    "acos": of_floats(math.acos),
    "atan": of_floats(math.atan),
    "abs": abs,
    "round": rounded,
    "floor": lambda value: Fraction(math.floor(value)),
    "ceil": lambda value: Fraction(math.ceil(value)),
    "min": min,
    "max": max,
    "gcd": of_integers(math.gcd),
    "lcm": of_integers(math.lcm),
    "factorial": of_integers(math.factorial, MAX_FACTORIAL),
    "comb": of_integers(math.comb, MAX_FACTORIAL),
}
