"""The calculator: right where Python is right, and bounded whatever it is asked."""

from __future__ import annotations

import asyncio
import math
import random
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.agents.tools.calculator import FUNCTIONS, calculate, calculator
from foresail.agents.tools.tool import tool_of


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1 + 2 * 3", "7"),
        ("(1/3 + 1/6) * 2", "1"),
        ("0.1 + 0.2", "0.3"),
        ("2^10", "1024"),
        ("7 × 8 − 6 ÷ 3 =", "54"),
        ("10 / 4", "2.5"),
        ("1/3", "0.333333333333333"),
        ("sqrt(16/9)", "1.33333333333333"),
        ("sqrt(2)", "1.4142135623731"),
        ("2**-2", "0.25"),
        ("-7 // 2", "-4"),
        ("-7 % 3", "2"),
        ("math.factorial(20) / factorial(18)", "380"),
        ("round(2.567, 1)", "2.6"),
        ("1e-9", "1e-9"),
        ("2**100", str(2**100)),
        ("1_000 * 3", "3000"),
        ("8 ** (1/3)", "2"),
        ("max(1, 2.5, 2)", "2.5"),
        ("0 ** 0", "1"),
        ("1 ** 10**9", "1"),
        ("1" + "+1" * 400, "401"),
        ("2 * PI", "6.28318530717959"),
    ],
)
def test_values(expression: str, value: str) -> None:
    assert calculate(expression) == value


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("9**9**9", "too many digits"),
        ("9**9**9**9", "too many digits"),
        ("2 ** -(10**9)", "too many digits"),
        ("10**3000 * 10**3000 * 10**3000", "too many digits"),
        ("factorial(factorial(10))", "factorial: takes whole numbers from 0 to 1000"),
        ("exp(1000)", "too large"),
        ("1e999", "too large"),
        ("10.5 ** 10000", "too many digits"),
        ("2.5 ** 900.5", "too large"),
        ("1/0", "division by zero"),
        ("0 ** -1", "division by zero"),
        ("sqrt(-1)", "negative"),
        ("(-8) ** 0.5", "negative"),
        ("ln(0)", "ln: outside"),
        ("__import__('os')", "is no function here"),
        ("().__class__", "is not arithmetic"),
        ("'a' * 10**9", "is no number"),
        ("True + 1", "is no number"),
        ("x + 1", "'x' is not arithmetic"),
        ("1 if 2 else 3", "is not arithmetic"),
        ("sin()", "sin"),
        ("sqrt(1, 2)", "does not take 2 values"),
        ("", "no arithmetic expression"),
        ("1 +", "no arithmetic expression"),
        ("1" * 1001, "longer than 1000"),
        ("(" * 500 + "1" + ")" * 400, "no arithmetic expression"),
        ("-" * 900 + "1", "nested deeper"),
        ("x" + ".x" * 450, "not arithmetic"),
        ("()" + "[0]" * 320, "is no function here"),
        ("1 | 2", "BitOr is no operation here"),
        ("round(1, 10**9)", "round"),
    ],
)
def test_what_cannot_be_computed_says_why(expression: str, said: str) -> None:
    with pytest.raises(ValueError, match=r".") as raised:
        calculate(expression)
    assert said in str(raised.value) and len(str(raised.value)) < 300


PARTS = [*"0123456789+-*/()., ^%", "**", "//", "1e9", "9**9", "e", "pi", *(f"{name}(" for name in FUNCTIONS)]


@settings(max_examples=500, deadline=None)
@given(st.lists(st.sampled_from(PARTS), max_size=14).map("".join) | st.text(max_size=20))
def test_every_expression_has_a_value_or_a_reason(expression: str) -> None:
    with suppress(ValueError):
        assert calculate(expression)


def test_it_computes_what_python_computes() -> None:
    rng = random.Random(3)

    def make(depth: int) -> str:
        if depth == 0 or rng.random() < 0.2:
            return rng.choice([str(rng.randint(0, 99)), f"{rng.uniform(0, 9):.2f}", "pi"])
        return f"({make(depth - 1)} {rng.choice('+-*/')} {make(depth - 1)})"

    for _ in range(300):
        expression = make(4)
        try:
            expected = eval(expression, {"pi": math.pi})
        except ZeroDivisionError:
            continue
        assert float(calculate(expression)) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_the_tool_answers_a_mistake() -> None:
    answer = asyncio.run(tool_of(calculator).call({"expression": "1/0"}))
    assert answer.text == "error: ValueError: division by zero"
