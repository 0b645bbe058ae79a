import json
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.rewards.extract import extract
from foresail.rewards.math import ballot, grade, read

VERIFIER = Path(__file__).parents[3] / "shared/data/verifier"


@pytest.mark.parametrize(
    ("given_answer", "gold"),
    [
        ("7", "$7$"),
        ("33", "033"),
        ("0.5", r"\dfrac{1}{2}"),
        (r"50\%", "0.5"),
        ("1{,}234", "1234"),
        (r"1\,234\,567", "1234567"),
        (r"11,\! 111,\! 111", "11111111"),
        (r"\$5.00", "5"),
        ("42.", "42"),
        ("４２", "42"),
        ("−42", "-42"),
        (r" 42 \, ", "42"),
        (r"\text{13}", "13"),
        (r"\text{odd}", "odd"),
        ("x + 1", "$x+1$"),
        (r"\left( 1, 2 \right)", "(1,2)"),
        (r"\dfrac{\pi}{2}", r"\frac{\pi}{2}"),
        ("no solution.", r"\text{no  solution}"),
        (r"\(C\)", "C"),
        ("7" * 4400, "7" * 4400),
        ("7" * 1900 + "e500", "7" * 1900 + "0" * 500),
    ],
)
def test_equal_answers(given_answer: str, gold: str):
    assert grade(rf"It is \boxed{{{given_answer}}}.", gold).status == "correct"
    assert grade(rf"It is \boxed{{{gold}}}.", given_answer).status == "correct"


@pytest.mark.parametrize(
    ("given_answer", "gold"),
    [
        ("8", "7"),
        ("50", "0.5"),
        ("1.2", "1,2"),
        ("32, 349", "32349"),
        ("0.333...", "0.333"),
        ("0.3333333333333333", "1/3"),
        ("0.0000001", "0.0000002"),
        ("100000000000000000001", "10^{20}"),
        ("a", "A"),
        ("1 2", "12"),
        (r"7\\8\\9", "789"),
        (r"\text{not }7", "7"),
        (r"7 \text{ or } 8", "7"),
        (r"\frac{7}{0}", "7"),
        ("x²", "x2"),
        (r"\leftarrow", "arrow"),
        ("7" * 4400 + "8", "7" * 4400 + "9"),
    ],
)
def test_different_answers(given_answer: str, gold: str):
    assert grade(rf"\boxed{{{given_answer}}}", gold).status == "wrong"
    assert grade(rf"\boxed{{{gold}}}", given_answer).status == "wrong"


@pytest.mark.parametrize("gold", ["", "  ", "$$", r"\text{}", r"\,"])
def test_an_empty_answer_is_ungradable_whatever_is_said(gold: str):
    for response in ("", r"\boxed{}", r"\boxed{7}", rf"\boxed{{{gold}}}"):
        assert grade(response, gold).status == "ungradable"


@pytest.mark.parametrize(
    "response", ["", "7", r"\boxed{}", r"\boxed{\text{}}", r"\boxed{$$}", r"<think>\boxed{7}"]
)
def test_no_answer_is_unparsable(response: str):
    verdict = grade(response, "7")
    assert (verdict.status, verdict.score) == ("unparsable", 0.0)
    assert ballot(response) is None


def test_detail_tells_what_was_compared_and_how():
    assert grade(r"\boxed{0.5}", "1/2").detail == "boxed 0.5 against 1/2, compared as number"
    assert grade("#### x", "1/2").detail == "hashes x against 1/2, compared as text"
    assert len(grade(r"\boxed{" + "x" * 99_000 + "}", "y" * 99_000).detail) <= 200


def test_the_box_outside_the_thinking_decides():
    response = r"<think>\boxed{7}, hm.</think> It is \boxed{9}."
    assert grade(response, "9").status == "correct"
    assert grade(response, "7").status == "wrong"


# Notations: a value as the people, models and datasets of this field write it.


def decimal(value: Fraction) -> str:
    """decimal(Fraction(-5, 4)) -> "-1.25"; the value must be a whole number of 10**-12."""
    digits = str(abs(int(value * 10**12))).rjust(13, "0")
    return ("-" if value < 0 else "") + f"{digits[:-12]}.{digits[-12:]}".rstrip("0").rstrip(".")


def scientific(value: Fraction, shift: int) -> str:
    return f"{decimal(value * Fraction(10) ** shift)} \\times 10^{{{-shift}}}"


def grouped(value: Fraction, separator: str) -> str:
    whole, _, places = decimal(value).partition(".")
    return f"{int(whole):,}".replace(",", separator) + (f".{places}" if places else "")


def quotient(value: Fraction, factor: int, form: str) -> str:
    return form.format(value.numerator * factor, value.denominator * factor)


@st.composite
def notations(draw: st.DrawFn, value: Fraction) -> str:
    """One of many ways to write `value`, a multiple of 10**-6."""
    way = draw(st.integers(0, 5))
    if way == 0:
        form = draw(st.sampled_from(["{}", "${}$", r"\text{{{}}}", " {} .", r"\displaystyle {}"]))
        return form.format(decimal(value))
    if way == 1:
        return decimal(value * 100) + draw(st.sampled_from(["%", r"\%", r" \%"]))
    if way == 2:
        return scientific(value, draw(st.integers(-6, 6)))
    if way == 3 and abs(value) >= 1:
        return grouped(value, draw(st.sampled_from([",", "{,}", r"\,", " ", r",\!"])))
    form = draw(
        st.sampled_from(["{}/{}", r"\frac{{{}}}{{{}}}", r"\dfrac{{{}}}{{{}}}", r"\tfrac{{{}}} {{{}}}"])
    )
    return quotient(value, draw(st.integers(1, 999)), form)


values = st.builds(
    Fraction, st.integers(-(10**12), 10**12), st.sampled_from([10**power for power in range(7)])
)


@given(st.data(), values)
def test_a_value_in_two_notations_is_equal(data: st.DataObject, value: Fraction):
    one, other = data.draw(notations(value)), data.draw(notations(value))
    assert read(one) == read(other) == ("number", str(value))
    assert grade(rf"\boxed{{{one}}}", other).status == "correct"
    assert ballot(rf"\boxed{{{one}}}") == ballot(f"#### {other}")


@given(st.data(), values, st.integers(-1000, 1000).filter(bool), st.integers(0, 6))
def test_a_perturbed_value_is_not(data: st.DataObject, value: Fraction, change: int, power: int):
    one = data.draw(notations(value))
    other = data.draw(notations(value + Fraction(change, 10**power)))
    assert grade(rf"\boxed{{{one}}}", other).status == "wrong"


pieces = st.sampled_from(
    [
        *(
            "\\boxed{",
            "\\fbox{",
            "\\frac{",
            "\\text{",
            "\\left",
            "\\!",
            "\\",
            "}",
            "{",
            "$",
            "<think>",
            "</think>",
        ),
        *("1", "0", "/", "%", "e9", "^", ",", ".", "-", "x", " ", "\n", "#### ", "½", "٣", "\ud800", "\x00"),
    ]
)


@given(st.lists(pieces | st.text(max_size=5), max_size=40).map("".join), st.text(max_size=20) | pieces)
def test_nothing_raises_and_scores_follow_the_status(response: str, answer: str):
    verdict = grade(response, answer)
    assert verdict.status in {"correct", "wrong", "unparsable", "ungradable"}
    assert verdict.score == float(verdict.status == "correct")
    assert len(verdict.detail) <= 200


short = st.text(alphabet="01./- x$", max_size=4)


@given(short, short)
def test_votes_agree_with_verdicts(one: str, other: str):
    response, gold = f"#### {one}", extract(f"#### {other}")
    if gold is not None and ballot(f"#### {other}") is not None:
        same = ballot(response) == ballot(f"#### {other}")
        assert same == (grade(response, gold.text).status == "correct")


@pytest.mark.parametrize(
    "content",
    [
        *(
            "1" * 99_000,
            "1" + " 000" * 24_000,
            "1" + ",000" * 24_000,
            "." * 99_000,
            "\\!" * 49_000,
            "a " * 49_000,
        ),
        *(
            "\\frac{1}" * 12_000,
            "\\text{" * 14_000 + "}" * 14_000,
            " " * 99_000,
            "$" * 99_000,
            "{,}" * 33_000,
        ),
        *(
            "-" * 99_000,
            "1/" * 49_000,
            "1e" * 49_000,
            "9" * 1999 + "%",
            "1" * 900 + "e500/" + "3" * 900 + "e-500",
        ),
    ],
)
def test_long_boxes_return(content: str):
    # Each takes milliseconds; a reader that backtracks or computes without bounds would hang here.
    assert grade(f"\\boxed{{{content}}}", "7").status in {"wrong", "unparsable"}


# The shared rows. The core must never accept what they call wrong, and must be right where both sides are
# numbers; what only a wider verifier can accept is not asked of it yet.

POLICY = {
    r"$\boxed{28}$ pct",  # 28 stands for 28 % only by the words after the box
    r"\boxed{1} \boxed{2} \boxed{3} \boxed{4} \boxed{5} \boxed{6} \boxed{7}",  # the last of many boxes
}
LAST_BOX_IS_NOT_THE_ANSWER = "The final answer is $10,455$. I hope it is correct."


def verifier_rows() -> list[dict]:
    files = ["hard_cases", "reward_hack_cases", "mathverify_cases"]
    paths = [VERIFIER / f"{name}.jsonl" for name in files]
    if not all(path.exists() for path in paths):
        pytest.skip(f"no verifier rows at {VERIFIER}")
    rows = [json.loads(line) for path in paths for line in path.read_text().splitlines()]
    return [
        row
        for row in rows
        if row["pred"] not in POLICY and not row["pred"].endswith(LAST_BOX_IS_NOT_THE_ANSWER)
    ]


def test_shared_rows_that_are_wrong_are_never_accepted():
    wrong = [row for row in verifier_rows() if not row["expected"]]
    assert len(wrong) > 50
    assert [row for row in wrong if grade(row["pred"], row["gold"]).status == "correct"] == []


def test_shared_rows_of_numbers_are_right():
    rows = [row for row in verifier_rows() if is_about_numbers(row)]
    assert len(rows) >= 40
    assert [
        row for row in rows if (grade(row["pred"], row["gold"]).status == "correct") != row["expected"]
    ] == []


def is_about_numbers(row: dict) -> bool:
    extracted = extract(row["pred"])
    return extracted is not None and read(extracted.text).kind == read(row["gold"]).kind == "number"
