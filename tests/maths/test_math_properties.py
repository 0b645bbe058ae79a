"""Laws of the maths verifier on drawn answers: notation does not matter, value does, and nothing raises."""

from fractions import Fraction
from math import isqrt

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from notations import (
    coefficients,
    decimal,
    expanded,
    factored,
    fractions,
    is_terminating,
    offsets,
    rationals,
    surds,
    written,
    written_surd,
)

from foresail.maths.verdict import grade
from foresail.records import Verdict

often = settings(max_examples=150, deadline=None)
some = settings(max_examples=60, deadline=None)
ENVIRONMENTS = ("pmatrix", "bmatrix", "matrix")
TEX = [
    r"\frac",
    r"\sqrt",
    r"\boxed",
    r"\left(",
    r"\right)",
    r"\pm",
    r"\text{",
    r"\begin{pmatrix}",
    r"\cup",
    r"\%",
]
TEX += [
    *"{}()[]0123456789xyiep+-*/^_=<>!|,;:.$&\\ \n~",
    "the answer is ",
    "</think>",
    "####",
    "答案是",
    "½",
    "√",
]


def says(response: str, gold: str) -> bool:
    return grade("\\boxed{" + response + "}", gold).status == "correct"


def matrix(rows: list[list[str]], environment: str) -> str:
    body = r" \\ ".join(" & ".join(row) for row in rows)
    return rf"\begin{{{environment}}} {body} \end{{{environment}}}"


def interval_forms(low: str, high: str, closed: tuple[bool, bool]) -> list[str]:
    left, right = "[" if closed[0] else "(", "]" if closed[1] else ")"
    left_sign, right_sign = (r"\le" if end else "<" for end in closed)
    french = ("[" if closed[0] else "]") + f"{low},{high}" + ("]" if closed[1] else "[")
    return [
        f"{left}{low},{high}{right}",
        rf"\left{left}{low}, {high}\right{right}",
        rf"x \in {left}{low},{high}{right}",
        rf"{low} {left_sign} x {right_sign} {high}",
        french,
    ]


@often
@given(rationals, st.data())
def test_a_rational_in_two_notations_is_equal(value, data):
    response, gold = data.draw(written(value)), data.draw(written(value))
    assert says(response, gold)
    assert says(gold, response)


@often
@given(rationals, offsets, st.data())
def test_a_rational_moved_a_little_is_wrong(value, offset, data):
    moved = value + offset
    assume(moved not in (100 * value, value / 100))  # a lone percent sign is a matter of policy
    assume(
        moved not in (1000 * value, value / 1000, 10**6 * value, value / 10**6)
    )  # so is a lone group of three
    assume(len(str(moved.denominator)) < 60)
    response, gold = data.draw(written(moved)), data.draw(written(value))
    assert not says(response, gold)
    assert not says(gold, response)


@often
@given(surds(), st.data())
def test_a_surd_in_two_notations_is_equal(surd, data):
    response, gold = data.draw(written_surd(*surd)), data.draw(written_surd(*surd))
    assert says(response, gold)
    assert says(gold, response)


@often
@given(surds(), surds(), st.data())
def test_different_surds_are_wrong(one, other, data):
    same = (
        one[2] == other[2]
        and Fraction(one[0], one[3]) == Fraction(other[0], other[3])
        and Fraction(one[1], one[3]) == Fraction(other[1], other[3])
    )
    assume(not same)
    assert not says(data.draw(written_surd(*one)), data.draw(written_surd(*other)))


@some
@given(st.integers(2, 10**6).filter(lambda n: isqrt(n) ** 2 != n), st.integers(14, 40))
def test_many_digits_of_a_root_are_right_and_a_wrong_early_digit_is_not(radicand, places):
    digits = isqrt(radicand * 100**places)  # floor(sqrt(radicand) * 10^places)
    root = rf"\sqrt{{{radicand}}}"
    assert says(decimal(Fraction(digits, 10**places)), root)
    assert not says(decimal(Fraction(digits + 10 ** (places - 6), 10**places)), root)
    assert not says(decimal(Fraction(digits // 10 ** (places - 3), 1000)), root)


@some
@given(fractions, fractions, st.data())
def test_complex_numbers_are_compared_by_both_parts(real, imaginary, data):
    assume(imaginary)
    first, second = data.draw(written(real)), rf"\frac{{{imaginary.numerator}}}{{{imaginary.denominator}}}"
    assume("%" not in first)
    gold = f"{first}+{second}i".replace("+\\frac{-", "-\\frac{")
    assert says(rf"{second} i + {first}", gold)
    assert not says(f"{first}-({second})i", gold)


@some
@given(st.lists(st.integers(-9, 9), min_size=1, max_size=6), st.integers(-9, 9).filter(bool), st.data())
def test_a_polynomial_is_its_factors_and_no_other_polynomial(roots, lead, data):
    row, letter = coefficients(roots, lead), data.draw(st.sampled_from("xtnyz"))
    gold, response = expanded(row, letter), factored(data.draw(st.permutations(roots)), lead, letter)
    assert says(response, gold)
    assert says(gold, response)
    place = data.draw(st.integers(0, len(row) - 1))
    row[place] += data.draw(st.integers(-3, 3).filter(bool))
    assert not says(expanded(row, letter), gold)


@some
@given(st.lists(st.integers(-9, 9), min_size=3, max_size=3), st.integers(-6, 6).filter(bool), st.data())
def test_an_equation_is_equal_up_to_a_factor(line, factor, data):
    a, b, c = line
    assume(a and b)
    gold = f"{a}x+{b}y={c}".replace("+-", "-")
    assert says(f"{factor * a}x+{factor * b}y={factor * c}".replace("+-", "-"), gold)
    assert says(f"{a}x={c}-({b})y", gold)
    assert not says(f"{factor * a}x+{factor * b}y={factor * c + 1}".replace("+-", "-"), gold)
    assert not says(f"{a}x+{-b}y={c}".replace("+-", "-"), gold)


@some
@given(st.lists(fractions, min_size=2, max_size=5, unique=True), st.data())
def test_sets_forget_order_and_tuples_do_not(values, data):
    golds = [data.draw(written(value)) for value in values]
    shuffled = data.draw(st.permutations(values))
    responses = [data.draw(written(value)) for value in shuffled]
    assume("%" not in "".join(golds + responses))
    braces = r"\{" + ", ".join(golds) + r"\}"
    assert says(r"\{" + ", ".join(responses) + r"\}", braces)
    assert says("; ".join(responses), braces)
    assert not says(r"\{" + ", ".join(responses[1:]) + r"\}", braces)
    assert not says(r"\{" + ", ".join([*responses, "501"]) + r"\}", braces)
    assert says(f"({', '.join(responses)})", f"({', '.join(golds)})") == (shuffled == values)


@often
@given(fractions, fractions, st.tuples(st.booleans(), st.booleans()), st.data())
def test_intervals_are_equal_only_with_equal_ends(one, other, closed, data):
    assume(one != other)
    low, high = sorted((one, other))

    def draw(low: Fraction, high: Fraction, closed: tuple[bool, bool]) -> str:
        ends = [data.draw(written(end).filter(lambda text: "%" not in text)) for end in (low, high)]
        return data.draw(st.sampled_from(interval_forms(ends[0], ends[1], closed)))

    gold = draw(low, high, closed)
    assert says(draw(low, high, closed), gold)
    assert not says(draw(low, high, (not closed[0], closed[1])), gold)
    assert not says(draw(low, high, (closed[0], not closed[1])), gold)
    assert not says(draw(low, high + 1, closed), gold)


@some
@given(st.integers(1, 4), st.integers(1, 4), st.data())
def test_matrices_are_compared_entry_by_entry(height, width, data):
    values = [[data.draw(fractions) for _ in range(width)] for _ in range(height)]

    def draw(values: list[list[Fraction]]) -> str:
        return matrix(
            [
                [data.draw(written(value).filter(lambda text: "%" not in text)) for value in row]
                for row in values
            ],
            data.draw(st.sampled_from(ENVIRONMENTS)),
        )

    gold = draw(values)
    assert says(draw(values), gold)
    row, column = data.draw(st.integers(0, height - 1)), data.draw(st.integers(0, width - 1))
    moved = [list(entries) for entries in values]
    moved[row][column] += data.draw(offsets)
    assert not says(draw(moved), gold)
    transposed = [list(entries) for entries in zip(*values, strict=True)]
    if height > 1 and width > 1:  # a row for a column is a matter of policy
        assert says(draw(transposed), gold) == (transposed == values)


@often
@given(rationals, rationals, st.data())
def test_the_verdict_on_two_values_is_symmetric(one, other, data):
    assume(one not in (100 * other, other / 100))  # a lone percent sign is a matter of policy
    response, gold = data.draw(written(one)), data.draw(written(other))
    assert says(response, gold) == says(gold, response)


@often
@given(st.one_of(rationals.flatmap(written), surds().flatmap(lambda surd: written_surd(*surd))))
def test_an_answer_is_equal_to_itself_in_every_dress(gold):
    dresses = [
        rf"\boxed{{{gold}}}",
        rf"So $x = \boxed{{ {gold} }}$.",
        rf"<think>\boxed{{12345}}</think> \[\boxed{{{gold}}}\]",
        rf"\boxed{{x = {gold}}}",
    ]
    if "," not in gold:  # (1,100) is a pair
        dresses.append(rf"\boxed{{\left({gold}\right)}}")
    for response in dresses:
        assert grade(response, gold).status == "correct", response
        assert grade(response, f"${gold}$").status == "correct", response


@some
@given(rationals.flatmap(written), rationals.flatmap(written))
def test_alternatives_are_never_paid(one, other):
    assume(not says(one, other))
    for response in (
        rf"\boxed{{{one}}} or \boxed{{{other}}}",
        rf"It is \boxed{{{one}}}. Alternatively, it is \boxed{{{other}}}.",
        rf"\boxed{{{one} \text{{ or }} {other}}}",
    ):
        assert grade(response, other).status != "correct", response
        assert grade(response, one).status != "correct", response


@often
@given(st.one_of(st.text(max_size=60), st.lists(st.sampled_from(TEX), max_size=25).map("".join)), st.data())
def test_nothing_raises(response, data):
    gold = data.draw(st.one_of(st.just(response), st.just("7"), st.text(max_size=30)))
    for text in (response, "\\boxed{" + response + "}"):
        verdict = grade(text, gold)
        assert isinstance(verdict, Verdict)
        assert verdict.score == (1.0 if verdict.status == "correct" else 0.0)


@some
@given(rationals)
def test_the_notations_mean_what_they_say(value):
    """The oracle itself: decimals read back by Fraction."""
    if is_terminating(value):
        assert Fraction(decimal(value)) == value


@some
@given(st.one_of(st.just(""), st.text(alphabet=" $\n\t~", max_size=8)), rationals.flatmap(written))
def test_a_blank_gold_is_ungradable(gold, response):
    assert grade(rf"\boxed{{{response}}}", gold).status == "ungradable"
    assert grade(gold, gold).status == "ungradable"
