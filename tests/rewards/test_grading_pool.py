"""A pool of processes gives every response a verdict, whatever its grader does."""

from __future__ import annotations

import asyncio
import errno
import gc
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from graders_for_pools import Unloadable, misbehave

from foresail.records import FAILURES, Problem, RunStopped, Verdict, single_turn
from foresail.rewards import pool as pools
from foresail.rewards import starts
from foresail.rewards.pool import GradingPool, describe_exit
from foresail.rewards.queued_grading import PoolClosed

PATIENCE = 300.0
PROBLEM = Problem(id="p", prompt=(), answer="7")


@pytest.fixture
def pool() -> Iterator[GradingPool]:
    with GradingPool(misbehave, workers=2, seconds=PATIENCE) as pool:
        yield pool


def grade(pool: GradingPool, response: str) -> Verdict:
    return pool.submit(PROBLEM, single_turn(response)).result(PATIENCE)


def is_running(pid: int) -> bool:
    """Neither gone nor a zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def wait_until_gone(pid: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while is_running(pid):
        assert time.monotonic() < deadline, f"process {pid} is still there"
        time.sleep(0.01)


def children() -> set[int]:
    """Of all threads of this process, zombies included."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):
            if int(stat.read_text().rpartition(")")[2].split()[1]) == os.getpid():
                found.add(int(stat.parent.name))
    return found


# Verdicts.


def test_who_cancels_beside_an_item_that_kills_its_worker_harms_nobody() -> None:
    with GradingPool(misbehave, workers=1, seconds=PATIENCE) as pool:
        words = ("sleep 0.5", "echo a", "die 3", "echo b", "echo c")  # the others wait for the first
        first, second, *rest = [pool.submit(PROBLEM, single_turn(word)) for word in words]
        assert second.cancel()
        found = [future.result(PATIENCE).status for future in (first, *rest)]
    assert found == ["correct", "crashed", "correct", "correct"]


def test_verdicts_come_back_each_to_its_own_response(pool: GradingPool) -> None:
    futures = [pool.submit(PROBLEM, single_turn(f"echo {number}")) for number in range(300)]
    assert [future.result(PATIENCE).detail for future in futures] == [str(number) for number in range(300)]


def test_grading_happens_elsewhere_and_workers_stay(pool: GradingPool) -> None:
    pids = {grade(pool, "pid").detail for _ in range(20)}
    assert 1 <= len(pids) <= 2 and str(os.getpid()) not in pids


def test_workers_import_nothing_heavy(pool: GradingPool) -> None:
    modules = set(grade(pool, "modules").detail.split())
    assert "foresail.rewards.worker" in modules
    assert modules & {"torch", "numpy", "pydantic", "sympy", "tokenizers", "transformers"} == set()


def test_an_error_is_a_crash_with_its_last_line(pool: GradingPool, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        verdicts = [grade(pool, "raise the roof") for _ in range(3)]
    for verdict in verdicts:
        assert verdict.status == "crashed" and verdict.score == 0.0
        assert verdict.detail.startswith("KeyError: 'the roof' (graders_for_pools.py:")
    (record,) = caplog.records  # the whole traceback, once
    assert "Traceback" in record.getMessage() and "the roof" in record.getMessage()


def test_sys_exit_is_a_crash_and_kills_no_worker(pool: GradingPool) -> None:
    before = [grade(pool, "pid").detail for _ in range(4)]
    verdict = grade(pool, "exit 3")
    assert verdict.status == "crashed" and "SystemExit: 3" in verdict.detail
    assert grade(pool, "pid").detail in before


def test_a_slow_grader_is_a_timeout_and_its_worker_is_replaced() -> None:
    with GradingPool(misbehave, workers=1, seconds=1.0) as pool:
        first = int(grade(pool, "pid").detail)
        for response in ("sleep 600", "spin"):
            verdict = grade(pool, response)
            assert verdict.status == "timeout" and "1 s" in verdict.detail
        assert grade(pool, "echo on").detail == "on"
        wait_until_gone(first)


def test_waiting_in_the_queue_is_no_timeout() -> None:
    with GradingPool(misbehave, workers=1, seconds=2.0) as pool:
        futures = [pool.submit(PROBLEM, single_turn("sleep 0.5")) for _ in range(6)]
        assert {future.result(PATIENCE).status for future in futures} == {"correct"}


def test_a_dead_worker_is_replaced_and_its_item_tried_again(pool: GradingPool, tmp_path: Path) -> None:
    assert grade(pool, f"once {tmp_path / 'mark'}").status == "correct"
    assert (tmp_path / "mark").exists()  # it did die


@pytest.mark.parametrize(
    ("response", "words"), [("die 3", "exit code 3"), ("kill 9", "SIGKILL"), ("kill 11", "SIGSEGV")]
)
def test_an_item_that_kills_again_and_again_is_a_crash(pool: GradingPool, response: str, words: str) -> None:
    others = [pool.submit(PROBLEM, single_turn(f"echo {number}")) for number in range(20)]
    verdict = grade(pool, response)
    assert verdict.status == "crashed" and "died 3 times" in verdict.detail and words in verdict.detail
    assert [other.result(PATIENCE).detail for other in others] == [str(number) for number in range(20)]


def test_a_worker_killed_while_idle_is_not_missed(pool: GradingPool) -> None:
    for _ in range(3):
        os.kill(int(grade(pool, "pid").detail), signal.SIGKILL)
        assert grade(pool, "echo still here").detail == "still here"


def test_every_future_gets_a_verdict_in_a_storm(tmp_path: Path) -> None:
    words = [
        "echo a",
        "raise b",
        "die 1",
        "exit 2",
        "sleep 0.01",
        f"once {tmp_path / 'm'}",
        "kill 15",
    ]
    with GradingPool(misbehave, workers=2, seconds=2.0) as pool:
        futures = [pool.submit(PROBLEM, single_turn(word)) for word in [*words, "spin", *words]]
        statuses = [future.result(PATIENCE * 2).status for future in futures]
    expected = ["correct", "crashed", "crashed", "crashed", "correct", "correct", "crashed"]
    assert statuses == [*expected, "timeout", *expected]


# Starting.


class FailingStarts:
    """Stands for subprocess.Popen: the first starts fail."""

    def __init__(self, failures: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left, self.popen = failures, subprocess.Popen
        monkeypatch.setattr(pools.subprocess, "Popen", self)
        monkeypatch.setattr(starts, "FIRST_DELAY", 0.0001)

    def __call__(self, *arguments: object, **options: object) -> object:
        self.left -= 1
        if self.left >= 0:
            raise OSError(errno.EFAULT, "Bad address") if self.left % 2 else OSError(errno.EMFILE, "No files")
        return self.popen(*arguments, **options)  # type: ignore[call-overload]


def test_a_start_that_fails_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    FailingStarts(starts.MAX_FAILED - 1, monkeypatch)
    with GradingPool(misbehave, workers=1, seconds=PATIENCE) as pool:
        futures = [pool.submit(PROBLEM, single_turn(f"echo {number}")) for number in range(3)]
        assert [future.result(PATIENCE).detail for future in futures] == ["0", "1", "2"]


def test_starts_that_always_fail_tell_their_first_cause_to_all(monkeypatch: pytest.MonkeyPatch) -> None:
    FailingStarts(starts.MAX_FAILED, monkeypatch)
    with GradingPool(misbehave, workers=2, seconds=PATIENCE) as pool:
        waiting = [pool.submit(PROBLEM, single_turn("echo")) for _ in range(3)]
        for future in waiting:
            with pytest.raises(
                RunStopped, match=r"no grading process can be started: .*Bad address.*ulimit -n"
            ):
                future.result(PATIENCE)
        for _ in range(2):  # who comes later hears the cause too
            with pytest.raises(RunStopped, match="Bad address") as later:
                pool.submit(PROBLEM, single_turn("echo"))
            assert isinstance(later.value.__cause__, RunStopped)
            assert isinstance(later.value.__cause__.__cause__, OSError)
    with pytest.raises(RunStopped, match="Bad address"):  # nor does closing hide it
        pool.submit(PROBLEM, single_turn("echo"))


def test_workers_that_are_there_go_on_while_no_more_can_be_started(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with GradingPool(misbehave, workers=2, seconds=PATIENCE) as pool:
        pool.check()
        FailingStarts(1000, monkeypatch)
        futures = [pool.submit(PROBLEM, single_turn("sleep 0.02")) for _ in range(20)]
        assert {future.result(PATIENCE).status for future in futures} == {"correct"}
    assert caplog.text.count("no grading process can be started") == 1


def test_an_error_of_the_pool_itself_is_told_to_those_who_come_later(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(pools, "GradingWorker", broken)
    with GradingPool(misbehave, workers=2, seconds=PATIENCE) as pool:
        with pytest.raises(ZeroDivisionError):
            grade(pool, "echo")
        with pytest.raises(PoolClosed, match="ended by an error: ZeroDivisionError: a bug"):
            pool.submit(PROBLEM, single_turn("echo"))


def test_workers_have_the_variables_of_the_pools_opening(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORESAIL_TEST", "then")
    with GradingPool(misbehave, workers=1, seconds=PATIENCE) as pool:
        monkeypatch.setenv("FORESAIL_TEST", "now")
        assert grade(pool, "env FORESAIL_TEST").detail == "then"


# Loading.


def test_check_passes_for_a_grader_that_loads(pool: GradingPool) -> None:
    pool.check()
    pool.check()  # also when a worker is there already
    assert grade(pool, "echo on").detail == "on"


def test_a_grader_that_cannot_be_loaded_is_told_at_once() -> None:
    with GradingPool(Unloadable("raise no such file"), workers=1, seconds=5) as pool:
        with pytest.raises(ValueError, match="cannot be loaded: KeyError: 'no such file'"):
            pool.check()
        futures = [pool.submit(PROBLEM, single_turn("x")) for _ in range(50)]
        verdicts = {future.result(PATIENCE) for future in futures}
        assert {verdict.status for verdict in verdicts} == {"crashed"}


def test_dying_while_loading_is_a_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starts, "FIRST_DELAY", 0.0001)
    monkeypatch.setattr(starts, "MAX_FAILED", 3)
    with GradingPool(Unloadable("die 4"), workers=1, seconds=5) as pool:
        assert "3 grading processes died while they loaded" in grade(pool, "x").detail
        with pytest.raises(
            ValueError, match="4 grading processes died while they loaded the grader; exit code 4"
        ):
            pool.check()


def test_a_pool_of_none_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        GradingPool(misbehave, workers=0, seconds=1)


# Callers.


def test_many_threads_may_submit(pool: GradingPool) -> None:
    def ask(number: int) -> bool:
        return grade(pool, f"echo {number}").detail == str(number)

    with ThreadPoolExecutor(16) as threads:
        assert all(threads.map(ask, range(200)))


def test_an_event_loop_is_not_blocked(pool: GradingPool) -> None:
    async def both() -> tuple[str, list[str]]:
        order: list[str] = []

        async def slow() -> str:
            verdict = await asyncio.wrap_future(pool.submit(PROBLEM, single_turn("sleep 0.5")))
            order.append("verdict")
            return verdict.status

        async def ticking() -> None:
            await asyncio.sleep(0)
            order.append("tick")

        status, _ = await asyncio.gather(slow(), ticking())
        return status, order

    assert asyncio.run(both()) == ("correct", ["tick", "verdict"])


def test_a_cancelled_future_is_skipped() -> None:
    with GradingPool(misbehave, workers=1, seconds=PATIENCE) as pool:
        first = pool.submit(PROBLEM, single_turn("sleep 0.3"))
        second = pool.submit(PROBLEM, single_turn("die 1"))
        assert second.cancel()
        third = pool.submit(PROBLEM, single_turn("echo c"))
        assert first.result(PATIENCE).status == "correct" and third.result(PATIENCE).detail == "c"
        with pytest.raises(CancelledError):
            second.result(PATIENCE)


# Leaving nothing behind.


def test_closing_kills_everything_and_tells_those_who_wait(tmp_path: Path) -> None:
    pool = GradingPool(misbehave, workers=2, seconds=600)
    idle = int(grade(pool, "pid").detail)
    running = pool.submit(PROBLEM, single_turn(f"child {tmp_path / 'child'}"))
    queued = [pool.submit(PROBLEM, single_turn("sleep 600")) for _ in range(5)]
    while not (tmp_path / "child").exists() or not (tmp_path / "child").read_text():
        time.sleep(0.01)
    pool.close()
    for future in (running, *queued):
        with pytest.raises(PoolClosed):
            future.result(PATIENCE)
    wait_until_gone(idle)
    wait_until_gone(int((tmp_path / "child").read_text()))  # what a worker started goes with it
    with pytest.raises(PoolClosed, match="open a new one"):
        pool.submit(PROBLEM, single_turn("echo"))
    pool.close()  # again does nothing


def test_a_pool_that_was_never_used_starts_nothing() -> None:
    before = children()
    with GradingPool(misbehave, workers=4, seconds=PATIENCE) as pool:
        assert children() == before
        worker = int(grade(pool, "pid").detail)
        assert children() == before | {worker}  # one item, one worker
    assert children() == before


def test_no_zombies_threads_or_descriptors_are_left() -> None:
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    gc.collect()
    before, threads, processes = descriptors(), threading.active_count(), children()
    for _ in range(3):
        with GradingPool(misbehave, workers=2, seconds=1.0) as pool:
            futures = [
                pool.submit(PROBLEM, single_turn(word)) for word in ("echo", "die 1", "spin", "raise", "echo")
            ]
            assert sum(future.result(PATIENCE).status in FAILURES for future in futures) == 3
    assert (descriptors(), threading.active_count(), children()) == (before, threads, processes)


def test_workers_die_with_a_process_that_is_killed(tmp_path: Path) -> None:
    """Even while a grader spins: nobody is there to close the pool."""
    script = tmp_path / "holder.py"
    script.write_text(
        "import sys\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from graders_for_pools import misbehave\n"
        "from foresail.records import Problem, single_turn\n"
        "from foresail.rewards.pool import GradingPool\n"
        "pool = GradingPool(misbehave, workers=1, seconds=600)\n"
        "problem = Problem(id='', prompt=(), answer='')\n"
        "print(pool.submit(problem, single_turn('pid')).result().detail, flush=True)\n"
        "pool.submit(problem, single_turn('spin')).result()\n"
    )
    root = str(Path(__file__).parents[2])
    env = {**os.environ, "PYTHONPATH": root}
    with subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, text=True, env=env
    ) as holder:
        assert holder.stdout is not None
        worker = int(holder.stdout.readline())
        assert is_running(worker)
        holder.kill()
    wait_until_gone(worker)


def test_a_process_that_just_ends_needs_no_close(tmp_path: Path) -> None:
    """And a script without `if __name__ == "__main__"` is not run again by its workers."""
    script = tmp_path / "plain.py"
    script.write_text(
        "from foresail.records import Problem, single_turn\n"
        "from foresail.rewards.grader import LastResponse, grade_exact\n"
        "from foresail.rewards.pool import GradingPool\n"
        "print('once')\n"
        "pool = GradingPool(LastResponse(grade_exact), workers=2, seconds=60)\n"
        "print(pool.submit(Problem(id='', prompt=(), answer='7'), single_turn('7')).result().status)\n"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, env=env, timeout=PATIENCE)
    assert (done.returncode, done.stdout) == (0, "once\ncorrect\n"), done.stderr


def test_exit_codes_in_words() -> None:
    assert describe_exit(3) == "exit code 3"
    assert describe_exit(-11) == "killed by SIGSEGV"
    assert describe_exit(-9) == "killed by SIGKILL, perhaps for want of memory"
    assert describe_exit(-250) == "killed by signal 250"
