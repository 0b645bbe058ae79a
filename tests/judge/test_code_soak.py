"""Thousands of mixed runs leave memory, descriptors and processes as they were.

FORESAIL_SOAK=10000 runs the long one.
"""

from __future__ import annotations

import gc
import os
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from attack_programs import PRELUDE
from process_table import descendants

from foresail.judge.judge import Judge
from foresail.judge.programs.program import AssertTest, CallTest, Limits, Program, StdinTest, Test

RUNS = int(os.environ.get("FORESAIL_SOAK", "600"))
LIMITS = Limits(seconds=3, memory_mb=64, file_mb=4, files=16)  # a virtual machine's clocks may jump
SHORT = Limits(seconds=0.2, idle_seconds=0.2, memory_mb=64, file_mb=4, files=16)
ECHO = StdinTest(input="3", output="3")

# Program, test, and what must be said of them, every time.
MIX: list[tuple[str, Test, str]] = [
    ("print(input())", ECHO, "correct"),
    ("print(input())", ECHO, "correct"),
    ("print(4)", ECHO, "wrong"),
    ("1 / 0", ECHO, "wrong"),
    ("def f(x): return [x] * x", CallTest(function="f", arguments=(3,), expected=[3, 3, 3]), "correct"),
    ("def f(x): return x", CallTest(function="f", arguments=(3,), expected=4), "wrong"),
    ("def f(x): return x + 1", AssertTest(script="assert f(1) == 2\nassert f(2) == 3"), "correct"),
    ("def f(x): return x", AssertTest(script="assert f(1) == 2"), "wrong"),
    ("import os\ndef f(x): os._exit(0)", AssertTest(script="assert f(1) == 2"), "wrong"),
    ("print(input())", AssertTest(script="assert ("), "ungradable"),
    ("x = bytearray(1 << 30)", ECHO, "wrong"),
    ("while True: print('x' * 10000)", ECHO, "wrong"),
    ("open('f', 'wb').write(bytes(1 << 24))", ECHO, "wrong"),
    ("import os\nfor n in range(99): os.mkdir(str(n))", ECHO, "wrong"),
    (PRELUDE + "ctypes.string_at(0)", ECHO, "wrong"),
    ("import os\nos.fork()", ECHO, "wrong"),
    ("print(3", ECHO, "wrong"),
]
HANGING = [("while True: pass", ECHO, "wrong"), ("import time\ntime.sleep(9)", ECHO, "wrong")]


def resident_kb(pid: int) -> int:
    return int(Path(f"/proc/{pid}/status").read_text().partition("VmRSS:")[2].split()[0])


def open_files(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def run(judge: Judge, count: int, seed: int) -> None:
    choose = random.Random(seed)
    jobs = [choose.choice(MIX if number % 50 else HANGING) for number in range(count)]

    def status(job: tuple[str, Test, str]) -> str:
        limits = SHORT if job in HANGING else LIMITS
        return judge.judge(Program(source=job[0]), [job[1]], limits)[0].status

    with ThreadPoolExecutor(judge.workers) as threads:
        assert list(threads.map(status, jobs)) == [status for _, _, status in jobs]


def measure(processes: set[int]) -> tuple[int, int, int]:
    gc.collect()
    pids = sorted(processes | {os.getpid()})
    return len(pids), sum(map(open_files, pids)), sum(map(resident_kb, pids))


@pytest.mark.slow
def test_a_soak_leaves_everything_flat() -> None:
    others = descendants(os.getpid())  # what earlier tests of this process have left
    with Judge(workers=2) as judge:
        run(judge, 200, seed=0)  # whatever is made once has been made by then
        zygotes = descendants(os.getpid()) - others
        processes, files, memory = measure(zygotes)
        for seed in range(1, RUNS // 200 + 1):
            run(judge, 200, seed)
        assert descendants(os.getpid()) - others == zygotes
        after = measure(zygotes)
    print(f"{RUNS} runs: {processes, files, memory} -> {after} (processes, descriptors, resident KB)")
    assert after[:2] == (processes, files)
    assert after[2] < memory + 4096  # KB; the allocator alone moves by a megabyte or two
