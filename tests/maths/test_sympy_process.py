"""A busy machine changes no verdict, and sympy keeps to its limits."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from busy_machine import busy_machine

from foresail.maths.meaning.sympy_process import SYMPY, Undecided
from foresail.maths.notation.grammar import parse
from foresail.maths.verdict import grade

BOOK = sorted((Path(__file__).parent / "cases").glob("*.jsonl"))
TOO_MUCH = r"\sum_{n=1}^{\infty} \frac{\sin n}{n}"
FOR_SYMPY = [  # right answer, response, status
    (r"\sum_{k=1}^{10} k", "55", "correct"),
    (r"\sum_{k=1}^{10} k", "54", "wrong"),
    (r"\sum_{k=1}^{\infty} \frac{1}{k^2}", r"\frac{\pi^2}{6}", "correct"),
    (r"\sum_{k=1}^{n} k^2", r"\frac{n(n+1)(2n+1)}{6}", "correct"),
    (r"\prod_{k=1}^{5} k", "120", "correct"),
    (r"\int_0^1 x^2 dx", r"\frac13", "correct"),
    (r"\int_0^1 x^2 dx", r"\frac14", "wrong"),
    (r"\int_0^{\pi} 3\sin x\,dx", "6", "correct"),
    (r"\int_0^{\infty} e^{-x^2} dx", r"\frac{\sqrt\pi}{2}", "correct"),
    (r"\lim_{x\to 0} \frac{1-\cos x}{x^2}", "0.5", "correct"),
    (r"\int_0^5 \lfloor x \rfloor dx", "10", "ungradable"),
    (TOO_MUCH, "1", "timeout"),
]


def sample_of_the_book() -> list[tuple[str, str]]:
    lines = [line for chapter in BOOK for line in chapter.read_text(encoding="utf-8").splitlines()]
    rows = [json.loads(line) for line in lines[::12]]
    return [(row["pred"], row["gold"]) for row in rows]


def test_a_busy_machine_changes_no_verdict():
    pairs = sample_of_the_book() + [(rf"\boxed{{{given}}}", gold) for gold, given, _ in FOR_SYMPY]
    alone = [grade(*pair) for pair in pairs]
    assert [verdict.status for verdict in alone][-len(FOR_SYMPY) :] == [status for *_, status in FOR_SYMPY]
    assert SYMPY.process is not None
    os.killpg(SYMPY.process.pid, signal.SIGKILL)  # so that its start, too, happens in company
    SYMPY.process.wait()
    with busy_machine():
        assert [grade(*pair) for pair in pairs] == alone


def test_sympy_is_stopped_by_calls_and_remembers_nothing():
    """A question that was asked before is as dear as at first."""
    hard, easy = parse(r"\int_0^1 x^5(1-x)^4 dx"), parse(r"\sum_{k=1}^{10} k")
    for _ in range(2):
        with pytest.raises(Undecided) as undecided:
            SYMPY.ask(parse("1"), hard, calls=20_000).decided()
        assert undecided.value.status == "timeout"
        assert SYMPY.ask(parse("55"), easy, calls=20_000).decided()


def test_sympy_is_stopped_by_its_cpu_time_where_calls_are_few():
    with pytest.raises(Undecided) as undecided:
        SYMPY.ask(parse("1"), parse(TOO_MUCH), calls=10**9, cpu_seconds=0.1).decided()
    assert undecided.value.status == "timeout"


def test_a_huge_number_is_turned_away_before_sympy_works_it_out():
    gold = r"\sum_{k=1}^{10} k"
    for huge in ("9^{9^9}", "(10^9)!", r"\binom{10^9}{5\cdot10^8}"):
        assert not SYMPY.ask(parse(huge), parse(gold)).decided()
    assert SYMPY.ask(parse("1^{10^9}+54"), parse(gold)).decided()
