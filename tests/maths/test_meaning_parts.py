"""The parts of a verdict, each by itself: remainders, sign changes, progressions, letters, clocks, nouns."""

from fractions import Fraction

import pytest

from foresail.maths.meaning.budget import Budget, Exhausted
from foresail.maths.meaning.clocks import are_times, same_time
from foresail.maths.meaning.letters import aligned
from foresail.maths.meaning.matrices import with_matrices_done
from foresail.maths.meaning.points import constants, far_points, integer_names, near_points
from foresail.maths.meaning.real_line import Rounded, close, real_value, same_set
from foresail.maths.meaning.real_sets import regions
from foresail.maths.meaning.relations import is_rounded, is_solved
from foresail.maths.meaning.remainders import remainders
from foresail.maths.meaning.rewriting import one_quantity, spelled_out, with_conditions_apart, without_signs
from foresail.maths.meaning.sign_changes import sign_changes
from foresail.maths.notation.grammar import parse
from foresail.maths.notation.nouns import changes_value, names_things
from foresail.maths.notation.number_words import english_numeral
from foresail.maths.notation.tree import heads, number, symbol
from foresail.maths.notation.units import same_noun


@pytest.mark.parametrize("text", ["2^{70000}", "9^{9^9}", "5000!", r"\frac{7^{90000}-1}{6}"])
def test_remainders_see_one_more_at_any_size(text: str):
    one, same, more = (remainders(parse(form), Budget()) for form in (text, f"1+{text}-1", f"{text}+1"))
    assert one is not None
    assert one == same
    assert one != more


def test_remainders_are_told_of_rational_numbers_only():
    assert remainders(parse(r"2^{70000}+\sqrt2"), Budget()) is None
    assert remainders(parse("2^{1/2}"), Budget()) is None
    assert remainders(parse("0^{70000}"), Budget()) is None


@pytest.mark.parametrize(
    ("formula", "changes"),
    [
        ("x^2-5x+6", [2, 3]),
        (r"\frac{x-1}{x+2}", [-2, 1]),
        ("(x-7)^2", [7]),
        ("|x-2|-3", [-1, 5]),
        ("x^2-10^{12}", [-(10**6), 10**6]),
        (r"\frac{1}{x^3}", [0]),
    ],
)
def test_every_sign_change_is_found(formula: str, changes: list[int]):
    found = sign_changes(parse(formula), "x", Budget())
    assert found is not None
    assert set(changes) <= set(found)


def test_irrational_and_double_roots_are_found():
    found = sign_changes(parse(r"(x-\pi)^2(x^2-2)"), "x", Budget())
    assert found is not None
    for root in (r"\pi", r"\sqrt2", r"-\sqrt2"):
        where = real_value(parse(root), Budget())
        assert where is not None
        assert any(close(where, one) for one in found)


def test_other_formulas_have_no_complete_list_of_sign_changes():
    for formula in (r"\sin x", "2^x-8", "x^{13}", "||x|-1|"):
        assert sign_changes(parse(formula), "x", Budget()) is None


def test_exact_numbers_are_told_apart_at_any_distance():
    one = Fraction(1)
    assert not close(one, one + Fraction(1, 10**200))
    assert close(Rounded(one), one + Fraction(1, 10**120))


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ("x>0, x<1", "(0,1)", True),
        ("x>0, x<1", r"\mathbb{R}", False),
        ("x<-1, x>1", r"(-\infty,-1)\cup(1,\infty)", True),
        (r"x\ne1, x\ne-1", r"\mathbb{R}\setminus\{1,-1\}", True),
        (r"x^2>10^{12}", r"\emptyset", False),
        (r"(x-\pi)^2>0", r"\mathbb{R}", False),
    ],
)
def test_a_list_of_conditions_has_one_reading(one: str, other: str, equal: bool):
    first, second = (regions(parse(text), Budget()) for text in (one, other))
    assert first is not None
    assert second is not None
    assert same_set(next(iter(first.values())), next(iter(second.values())), Budget()) is equal


def test_conditions_on_two_unknowns_are_two_sets():
    found = regions(parse(r"x\ge1, y\ge2"), Budget())
    assert found is not None
    assert found.keys() == {"x", "y"}


def test_what_cannot_be_evaluated_is_no_set():
    for text in (r"x>5\text{ cm}", r"x<\frac10", "x>9^{9^9}", r"|x|<\ln(-2)", "x+y<1"):
        assert regions(parse(text), Budget()) is None


@pytest.mark.parametrize("text", ["x<3", "3>x", "1<x<2", "f(x)>0", "1<a+b<2", r"x\in(0,1)", "(0,1)", "-x<3"])
def test_solved_conditions(text: str):
    assert is_solved(parse(text))


@pytest.mark.parametrize(
    "text", ["2x<6", "|x|<3", "x^2<9", "x-1<2", r"\sqrt{x}<3", "x>1, x>2", "x<x+1", "-2<-x<1"]
)
def test_unsolved_conditions(text: str):
    assert not is_solved(parse(text))


def test_formulas_with_corners_are_looked_at_far_away_and_at_their_constants():
    one, other = parse("|x+1000|"), parse("x+1000")
    points = far_points((one, other), frozenset(heads(one)), ["x"], "seed", Budget())
    assert any(point["x"] < -1000 for point in points)
    assert any(point["x"] == -1000 for point in points)
    assert far_points((parse("x^2"), parse("x")), frozenset(["^", "symbol"]), ["x"], "seed", Budget()) == []
    assert constants((one, other), 8, Budget()) == [1000]


def test_letters_of_alternating_signs_are_integers():
    whole = integer_names(parse("(-1)^n"), parse("x"))
    assert whole == {"n"}
    assert all(point["n"].denominator == 1 for point in near_points(["n", "x"], whole, "seed"))


def test_lists_that_go_on_have_one_form():
    def form(text: str) -> tuple:
        return spelled_out(parse(text).args, Budget())

    assert form(r"\{1,2,3,\ldots\}") == form(r"\{1,2,\ldots\}") != form(r"\{1,3,5,\ldots\}")
    assert form(r"\{1,2,\ldots,5\}") == tuple(map(number, range(1, 6)))
    assert form(r"\{1,2,4,8,\ldots\}") == form(r"\{1,2,4,\ldots\}")
    assert form(r"\{1,2,\ldots,n\}") == parse(r"\{1,2,\ldots,n\}").args


def test_free_letters_are_aligned_and_domains_must_agree():
    assert aligned(parse("x^2+c"), parse("x^2+C")) == (parse("x^2+C"), parse("x^2+C"))
    one = aligned(parse(r"n\pi, n\in\mathbb{Z}"), parse(r"k\pi, k\in\mathbb{Z}"))
    assert one == (parse(r"k\pi"), parse(r"k\pi"))
    assert aligned(parse(r"n\pi, n\in\mathbb{N}"), parse(r"k\pi, k\in\mathbb{Z}")) is None
    assert aligned(parse("x+y"), parse("x+z")) == (parse("x+y"), parse("x+z"))
    assert aligned(parse("AD"), parse("AC")) == (parse("AD"), parse("AC"))


def test_times_of_day_are_no_ratios():
    assert are_times(parse("2:40"), parse("1:20"))
    assert not same_time(parse("2:40"), parse("1:20"))
    assert same_time(parse("15:05"), parse("3:05 PM"))
    assert not same_time(parse("3:05"), parse("3:05 PM"))
    assert not are_times(parse("1:2"), parse("2:4"))


def test_quantities_in_two_units_are_one():
    assert one_quantity(parse("1 hour and 30 minutes"), Budget()) == parse("90 minutes")
    assert one_quantity(parse("5'10''"), Budget()) == parse("70 inches")
    assert one_quantity(parse("7 dollars and 50 cents"), Budget()) == parse("7.5 dollars")._replace(
        args=(number(Fraction(15, 2)), "dollars")
    )
    several = parse("30 minutes, 1 hour")
    assert one_quantity(several, Budget()) == several


def test_excluded_values_stand_apart():
    for text in (r"x\ne\pm1", r"x\ne1,-1", r"x\ne1,x\ne-1"):
        apart = with_conditions_apart(without_signs(parse(text)))
        assert apart.head == "list"
        assert {item.args[0] for item in apart.args} == {symbol("x")}
        assert len(apart.args) == 2


@pytest.mark.parametrize(
    ("value", "about", "holds"),
    [("2/3", "0.67", True), ("2/3", "0.66", True), ("2/3", "0.7", True), ("100", "104", False), ("7", "8", False),
     ("1234567", "1230000", True), ("22/7", "3.14", True), ("1/3", "1.3", False)],
)  # fmt: skip
def test_about_means_rounded(value: str, about: str, holds: bool):
    assert is_rounded(Fraction(value), Fraction(about)) is holds


def test_a_long_product_of_matrices_has_a_budget():
    matrix = r"\begin{pmatrix}1&x\\x&1\end{pmatrix}"
    with pytest.raises(Exhausted):
        with_matrices_done(parse(matrix * 20), Budget())
    numbers = r"\begin{pmatrix}1&1\\1&0\end{pmatrix}"
    product = with_matrices_done(parse(numbers * 20), Budget())
    assert product.args[0].args[0] == number(10946)  # a Fibonacci number


@pytest.mark.parametrize(
    "words", ["apples", "cm", "miles per hour", "red balls", "km/h", "square units", "people"]
)
def test_words_that_only_say_what_is_counted(words: str):
    assert names_things(words.replace("/", " / ").split())


@pytest.mark.parametrize(
    "words",
    ["pi", "quadrillion", "elevenths", "below zero", "root three", "squared", "apples thousand", "of ten", "nearly",
     "in debt", "fewer apples", "googol", "fold", "not apples", "kilo", "double hours"],
)  # fmt: skip
def test_words_that_change_a_number(words: str):
    assert not names_things(words.split())


def test_number_words_and_operators_change_values():
    assert all(
        map(changes_value, ["twice", "half", "minus", "Never", "seventeenths", "twenty-five", "trillion"])
    )
    assert not any(map(changes_value, ["area", "answer", "apples", "total"]))


def test_ordinals_are_no_fractions():
    assert english_numeral("three quarters") == Fraction(3, 4)
    assert english_numeral("one third") == Fraction(1, 3)
    assert english_numeral("twenty-fifth") is None
    assert english_numeral("seven elevenths") == Fraction(7, 11)


def test_units_that_no_table_knows_keep_their_shape():
    assert same_noun("red apples", "apple")
    assert not same_noun("gallons per mile", "miles per gallon")
    assert not same_noun("lux^2", "lux")
    assert not same_noun("square tiles", "tiles")
