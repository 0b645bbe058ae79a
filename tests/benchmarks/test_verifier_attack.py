"""A small run of `verifier_attack.py`: no wrong answer passes, and its oracle knows what is wrong."""

import random

import pytest
import verifier_attack
from attack_edits import EDITS, edit
from attack_golds import Gold, kind_of
from attack_oracle import surely_differ

from foresail.records import Verdict

ANSWERS = (
    "42", r"\frac{3}{7}", "-0.25", "1,234", r"2\sqrt{3}", r"\frac{\pi}{4}", "x^2-3x+2", "(2,-5)", "[0,4)",
    r"(-\infty,1)\cup(3,\infty)", r"\{1,2,5\}", "3,-4", "-2<x<7", "x=6", "y=3x-1", r"12\text{ cm}", r"30^\circ",
    r"\text{Tuesday}", "B", "3+4i", r"e^{2x}+1", r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}", "a_{n+1}",
    "2^{10}", r"\sin x+\cos x", "a_1+a_2",
)  # fmt: skip
GOLDS = [Gold(answer, kind_of(answer)) for answer in ANSWERS]
MADE = 15


@pytest.mark.parametrize("name", verifier_attack.CLASSES)
def test_no_wrong_answer_passes(name):
    cases = list(verifier_attack.cases_of(name, GOLDS, MADE, random.Random(name)))
    wrong = [case for case in cases if not case.right]
    _, misjudged, _ = verifier_attack.judge(iter(wrong))
    assert [(outcome.case.response, outcome.case.gold) for outcome in misjudged] == []
    _, rejected, _ = verifier_attack.judge(case for case in cases if case.right)
    assert len(rejected) <= len(cases) // 20


def test_a_verifier_that_accepts_everything_is_caught(monkeypatch):
    monkeypatch.setattr(verifier_attack, "grade", lambda response, gold: Verdict(status="correct", score=1.0))
    cases = verifier_attack.cases_of("edits", GOLDS, MADE, random.Random(0))
    tried, misjudged, _ = verifier_attack.judge(cases)
    assert len(misjudged) == sum(count for _, count in tried.values()) > 300


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (r"\frac{1}{2}", r"\frac{1}{3}"),
        ("|x|", "x"),
        ("(1,2)", "(2,1)"),
        ("(1,2)", "[1,2)"),
        ("1,2", "2,3"),
        (r"(-\infty,1)\cup(2,3]", r"(-\infty,1)\cup(2,3)"),
        ("1<x<3", r"1\le x<3"),
        ("x=5", "y=5"),
        ("a_{n+1}", "a_{n-1}"),
        ("y=2x+1", "y=2x-1"),
        (r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}", r"\begin{pmatrix} 1 & 2 \\ 3 & 5 \end{pmatrix}"),
    ],
)
def test_the_oracle_tells_answers_apart(one, other):
    assert surely_differ(one, other)
    assert not surely_differ(one, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("(x+1)^2", "x^2+2x+1"),
        ("1,2", "2,1"),
        ("1<x<3", "(1,3)"),
        ("y=2x+1", "2y=4x+2"),
        ("1,234", "1234"),
        (r"90^\circ", r"\frac{\pi}{2}"),
        (r"2\frac{1}{3}", r"\frac{7}{3}"),
        (r"\foo{3}", r"\foo{4}"),  # what it cannot read it does not call wrong
    ],
)
def test_the_oracle_calls_nothing_wrong_that_may_be_right(one, other):
    assert not surely_differ(one, other)


@pytest.mark.parametrize("name", EDITS)
def test_each_edit_makes_wrong_answers(name):
    rng = random.Random(0)
    made = [(edit(name, answer, rng), answer) for answer in ANSWERS for _ in range(5)]
    assert any(changed is not None and surely_differ(changed, answer) for changed, answer in made)
