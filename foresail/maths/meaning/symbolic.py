"""The worker behind `sympy_process.py`: trees in; `same`, `different`, `unknown` or `timeout` and its calls out.

It imports sympy and fills its tables once, then answers each question in a fork of that state. So a question
costs the same number of calls whatever was asked before. Calls are limited rather than seconds, for they are the
same on an idle, a busy and a slow machine. Counting doubles the time of a question; the filled tables make up for
it. A limit of CPU seconds, far above what the calls take, ends questions that make few but very long calls.
"""

from __future__ import annotations

import gc
import json
import math
import os
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, NoReturn

MEMORY = 4 << 30
# What sympy would work out in few calls and long ones.
LARGEST = 20_000  # bits of a number, and arguments of factorials
LARGEST_ARGUMENT = 1_000  # bits of a number in a root or a function, which sympy tries to factor
MOST_TERMS = 2_000  # of a power of a sum, written out
READY = "ready"


class TooLarge(Exception):
    """A number or a power that sympy would need long to write down."""


def serve() -> None:
    """One question a line until the pipe closes: the calls and CPU seconds it may cost, and two trees."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    fill_tables()
    gc.freeze()  # forks neither search nor copy what is there already
    tell(READY)
    for line in sys.stdin:
        tell(answer_in_fork(line))


def tell(words: str) -> None:
    sys.stdout.write(words + "\n")
    sys.stdout.flush()


def answer_in_fork(question: str) -> str:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        answer(question, writer)
    os.close(writer)
    with open(reader) as pipe:
        words = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return "timeout" if os.WTERMSIG(status) == signal.SIGPROF else "died"
    return words or "died"


def answer(question: str, writer: int) -> NoReturn:
    """Whatever goes wrong is `unknown`. sympy cannot catch the end of the budget: it ends the process."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)  # which kills, also amid a product of large numbers
    used: Callable[[], int] = int
    try:
        calls, seconds, *trees = json.loads(question)
        signal.setitimer(signal.ITIMER_PROF, seconds)
        count, used = countdown(calls, writer)
        sys.setprofile(count)
        words = compare(*trees)
    except Exception:
        words = "unknown"
    sys.setprofile(None)
    end(writer, f"{words} {used()}")


def end(writer: int, words: str) -> NoReturn:
    os.write(writer, words.encode())
    os._exit(0)


def countdown(calls: int, writer: int) -> tuple[Callable[[FrameType, str, Any], None], Callable[[], int]]:
    """For `sys.setprofile`, which tells of each call and each return, Python's and C's; and how many there were."""
    left = 2 * calls

    def count(frame: FrameType, event: str, arg: Any) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            end(writer, "timeout")

    return count, lambda: calls - left // 2


def fill_tables() -> None:
    """What the first sum, integral and limit would pay for: a second once, not for each question."""
    import random

    import sympy
    from sympy.core.random import seed

    random.seed(0)
    seed(0)
    x, k, n = sympy.symbols("x k n")
    for expression in (
        sympy.Sum(k**2, (k, 1, n)),
        sympy.Sum(k / 2**k, (k, 1, sympy.oo)),
        sympy.Sum(1 / k**2, (k, 1, sympy.oo)),
        sympy.Product((k**2 - 1) / k**2, (k, 2, n)),
        sympy.Integral(1 / (1 + x**2), (x, 0, 1)),
        sympy.Integral(sympy.exp(-(x**2)), (x, 0, sympy.oo)),
        sympy.Integral(sympy.exp(x) * sympy.sin(x), x),
        sympy.Limit((1 + 1 / x) ** x, x, sympy.oo),
    ):
        sympy.simplify(expression.doit() - sympy.Rational(7, 3))


def compare(candidate: Any, gold: Any) -> str:
    """By what is left when one is taken from the other; an integral that sympy leaves standing decides nothing."""
    import sympy

    right = to_sympy(gold)
    try:
        left = to_sympy(candidate)
    except TooLarge:
        return "different"
    difference = sympy.simplify(left.doit() - right.doit())
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
    values = [to_sympy(part) for part in args]
    if head not in _ARITHMETIC:
        for value in values:
            _limit_bits(value, LARGEST_ARGUMENT)
    return _limit_bits(_RULES[head](sympy, *values), LARGEST)


def _limit_bits(value: Any, max_bits: int) -> Any:
    if value.is_Rational and max(abs(value.p), value.q).bit_length() > max_bits:
        raise TooLarge
    return value


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
    import sympy

    integrand, variable = _without_differential(body)
    limits = [to_sympy(bound) for bound in bounds]
    place = to_sympy(variable)
    return sympy.Integral(to_sympy(integrand), (place, *limits) if limits else place)


def _without_differential(body: Any) -> tuple[Any, Any]:
    r"""`x^2\,dx` ends on the factors d and x; in `2\sin x\,dx` they stand inside the sine's argument."""
    head, *args = body
    if head == "*" and args[-2] == ["symbol", "d"]:
        *factors, _, variable = args
        return ["*", *factors], variable
    if head != "*" and head not in _OF_ONE:
        raise ValueError("an integral without its variable")
    last, variable = _without_differential(args[-1])
    return [head, *args[:-1], last], variable


def _power(sympy: Any, base: Any, exponent: Any) -> Any:
    if base.is_Rational and exponent.is_Rational and base not in (-1, 0, 1):
        _limit(abs(exponent.p) // exponent.q * max(abs(base.p), base.q).bit_length())
    if base.is_Add and exponent.is_Integer:
        _limit(math.comb(abs(exponent.p) + len(base.args) - 1, len(base.args) - 1), MOST_TERMS)
    if not exponent.is_Integer:
        _limit_bits(base, LARGEST_ARGUMENT)
    _limit_bits(exponent, LARGEST_ARGUMENT)
    return base**exponent


def _factorial(sympy: Any, value: Any) -> Any:
    _limit(value)
    return sympy.factorial(value)


def _binomial(sympy: Any, n: Any, k: Any) -> Any:
    _limit(n)
    return sympy.binomial(n, k)


def _limit(size: Any, limit: int = LARGEST) -> None:
    if getattr(size, "is_number", True) and abs(size) > limit:
        raise TooLarge


def _named(name: str) -> Callable[..., Any]:
    return lambda sympy, *values: getattr(sympy, name)(*values)


_RULES: dict[str, Callable[..., Any]] = {
    "/": lambda sympy, top, bottom: top / bottom,
    "^": _power,
    "neg": lambda sympy, value: -value,
    "!": _factorial,
    "binom": _binomial,
}
_NAMES = {"+": "Add", "*": "Mul", "abs": "Abs", "ln": "log", "ceil": "ceiling"}  # sympy's
_NAMES |= {f"arc{name}": f"a{name}" for name in "sin cos tan cot sinh cosh tanh".split()}
_NAMES |= {name: name for name in "sqrt root log exp floor sin cos tan cot sec csc sinh cosh tanh".split()}
_RULES |= {head: _named(name) for head, name in _NAMES.items()}
_ARITHMETIC = frozenset("+ * / neg ^ ! binom abs floor ceil".split())
_OF_ONE = {"neg"} | _NAMES.keys() - set("+ * abs ceil sqrt root log floor".split())
HEADS = _RULES.keys() | {"number", "symbol", "constant", "opaque", "apply"}
