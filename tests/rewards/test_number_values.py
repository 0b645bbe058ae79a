from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.rewards.number import MAX_EXPONENT, MAX_LENGTH, parse_number


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7),
        ("007", 7),
        ("-7", -7),
        ("- 7", -7),
        ("+7", 7),
        (" 7 ", 7),
        ("42.", 42),
        ("1,234,567", 1234567),
        ("1 234 567", 1234567),
        ("1,234.5", Fraction(2469, 2)),
        ("0.1", Fraction(1, 10)),
        (".5", Fraction(1, 2)),
        ("3/4", Fraction(3, 4)),
        ("-3 / 4", Fraction(-3, 4)),
        ("1.5/2", Fraction(3, 4)),
        (r"\frac{3}{4}", Fraction(3, 4)),
        (r"-\frac{3}{4}", Fraction(-3, 4)),
        (r"\frac{-3}{4}", Fraction(-3, 4)),
        (r"\frac{3}{-4}", Fraction(-3, 4)),
        (r"\frac34", Fraction(3, 4)),
        (r"\frac 34", Fraction(3, 4)),
        (r"\frac{1,000}{3}", Fraction(1000, 3)),
        ("50%", Fraction(1, 2)),
        ("12.5 %", Fraction(1, 8)),
        ("1e3", 1000),
        ("2.5E-1", Fraction(1, 4)),
        (r"3\times10^{-8}", Fraction(3, 10**8)),
        (r"3 \times 10^{8}", 3 * 10**8),
        (r"3\cdot10^8", 3 * 10**8),
        ("3*10^8", 3 * 10**8),
        ("10^{20}", 10**20),
        (r"3\times10^2/4", 75),
        ("1/10^3", Fraction(1, 1000)),
        ("-10^3", -1000),
        ("123456789" * 100, int("123456789" * 100)),
    ],
)
def test_hand_cases(text: str, value: Fraction | int):
    assert parse_number(text) == value


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", ".", "-", "+", "%", "/", "e5", "x", "7x", "--7", "+-7", "1 2", "1,2", "1,22", "0,123"),
        *("12,34", "1,2345", "1234,567", "1,234 567", "1, 234", "1.2.3", "1/2/3", "1/0", "1/", "/2", "0/0"),
        *(
            r"\frac{1}{0}",
            r"\frac{}{}",
            r"\frac{1}",
            r"1\frac{1}{2}",
            "1 1/2",
            "50%%",
            "%50",
            "1_000",
            "0x10",
        ),
        *(
            "inf",
            "nan",
            "1e",
            "1e1.5",
            "10^",
            "2^3",
            "10^{20}+1",
            "(7)",
            "7?",
            "٣",
            "x10",
            "7e5e5",
            r"1/2\times10^3",
        ),
    ],
)
def test_what_is_not_a_number(text: str):
    assert parse_number(text) is None


def test_bounds_are_kept_before_the_arithmetic():
    assert parse_number("9" * MAX_LENGTH) == 10**MAX_LENGTH - 1
    assert parse_number("9" * (MAX_LENGTH + 1)) is None
    assert parse_number(f"1e{MAX_EXPONENT}") == 10**MAX_EXPONENT
    assert parse_number(f"1e-{MAX_EXPONENT + 1}") is None
    assert parse_number("1e999999999999999") is None
    assert parse_number("10^{999999999}") is None


def test_the_largest_number_can_still_be_written_out():
    largest = parse_number(r"\frac{" + "9" * 1950 + "e500/1e-500}{1e-500/1e500}%")
    assert largest is not None
    assert len(str(largest)) > 3900  # Python refuses at 4300


@given(st.text(alphabet="0123456789.,%/+-eE^*{} \\fractimes", max_size=30))
def test_a_plain_decimal_reads_as_python_reads_it(text: str):
    try:
        expected = Fraction(text) if not set(text) - set("0123456789.+-eE") else None
    except ValueError:
        expected = None
    value = parse_number(text)
    if expected is not None and abs(int(text.lower().partition("e")[2] or 0)) <= MAX_EXPONENT:
        assert value == expected
    assert value is None or isinstance(value, Fraction)
