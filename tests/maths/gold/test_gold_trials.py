"""Trials of right answers: equal forms mean the same by another reckoning, wrong ones do not."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.maths.gold.forms import equal_forms, other_answers
from foresail.maths.gold.trials import find_fault, gold_trials
from foresail.maths.verdict import grade

ANSWERS = [
    "42", "-7", "3/4", r"-\frac{5}{8}", "0.125", "(3,-2)", "[1,5)", r"\{1,2,3\}", "2, 3", "x^2+2x-1", r"3\sqrt{2}",
    r"\frac{\pi}{6}",
    r"2^{10}", "x=5", r"x \le 3", r"(-\infty,2)\cup(3,\infty)", r"45^\circ", r"50\%",
    r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", "2:3",
    r"\binom{5}{2}", "10!", "0", "2x", r"\sin x", "1,000", r"\sqrt[3]{7}",
]  # fmt: skip


@pytest.mark.parametrize("answer", ANSWERS)
def test_usual_answers_have_no_fault(answer):
    trials = gold_trials(answer, solution=rf"It is $\boxed{{{answer}}}$.")
    assert find_fault(answer, trials) is None
    assert {trial.against for trial in trials} >= {"itself", "a wrong answer", "its solution"}
    assert sum(not trial.right for trial in trials) >= 1


def value(text: str) -> Fraction:
    """Of what `equal_forms` writes of a number, by no code of ours."""
    text = text.replace(" ", "")
    if text.startswith("-"):
        return -value(text[1:])
    if text.startswith(r"\frac{"):
        top, _, bottom = text[len(r"\frac{") : -1].partition("}{")
        return Fraction(top) / Fraction(bottom)
    return Fraction(text)


@given(st.integers(-999, 999), st.integers(1, 64))
@settings(max_examples=150, deadline=None)
def test_equal_forms_of_numbers_are_equal_and_others_are_not(top, bottom):
    number = Fraction(top, bottom)
    answer = f"{number.numerator}/{number.denominator}" if number.denominator > 1 else str(number)
    assert all(value(form) == number for form in equal_forms(answer))
    others = other_answers(answer)
    assert others and all(value(other) != number for other in others)


@given(st.text(max_size=40), st.text(max_size=40))
@settings(max_examples=150, deadline=None)
def test_no_text_raises(answer, solution):
    fault = find_fault(answer, gold_trials(answer, solution=solution))
    assert fault is None or fault.detail


@pytest.mark.parametrize(
    ("answer", "solution", "reason"),
    [
        ("", None, "ungradable"),
        (r"2007+\frac{\}{p}i2", None, "one_form"),
        (r"\begin{pmatrix}1&2\3&4\frac\end{pmatrix}", None, "one_form"),
        ("-2x-1", r"So $\boxed{2x+1}$ or $\boxed{-2x-1}$.", "contradicted"),
        ("7", r"So $\boxed{8}$.", "contradicted"),
        ("7", "So it is as shown.", None),
        ("Monday", r"$\boxed{\text{Monday}}$", None),
    ],
)
def test_faults(answer, solution, reason):
    fault = find_fault(answer, gold_trials(answer, solution=solution))
    assert (fault.reason if fault else None) == reason


@pytest.mark.parametrize(
    "answer", ["9^{9^{9^9}}", "(" * 200 + "1" + ")" * 200, "1/" * 300 + "1", r"\sqrt{" * 50 + "2" + "}" * 50]
)
def test_monstrous_answers_end(answer):
    find_fault(answer, gold_trials(answer, solution=answer * 20))
    assert grade(r"\boxed{1}", answer).status != "crashed"
