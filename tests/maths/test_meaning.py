"""When two trees mean the same: the parts of the comparison, each with cases that decide it."""

from fractions import Fraction

import pytest

from foresail.maths.meaning.budget import Budget, Exhausted
from foresail.maths.meaning.exact import exact
from foresail.maths.meaning.functions import BeyondLimits, NoValue
from foresail.maths.meaning.matrices import with_matrices_done
from foresail.maths.meaning.numeric import evaluate
from foresail.maths.meaning.real_line import RealSet, same_set
from foresail.maths.meaning.real_sets import regions
from foresail.maths.meaning.rewriting import with_free_signs, without_signs
from foresail.maths.notation.grammar import parse
from foresail.maths.notation.tree import Node


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r"\frac{1}{2}+\frac{1}{3}", Fraction(5, 6)),
        (r"\sqrt{\frac{4}{9}}", Fraction(2, 3)),
        (r"\sqrt[3]{-8}", -2),
        ("8^{2/3}", 4),
        (r"\binom{10}{3}", 120),
        ("5!!", 15),
        (r"\lfloor -2.5 \rfloor", -3),
        (r"\log_2 \frac{1}{8}", -3),
        (r"28\%", Fraction(7, 25)),
    ],
)
def test_exact_values(text: str, value: Fraction | int):
    assert exact(parse(text)) == value


@pytest.mark.parametrize("text", [r"\sqrt2", r"\pi", "1/0", "9^{9^{9}}", "(10^9)!", "x", r"\log 100"])
def test_what_is_not_rational_or_too_large_has_no_exact_value(text: str):
    assert exact(parse(text)) is None


def value(text: str):
    return evaluate(parse(text), {}, Budget())


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (r"\sqrt{8}", r"2\sqrt{2}", True),
        (r"\sin\pi", "0", True),
        (r"e^{2\pi i/3}", r"\frac{-1+i\sqrt3}{2}", True),
        (r"e^{\pi\sqrt{163}}", "262537412640768744", False),  # they differ in the 30th digit
        (r"\frac{\pi}{10^{50}}", r"\frac{3\pi}{10^{50}}", False),
        (r"\frac{\pi}{10^{50}}", "0", False),
    ],
)
def test_values_are_compared_by_their_own_errors(one: str, other: str, equal: bool):
    assert value(one).equals(value(other)) is equal


@pytest.mark.parametrize("text", ["9^{9^{9^{9}}}", "(10^{10})!", r"\sin(10^{99})"])
def test_what_is_too_large_is_not_evaluated(text: str):
    with pytest.raises(BeyondLimits):
        value(text)


def test_poles_and_unknown_names_have_no_value():
    for text in ("1/0", r"\ln 0", r"\infty", "0^0"):
        with pytest.raises(NoValue):
            value(text)
    with pytest.raises(Exhausted):
        evaluate(parse("+".join(["1"] * 400)), {}, Budget(300))


def only_region(tree: Node) -> RealSet:
    found = regions(tree, Budget())
    assert found is not None
    (region,) = found.values()
    return region


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ("x<3", r"(-\infty,3)", True),
        ("-x>-1", "x<1", True),
        (r"1\le|z|\le2", r"[-2,-1]\cup[1,2]", True),
        (r"x\ne0", r"\mathbb{R}\setminus\{0\}", True),
        (r"x^2\le2", r"[-\sqrt2,\sqrt2]", True),
        (r"x^2<2", r"[-\sqrt2,\sqrt2]", False),
        ("(0,1)", "[0,1)", False),
        (r"(0,1)\cup(1,2)", "(0,2)", False),
        (r"(0,2)\cap(1,3)", "(1,2)", True),
        ("x<1 or x>3", r"(-\infty,1)\cup(3,\infty)", True),
    ],
)
def test_sets_of_real_numbers(one: str, other: str, equal: bool):
    first, second = (only_region(parse(text)) for text in (one, other))
    assert same_set(first, second, Budget()) is equal
    assert same_set(second, first, Budget()) is equal


def test_signs_are_chosen_together_unless_they_are_free():
    assert len(without_signs(parse(r"1\pm2\mp3")).args) == 2
    free = with_free_signs(parse(r"\pm1\pm2"))
    assert free is not None
    assert sorted(exact(item) for item in free.args) == [-3, -1, 1, 3]
    assert [exact(item) for item in without_signs(parse(r"\{1\pm2, 7\}")).args] == [3, -1, 7]


def test_matrices_are_multiplied_out():
    one = r"\begin{pmatrix}1&2\\3&4\end{pmatrix}"
    product = with_matrices_done(parse(rf"2{one}\begin{{pmatrix}}0&1\\1&0\end{{pmatrix}}"), Budget())
    assert [[exact(entry) for entry in row.args] for row in product.args] == [[4, 2], [8, 6]]
    determinant = with_matrices_done(parse(r"\begin{vmatrix}1&2\\3&4\end{vmatrix}"), Budget())
    assert exact(determinant) == -2


def test_matrices_that_do_not_fit_stay_a_product():
    one, column = r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", r"\begin{pmatrix}5\end{pmatrix}"
    for text in (column + one, 2 * (column + one), column + one + column, "3" + column + one):
        product = parse(text)
        assert with_matrices_done(product, Budget()) == product
