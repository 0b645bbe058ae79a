"""From text to trees, and from numerals to values."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.maths.meaning.exact import exact
from foresail.maths.notation import numeral
from foresail.maths.notation.answer import read
from foresail.maths.notation.characters import plain
from foresail.maths.notation.grammar import parse
from foresail.maths.notation.number_words import chinese_numeral
from foresail.maths.notation.tree import Node, Unreadable
from foresail.maths.notation.units import measure


def show(node: object) -> str:
    """A tree in brackets: show(parse("2x+1")) -> "(+ (* 2 x) 1)"."""
    if not isinstance(node, Node):
        return str(node)
    if node.head in ("number", "symbol", "constant"):
        return str(node.args[0])
    return f"({' '.join([node.head, *map(show, node.args)])})"


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("2x+1", "(+ (* 2 x) 1)"),
        ("1/2x", "(* (/ 1 2) x)"),
        (r"\frac12", "(/ 1 2)"),
        (r"2\frac{1}{3}", "(+ 2 (/ 1 3))"),
        ("2 1/3", "(+ 2 (/ 1 3))"),
        ("2^3^2", "(^ 2 (^ 3 2))"),
        ("-x^2", "(neg (^ x 2))"),
        (r"\sin^2 x\cos x", "(* (^ (sin x) 2) (cos x))"),
        (r"\cos 2\pi/7", "(cos (/ (* 2 pi) 7))"),
        (r"\sin^{-1} x", "(arcsin x)"),
        (r"\log_2 8", "(log 8 2)"),
        (r"\sqrt[3]{x}", "(root x 3)"),
        (r"x = \pm 3", "(chain x = (pm 0 3))"),
        (r"1 \le x < 3", "(chain 1 <= x < 3)"),
        ("]0,1[", "(() 0 1)"),
        (r"(1,2]", "((] 1 2)"),
        (r"\{1, 2\}", "({} 1 2)"),
        (r"\{x \mid x > 2\}", "(chain x > 2)"),
        ("||y|-1|", "(abs (+ (abs y) (neg 1)))"),
        (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", "(matrix (row 1 2) (row 3 4))"),
        ("1011_2", "(base 1011 2 11)"),
        (r"15\text{ cm}^2", "(unit 15 cm^2)"),
        (r"\$5", "(unit 5 dollars)"),
        ("p=5,q=2;p=7,q=2", "(list (list (chain p = 5) (chain q = 2)) (list (chain p = 7) (chain q = 2)))"),
        (r"2\sinb\cosa", "(* 2 (sin b) (cos a))"),
    ],
)
def test_trees(text: str, tree: str):
    assert show(parse(text)) == tree


@pytest.mark.parametrize(
    "text",
    ["", "3 4", "7?", r"7\\8", "(1", "1)", r"\frac{1}", r"\text{not } 7", "((((" * 60 + "1" + "))))" * 60],
)
def test_what_is_no_mathematics_is_unreadable(text: str):
    with pytest.raises(Unreadable):
        parse(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,234,567.5", Fraction(2469135, 2)),
        ("12,34,567", 1234567),
        ("1.234.567", 1234567),
        ("1 234 567", 1234567),
        ("1'234'567", 1234567),
        (r"0.1\overline{6}", Fraction(1, 6)),
        ("0.(142857)", Fraction(1, 7)),
        ("0.1666...", Fraction(1, 6)),
        (r"0.\dot{1}2\dot{3}", Fraction(41, 333)),
        ("2.5e-3", Fraction(1, 400)),
    ],
)
def test_numerals(text: str, value: Fraction | int):
    assert numeral.value_of(text) == value


def test_python_refuses_long_numerals_and_we_do_not():
    assert numeral.value_of("9" * 9000) == 10**9000 - 1


@pytest.mark.parametrize("text", ["1e99999", "0.314...", "9" * 30_000])
def test_numerals_beyond_the_limits_have_no_value(text: str):
    assert numeral.value_of(text) is None


@given(st.integers(0, 10**12), st.integers(2, 16))
def test_numerals_in_a_base(value: int, base: int):
    digits, rest = "", value
    while rest or not digits:
        digits, rest = "0123456789ABCDEF"[rest % base] + digits, rest // base
    assert numeral.in_base(digits, base) == value


@pytest.mark.parametrize(
    ("text", "value"), [("四十二", 42), ("一百零五", 105), ("两万", 20000), ("二〇二四", 2024), ("十二", 12)]
)
def test_chinese_numerals(text: str, value: int):
    assert chinese_numeral(text) == value
    assert exact(read(text)[0]) == value


def test_commas_are_read_in_every_way_they_may_be_meant():
    assert [show(tree) for tree in read("1,234")] == ["1234", "(list 1 234)"]
    assert [show(tree) for tree in read("(100,200)")] == ["(() 100 200)"]
    assert "5/2" in [show(tree) for tree in read("2,50 €")]


def test_characters_become_latex():
    assert plain("−４２² ≤ ½") == r"-42^{2} \le  \frac{1}{2}"
    assert plain("\text{13}") == r"\text{13}"  # a tab that an escape made of \t


def test_measures():
    assert measure("km/h").dimension == measure("miles per hour").dimension
    assert measure("square feet") == measure("ft^2")
    assert measure("litres").dimension == measure("cm^3").dimension
    assert measure("apples") is None


@given(
    st.from_regex(
        r"-?(\d{1,6}|\d{1,4}\.\d{1,6}|\\[dt]?frac\{-?\d{1,4}\}\{\d{1,4}\})(\\?%)?", fullmatch=True
    ).filter(str.isascii)
)
def test_the_short_way_to_simple_numbers_ends_where_the_grammar_does(text: str):
    assert read(text)[0] == parse(text)
