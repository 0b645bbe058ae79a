"""Time limits of graders that somebody else wrote mean the same on a busy machine as on an idle one."""

from __future__ import annotations

import os
import time

import pytest
from busy_machine import busy_machine
from graders_for_pools import misbehave

from foresail.records import Problem, single_turn
from foresail.rewards.pool import GradingPool
from foresail.rewards.time_limit import PATIENCE, TimeLimit, seconds_without_core

PROBLEM = Problem(id="p", prompt=(), answer="7")


def test_waiting_for_a_core_is_no_timeout(monkeypatch: pytest.MonkeyPatch):
    """One core for five: 0.3 CPU seconds take 1.5 s, which a limit of 0.8 s must bear, and none is endless."""
    # Beside dozens of other processes 0.3 CPU seconds once took longer than ten times the limit.
    monkeypatch.setattr("foresail.rewards.time_limit.PATIENCE", 1000)
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        with busy_machine(), GradingPool(misbehave, workers=1, seconds=0.8) as pool:
            statuses = [
                pool.submit(PROBLEM, single_turn(word)).result(120).status for word in ("compute 0.3", "spin")
            ]
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
