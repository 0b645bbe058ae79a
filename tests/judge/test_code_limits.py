"""Limits: the same verdict on a busy machine, floods that end at once, compilers that are bounded."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from cpp_bombs import BOMBS, FLOODS

from foresail.judge.judge import Judge
from foresail.judge.programs.program import AssertTest, CallTest, Limits, Program, StdinTest, Test
from foresail.judge.sandbox.watch import Child
from foresail.judge.sandbox.worker import ExitReport, JudgeWorker, Spawn
from foresail.records import Verdict

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++ here")
NOTHING = StdinTest(input="", output="done")


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge() as judge:
        yield judge


# Time.

# Computes for so many seconds of processor time, however long that takes.
WORK = "import time\ndef f(x):\n    while time.process_time() < x: pass\n    return x\n"
TIGHT = Limits(seconds=0.8)


def timed_tests(seconds: float) -> list[tuple[str, Test]]:
    return [
        (f"{WORK}f({seconds})\nprint('done')", NOTHING),
        (WORK, CallTest(function="f", arguments=(seconds,), expected=seconds)),
        (WORK, AssertTest(script=f"assert f({seconds}) == {seconds}")),
    ]


@contextmanager
def busy(processes: int) -> Iterator[None]:
    """So many others that compute all the time."""
    pids = []
    for _ in range(processes):
        pid = os.fork()
        if pid == 0:
            while True:
                pass
        pids.append(pid)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def judge_timed(judge: Judge) -> list[str]:
    jobs = [job for seconds in (0.15, 4.0) for job in timed_tests(seconds)]
    return [judge.judge(Program(source=source), [test], TIGHT)[0].status for source, test in jobs]


def test_a_busy_machine_changes_no_verdict(judge: Judge) -> None:
    """Work of 0.15 seconds takes longer than the limit of 0.8 on the clock when so many share a processor."""
    with busy(6 * (os.cpu_count() or 1)):
        assert judge_timed(judge) == ["correct"] * 3 + ["wrong"] * 3


@pytest.mark.parametrize(
    ("work", "wanted"),
    [
        ("while True: pass", True),
        ("import time; time.sleep(60)", False),
        ("import threading\nthreading.Thread(target=lambda: [None for _ in iter(int, 1)]).start()", True),
        ("import threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()", False),
    ],
    ids=["computes", "sleeps", "a thread computes", "a thread sleeps"],
)
def test_who_wants_a_processor_is_not_idle(work: str, wanted: bool) -> None:
    """By the states of its threads, however little of a processor it gets."""
    source = f"print('begun', flush=True)\n{work}"
    with subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            child = Child(process.pid, 0.0, {"limits": {"processes": 1}, "role": "main"}, [])
            child.pid_in_proc = process.pid
            assert settled(child) is wanted
        finally:
            process.kill()


def settled(child: Child) -> bool:
    """What is said three times in a row, from when the interpreter has begun its work."""
    proc = os.open("/proc", os.O_PATH | os.O_DIRECTORY)
    try:
        said: list[bool] = []
        while len(said) < 3 or len(set(said[-3:])) > 1:
            time.sleep(0.1)
            said.append(child.wants_processor(proc))
        return said[-1]
    finally:
        os.close(proc)


def test_waiting_for_each_other_is_not_idling(judge: Judge) -> None:
    """The program sleeps in the kernel while its test computes, and the other way round."""
    script = "import time\nwhile time.process_time() < 0.3: pass\nassert f(0.3) == 0.3"
    limits = Limits(seconds=3, idle_seconds=0.1)
    assert judge.judge(Program(source=WORK), [AssertTest(script=script)], limits)[0].status == "correct"


def test_the_backstop_is_generous() -> None:
    limits = Limits(seconds=2)
    assert (limits.max_idle_seconds, limits.wall_seconds) == (4.0, 54.0)
    assert Limits(seconds=2, idle_seconds=1).max_idle_seconds == 1


def test_a_flood_that_is_swallowed_ends_too(judge: Judge, ends: list[ExitReport]) -> None:
    source = "import os\nwhile True:\n    try:\n        os.write(1, b'x' * 4096)\n    except OSError:\n        pass"
    assert_flooded(judge.judge(Program(source=source), [NOTHING], FLOODED), ends)


# C++.

FLOODED = Limits(seconds=20, idle_seconds=20, output_bytes=1 << 16)


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> list[ExitReport]:
    """How every process ended that the test starts."""
    seen: list[ExitReport] = []
    run = JudgeWorker.run

    def run_and_tell(self: JudgeWorker, *spawns: Spawn) -> list[ExitReport]:
        ended = run(self, *spawns)
        seen.extend(ended)
        return ended

    monkeypatch.setattr(JudgeWorker, "run", run_and_tell)
    return seen


def assert_flooded(verdicts: list[Verdict], ends: list[ExitReport]) -> None:
    (verdict,) = verdicts
    assert (verdict.status, verdict.detail) == ("wrong", "output limit 65536 bytes")
    assert not ends[-1].timed_out
    assert ends[-1].seconds < FLOODED.seconds / 2  # of processor time


@needs_compiler
@pytest.mark.parametrize("name", FLOODS)
def test_a_flood_ends_at_its_limit(judge: Judge, ends: list[ExitReport], name: str) -> None:
    assert_flooded(judge.judge(Program(source=FLOODS[name], language="cpp"), [NOTHING], FLOODED), ends)


@needs_compiler
@pytest.mark.parametrize("name", BOMBS)
def test_a_compiler_is_bounded(
    judge: Judge, ends: list[ExitReport], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In time, memory and what it writes: a bomb does not compile, and the next program does."""
    limits = Limits(seconds=0.9, memory_mb=256, output_bytes=4 << 20, file_mb=16, files=64, processes=8)
    monkeypatch.setattr("foresail.judge.sandbox.build.BINARY_LIMITS", limits)
    (verdict,) = judge.judge(Program(source=BOMBS[name], language="cpp"), [NOTHING])
    assert verdict.status == "wrong"
    assert verdict.detail.startswith("does not compile")
    assert len(verdict.detail) < 300
    assert ends[-1].seconds < 10  # of processor time, of all of the compiler's processes


@needs_compiler
def test_a_compiler_is_as_good_as_new_after_a_bomb(judge: Judge) -> None:
    source = '#include <cstdio>\nint main() { puts("done"); }'
    assert judge.judge(Program(source=source, language="cpp"), [NOTHING])[0].status == "correct"
