"""`problem_form` and `check_answers`: every planted fault is caught, and sound problems stay."""

from __future__ import annotations

import random

import pytest
from planted_faults import ANSWERS, FORM, sound

from foresail.curate.document import Document, Drop
from foresail.curate.problems.answers import CheckAnswers
from foresail.curate.problems.form import ProblemForm
from foresail.curate.problems.form_rules import REASONS, find_faults
from foresail.curate.problems.open_question import ask_openly
from foresail.curate.problems.wording import Wording
from foresail.curate.rows.row import read_row

MADE = 150


def problem(row: dict, name: str = "a") -> Document:
    document = read_row(row, name, "made", "problems")
    assert isinstance(document, Document)
    return document


def reason(step, row: dict) -> str:
    outcome = step(problem(row))
    return outcome.reason if isinstance(outcome, Drop) else ""


def test_sound_problems_stay():
    rng = random.Random(1)
    steps = ProblemForm().open(), CheckAnswers().open()
    for _ in range(MADE):
        row = sound(rng)
        assert [reason(step, row) for step in steps] == ["", ""], row


@pytest.mark.parametrize("fault", sorted(FORM))
def test_a_planted_fault_of_form_is_caught(fault):
    rng, step = random.Random(2), ProblemForm().open()
    for _ in range(MADE // 5):
        row = FORM[fault](sound(rng), rng)
        assert reason(step, row) == fault, row


@pytest.mark.parametrize("fault", sorted(ANSWERS))
def test_a_planted_fault_of_an_answer_is_caught(fault):
    rng, step = random.Random(3), CheckAnswers().open()
    for _ in range(MADE // 5):
        row = ANSWERS[fault](sound(rng), rng)
        assert reason(step, row) in ({fault} if fault == "contradicted" else {"ungradable", "one_form"}), row


def test_two_faults_at_once_are_caught_too():
    rng, step = random.Random(4), ProblemForm().open()
    for _ in range(MADE):
        first, second = rng.sample(sorted(set(FORM) - {"proof", "guessable", "no_answer"}), 2)
        row = FORM[second](FORM[first](sound(rng), rng), rng)
        assert reason(step, row), (first, second, row)


def test_a_flagged_reason_drops_nothing():
    row = {"problem": "Is $7$ a prime number?", "answer": "Yes"}
    outcome = ProblemForm(flag=("guessable",)).open()(problem(row))
    assert isinstance(outcome, Document) and outcome.metadata == {"form": ["guessable"]}
    assert reason(ProblemForm(ignore=("guessable",)).open(), row) == ""
    with pytest.raises(ValueError, match="there is no reason proofs"):
        ProblemForm(flag=("proofs",))


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Find $x$ and $y$ with $x+y=5$ and $x-y=1$.", "(3,2)"),
        ("(a) $n$ is even. (b) $n$ is a square. Find the least such $n > 1$.", "4"),
        ("Find a proof-reading fee of 3 pages at 4 dollars each.", "12"),
        ("Find $f(A)$, $f(B)$ and $f(C)$ if $f$ is constant and $f(A) = 2$.", "2,2,2"),
        ("The graph of $y = x^2$ is shifted up by 3. What is its lowest value?", "3"),
        ("The table below shows sales.\n| a | b |\n|---|---|\n| 1 | 2 |\nWhat is their sum?", "3"),
        ("Points $A$, $B$, $C$ lie on a line. $AB=1$, $BC=2$. How long is $AC$?", "3"),
        ("How many numbers are shown to be prime by trial division up to 10?", "4"),
        ("Joel asks them to figure out which number is larger, $2^3$ or $3^2$. Find it.", "9"),
    ],
)
def test_what_only_looks_like_a_fault_stays(text, answer):
    assert [*find_faults(Wording.of(text, answer))] == []


def test_options_can_be_taken_off():
    row = {"problem": "What is $2 + 3$?\n(A) 4 (B) 5 (C) 6", "answer": "B"}
    assert ask_openly(row, "B") == {"problem": "What is $2 + 3$?", "answer": "5"}
    opened = ProblemForm(choices="open").open()(problem(row))
    assert isinstance(opened, Document) and opened.row is not None
    assert (opened.row["answer"], opened.text, opened.metadata["choices"]) == (
        "5",
        "What is $2 + 3$?",
        "open",
    )
    assert ask_openly({"problem": "Which of these is odd? (A) 4 (B) 5 (C) 6", "answer": "B"}, "B") is None
    assert (
        ask_openly({"problem": "What is $2 + 3$? (A) 4 (B) 5 (C) None of these", "answer": "B"}, "B") is None
    )


def test_opened_problems_have_the_right_answer():
    rng = random.Random(5)
    opened = 0
    for _ in range(MADE):
        row = sound(rng)
        asked = ask_openly(with_options := FORM["choice"](row, rng), with_options["answer"])
        if asked is not None:
            opened += 1
            assert (
                asked["answer"].strip() == row["answer"]
                and asked["problem"].strip() == row["problem"].strip()
            )
    assert opened > MADE // 3


def test_another_language_is_dropped():
    step = ProblemForm(language="en").open()
    german = (
        "Wie viele Äpfel hat Anna jetzt, wenn sie zuerst fünfzehn hatte und danach noch sieben weitere kauft?"
    )
    assert reason(step, {"problem": german, "answer": "22"}) == "language"
    assert reason(step, sound(random.Random(6))) == ""


def test_no_text_makes_the_rules_slow_or_raise():
    rng = random.Random(7)
    pieces = [
        "(A) ",
        "\\(",
        "$",
        "[asy]",
        "1. Find ",
        "as shown ",
        "?",
        "{",
        "\n",
        "\x00",
        "prove ",
        "www.",
        "A) ",
        "é",
        " " * 50,
        "|---|",
    ]
    for _ in range(300):
        text = "".join(rng.choice(pieces) for _ in range(rng.randint(1, 60)))
        assert all(reason in REASONS for reason, _ in find_faults(Wording.of(text, rng.choice(pieces))))
    for piece in pieces:
        [*find_faults(Wording.of(piece * 20_000, piece * 20_000))]
