"""Verdicts beside four processes that take all they can get are the verdicts of an idle machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from graders_for_pools import obey

from foresail.records import Problem
from foresail.rewards.math import grade
from foresail.rewards.meaning.last_resort import ASSISTANT, Undecided
from foresail.rewards.notation.grammar import parse
from foresail.rewards.pool import GradingPool
from foresail.rewards.time_limit import PATIENCE, TimeLimit, seconds_without_core

PROBLEM = Problem(id="p", prompt=(), answer="7")
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


@contextmanager
def busy_machine(processes: int = 4) -> Iterator[None]:
    spinning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()


def sample_of_the_book() -> list[tuple[str, str]]:
    lines = [line for chapter in BOOK for line in chapter.read_text(encoding="utf-8").splitlines()]
    rows = [json.loads(line) for line in lines[::12]]
    return [(row["pred"], row["gold"]) for row in rows]


def test_a_busy_machine_changes_no_verdict():
    pairs = sample_of_the_book() + [(rf"\boxed{{{given}}}", gold) for gold, given, _ in FOR_SYMPY]
    alone = [grade(*pair) for pair in pairs]
    assert [verdict.status for verdict in alone][-len(FOR_SYMPY) :] == [status for *_, status in FOR_SYMPY]
    assert ASSISTANT.process is not None
    os.killpg(ASSISTANT.process.pid, signal.SIGKILL)  # so that its start, too, happens in company
    ASSISTANT.process.wait()
    with busy_machine():
        assert [grade(*pair) for pair in pairs] == alone


def test_sympy_is_stopped_by_calls_and_remembers_nothing():
    """A question that was asked before is as dear as at first."""
    hard, easy = parse(r"\int_0^1 x^5(1-x)^4 dx"), parse(r"\sum_{k=1}^{10} k")
    for _ in range(2):
        with pytest.raises(Undecided) as undecided:
            ASSISTANT.same(parse("1"), hard, calls=20_000)
        assert undecided.value.status == "timeout"
        assert ASSISTANT.same(parse("55"), easy, calls=20_000)


def test_sympy_is_stopped_by_its_cpu_time_where_calls_are_few():
    with pytest.raises(Undecided) as undecided:
        ASSISTANT.same(parse("1"), parse(TOO_MUCH), calls=10**9, cpu_seconds=0.1)
    assert undecided.value.status == "timeout"


def test_a_huge_number_is_turned_away_before_sympy_works_it_out():
    gold = r"\sum_{k=1}^{10} k"
    for huge in ("9^{9^9}", "(10^9)!", r"\binom{10^9}{5\cdot10^8}"):
        assert not ASSISTANT.same(parse(huge), parse(gold))
    assert ASSISTANT.same(parse("1^{10^9}+54"), parse(gold))


# Time limits of graders that somebody else wrote.


def test_waiting_for_a_core_is_no_timeout():
    """One core for five: 0.3 CPU seconds take 1.5 s, which a limit of 0.8 s must bear, and none is endless."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        with busy_machine(), GradingPool(obey, workers=1, seconds=0.8) as pool:
            statuses = [pool.submit(PROBLEM, word).result(120).status for word in ("compute 0.3", "spin")]
    finally:
        os.sched_setaffinity(0, cores)
    assert statuses == ["correct", "timeout"]


def test_sleeping_counts_as_on_any_machine():
    limit = TimeLimit(os.getpid(), seconds=0.05)
    assert 0 < limit.left() <= 0.05
    while limit.left() > 0:
        time.sleep(0.01)
    assert time.monotonic() - limit.began >= 0.05


def test_a_limit_ends_after_its_patience_even_without_a_core(monkeypatch: pytest.MonkeyPatch):
    limit = TimeLimit(os.getpid(), seconds=1.0)
    monkeypatch.setattr("foresail.rewards.time_limit.seconds_without_core", lambda pid: 1e6)
    limit.began -= 5
    assert limit.left() == pytest.approx(PATIENCE - 5, abs=0.9)
    limit.began -= 5
    assert limit.left() == 0


def test_where_the_system_tells_nothing_the_clock_decides():
    assert seconds_without_core(2**30) == 0.0
