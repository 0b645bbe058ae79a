"""A sandbox that cannot be started for a moment says nothing of a program; one that never can says why."""

from __future__ import annotations

import errno
import gc
import os
import subprocess
from typing import Any

import pytest

from foresail.judge import judge as judges
from foresail.judge.judge import Judge
from foresail.judge.programs.program import Program, StdinTest
from foresail.judge.sandbox import worker

PROGRAM, TESTS = Program(source="print(input())"), [StdinTest(input="3", output="3")]


def fail_starts(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    popen, failures = subprocess.Popen, [OSError(errno.EMFILE, "Too many open files")] * count

    def start(*arguments: Any, **options: Any) -> Any:
        if failures:
            raise failures.pop()
        return popen(*arguments, **options)

    monkeypatch.setattr(worker.subprocess, "Popen", start)
    monkeypatch.setattr(judges, "RETRY_SECONDS", (0.0,) * len(judges.RETRY_SECONDS))


def test_a_start_that_fails_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with Judge(isolation="none") as judge:
        judge.idle.pop().close()
        fail_starts(monkeypatch, len(judges.RETRY_SECONDS))
        assert [verdict.status for verdict in judge.judge(PROGRAM, TESTS)] == ["correct"]


def test_starts_that_always_fail_tell_why_and_leave_nothing_open(monkeypatch: pytest.MonkeyPatch) -> None:
    with Judge(isolation="none") as judge:
        judge.idle.pop().close()
        gc.collect()
        before = len(os.listdir("/proc/self/fd"))
        fail_starts(monkeypatch, 100)
        for _ in range(2):  # the second is no one's prisoner: the first gave its place back
            with pytest.raises(OSError, match="the sandbox cannot be started: Too many open files"):
                judge.judge(PROGRAM, TESTS)
        gc.collect()
        assert len(os.listdir("/proc/self/fd")) <= before
