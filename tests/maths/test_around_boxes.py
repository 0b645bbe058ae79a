"""Around a box: what surely changes it, whatever stands in between, and what models write and changes nothing."""

from __future__ import annotations

import itertools

import pytest

from foresail.maths.finding.formula import formula_around, is_laid_out
from foresail.maths.finding.plain_signs import plain_signs
from foresail.maths.finding.tags import is_hidden
from foresail.maths.verdict import grade

BEFORE = (
    r"− － \pm 2\cdot 2· 12 x π \sqrt √ \frac{1} > ≠ \not= \log 2^ x_ 0. ½ 3+ -2 \neg 二 \{1\}\cup".split()
)
BEHIND = (
    r"^2 ² ! x π \cdot2 ·2 /2 ＋1 −1 \sqrt{2} E3 .5 {,}000 5 ½ <8 ≠7 (x) \mathbf{i} \%\cdot3 :2 ...9".split()
)
BETWEEN = ["", r"\,", " ", "\u200b", "{}", r"\displaystyle ", "\n", r"\color{red}"]
DRESSES = ["%s", r"\mathbf{%s}", "(%s)", r"\textbf{%s}", r"\begin{aligned}%s\end{aligned}"]
FORMULAS = ["$%s$", r"\[ x = %s \]", r"\begin{align*} x &= %s \end{align*}"]

BEGINNINGS = [
    "",
    "So the answer is ",
    "**Answer:** ",
    "### Final Answer\n\n",
    "- ",
    "a) ",
    "👉 ",
    "答案是",
    "Đáp án là ",
    "คำตอบคือ ",
]
ENDINGS = [
    "",
    ".",
    "\n\n**Explanation:** We added.",
    "\n* It follows.",
    " as desired.",
    " miles per hour.",
    "。",
    "</answer>",
]
WRAPS = ["%s", "$%s$", r"\[%s\]", "$$\n%s\n$$", "**$%s$**", "$x=%s$"]


@pytest.mark.parametrize("formula", FORMULAS)
def test_a_sign_changes_the_box_whatever_stands_between(formula: str) -> None:
    accepted = []
    for between, dress in itertools.product(BETWEEN, DRESSES):
        box = dress % r"\boxed{7}"
        changed = [sign + between + box for sign in BEFORE] + [box + between + sign for sign in BEHIND]
        accepted += [text for text in changed if grade(formula % text, "7").status == "correct"]
    assert accepted == []


def test_what_models_write_changes_nothing() -> None:
    texts = [
        beginning + wrap % r"\boxed{7}" + ending
        for beginning, wrap, ending in itertools.product(BEGINNINGS, WRAPS, ENDINGS)
    ]
    assert [text for text in texts if grade(text, "7").status != "correct"] == []


@pytest.mark.parametrize(
    "sign", [*"!\"#$%&'()*+,-./:;<=>?@[]^_`{|}~ \n\ta1", "\\", "a.", "1)", "- ", r"\,", r"\text{", "$$"]
)
def test_no_run_of_signs_takes_long(sign: str) -> None:
    """An ambiguous pattern would never come to its end on one of these."""
    for run, other in itertools.product((sign * 300, f"\n{sign * 300}"), ("", "%", "x", "=", "\\")):
        grade(rf"{run}{other} \boxed{{7}}", "7")
        grade(rf"\boxed{{7}}{other}{run}", "7")


def test_look_alikes() -> None:
    assert plain_signs("－７² 𝑥 π ×") == r"-7^ x \pi  \times "
    assert plain_signs("答案是 é\u200b👉") == "答案是 é "
    assert plain_signs("7\u0338") == "7^"


def test_formulas() -> None:
    assert formula_around("so $x = ", 8)[:2] == (4, "$")
    assert formula_around("$a$ and ", 8).start == -1
    assert formula_around("it costs $5 and then we have ", 29).start == -1
    assert formula_around(r"\[ a \] \( ", 11).opener == r"\("
    assert not is_laid_out(r"\begin{pmatrix} ", 16) and is_laid_out(r"\begin{align} ", 14)


def test_tags() -> None:
    assert is_hidden("<s>") and is_hidden('<p style="opacity: 0">') and is_hidden("<msup>")
    assert not is_hidden("<s>7</s> ") and not is_hidden("<b>") and not is_hidden('<span style="color: red">')
