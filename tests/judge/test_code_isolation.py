"""The judge as a machine: levels of isolation, users, threads, forks, workers that die, what is left behind."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import takewhile
from pathlib import Path

import pytest
from attack_programs import CALLS, MACHINES, numbers_on
from bpf_machine import run_filter
from process_table import descendants, scratch_folders

from foresail.judge.judge import Judge
from foresail.judge.programs.program import AssertTest, CallTest, Limits, Program, StdinTest
from foresail.judge.sandbox import isolation
from foresail.judge.sandbox.seccomp import (
    ARCHITECTURES,
    BUILDING,
    BY_ARGUMENTS,
    EXECUTING,
    FORKING,
    PLAIN,
    WRITING,
    Permits,
    assemble,
    join_ranges,
    numbers,
)
from foresail.judge.sandbox.worker import JudgeWorker, WorkerDied
from foresail.records import RunStopped

ECHO = Program(source="print(input())")
SAME = StdinTest(input="x", output="x")
LEVELS = ("namespaces", "landlock", "bubblewrap", "none")


def open_judge(level: str, workers: int = 1) -> Judge:
    try:
        return Judge(isolation=level, workers=workers)
    except RunStopped as error:
        pytest.skip(str(error))


@pytest.fixture
def judge() -> Iterator[Judge]:
    with Judge(workers=2) as judge:
        yield judge


# Levels.


@pytest.mark.parametrize("level", LEVELS)
def test_every_level_judges_every_kind_of_test(level: str) -> None:
    program = Program(source="def f(x): return x + 1\nif __name__ == '__main__': print(f(int(input())))")
    tests = [
        StdinTest(input="1", output="2"),
        StdinTest(input="1", output="3"),
        CallTest(function="f", arguments=(1,), expected=2),
        CallTest(function="f", arguments=(1,), expected=3),
        AssertTest(script="assert f(1) == 2"),
        AssertTest(script="assert f(1) == 3"),
    ]
    with open_judge(level) as judge:
        assert [v.status for v in judge.judge(program, tests)] == ["correct", "wrong"] * 3
        if shutil.which("g++"):
            cpp = Program(source="#include <cstdio>\nint main() { putchar(getchar()); }", language="cpp")
            tests = [SAME, StdinTest(input="x", output="y")]
            assert [v.status for v in judge.judge(cpp, tests)] == ["correct", "wrong"]


@pytest.mark.parametrize("level", LEVELS)
def test_closing_leaves_no_process_and_no_file(level: str) -> None:
    processes, files = descendants(os.getpid()), scratch_folders(os.getpid())
    with open_judge(level) as judge:
        judge.judge(ECHO, [SAME])
        assert descendants(os.getpid()) > processes
    assert descendants(os.getpid()) == processes
    assert scratch_folders(os.getpid()) == files


def test_the_report_names_what_protects() -> None:
    with open_judge("landlock") as judge:
        assert judge.isolation == "landlock+seccomp"
    with open_judge("none") as judge:
        assert judge.isolation == "none"


def test_the_strongest_is_chosen_and_never_a_weaker_one_than_was_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse_namespaces(level: str, packages: tuple[Path, ...]) -> JudgeWorker:
        if level in refused:
            raise WorkerDied("not here")
        return start(level, packages)

    start, refused = isolation.start, {"namespaces"}
    monkeypatch.setattr(isolation, "start", refuse_namespaces)
    with Judge() as judge:
        assert judge.isolation.startswith(("landlock", "bubblewrap"))
    with pytest.raises(RunStopped, match="namespaces: not here"):
        Judge(isolation="namespaces")
    refused |= {"landlock", "bubblewrap"}
    with pytest.raises(RunStopped, match="install bubblewrap"):  # and not "none", which must be asked for
        Judge()


def test_a_level_that_leaks_is_not_used() -> None:
    """The proof is a real one: an unconfined process fails it."""
    worker = JudgeWorker("none")
    try:
        with pytest.raises(WorkerDied, match=r"read /etc/passwd.*fork"):
            isolation.prove(worker)
    finally:
        worker.close()


def test_mistakes_are_explained() -> None:
    with pytest.raises(ValueError, match="use one of namespaces"):
        Judge(isolation="strong")
    with pytest.raises(ValueError, match="at least 1"):
        Judge(workers=0)
    with pytest.raises(ValueError, match="not installed"):
        Judge(packages=("no_such_package",))
    judge = Judge()
    judge.close()
    with pytest.raises(ValueError, match="closed"):
        judge.judge(ECHO, [SAME])


def test_packages_are_importable_when_allowed() -> None:
    program = Program(source="import numpy\nprint(numpy.arange(4).sum())\ndef f(): return numpy.eye(2)")
    tests = [StdinTest(input="", output="6"), CallTest(function="f", expected=[[1, 0], [0, 1]])]
    with Judge(packages=("numpy",)) as judge:
        assert [v.status for v in judge.judge(program, tests, Limits(memory_mb=1024))] == [
            "correct",
            "correct",
        ]
        hidden = Program(source="import pytest")
        assert "ModuleNotFoundError" in judge.judge(hidden, [SAME])[0].detail


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become someone else")
@pytest.mark.parametrize("level", ["namespaces", "landlock"])
def test_an_ordinary_user_may_judge(level: str, tmp_path: Path) -> None:
    """With an interpreter and a copy of the package that everybody may read."""
    python = shutil.which("python3", path="/usr/bin:/usr/local/bin")
    if python is None or not version_is_new_enough(python):
        pytest.skip("no Python that an ordinary user could run")
    tmp_path.chmod(0o755)
    for folder in takewhile(lambda folder: folder != Path(tempfile.gettempdir()), tmp_path.parents):
        folder.chmod(0o755)
    package = Path(__file__).parents[2] / "foresail"
    (tmp_path / "foresail").mkdir()
    for name in ("__init__.py", "records.py"):
        shutil.copy(package / name, tmp_path / "foresail")
    shutil.copytree(
        package / "judge", tmp_path / "foresail" / "judge", ignore=shutil.ignore_patterns("__pycache__")
    )
    script = (
        "import os; os.setgroups([]); os.setgid(4242); os.setuid(4242)\n"
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from foresail.judge.judge import Judge\n"
        "from foresail.judge.programs.program import *\n"
        f"with Judge(isolation={level!r}) as judge:\n"
        "    same, other = StdinTest(input='x', output='x'), StdinTest(input='x', output='y')\n"
        "    verdicts = judge.judge(Program(source='print(input())'), [same, other])\n"
        "    verdicts += judge.judge(Program(source=\"print(open('/etc/passwd').read())\"), [same])\n"
        "    print(judge.isolation, *(v.status for v in verdicts))\n"
    )
    done = subprocess.run([python, "-B", "-c", script], capture_output=True, text=True, cwd="/", check=False)
    if "no way to confine" in done.stderr:
        pytest.skip(done.stderr.splitlines()[-1])
    assert done.stdout.split()[1:] == ["correct", "wrong", "wrong"], done.stderr
    assert level in done.stdout


def version_is_new_enough(python: str) -> bool:
    shown = subprocess.run(
        [python, "-c", "import sys; print(sys.version_info >= (3, 11))"], capture_output=True, text=True
    )
    return shown.stdout.strip() == "True"


# Threads, forks, deaths.


def test_threads_share_a_judge(judge: Judge) -> None:
    def judge_number(number: int) -> str:
        test = StdinTest(input=str(number), output=str(number * (number % 2)))
        return judge.judge(ECHO, [test])[0].status

    with ThreadPoolExecutor(6) as pool:
        statuses = list(pool.map(judge_number, range(1, 41)))
    assert statuses == ["correct" if number % 2 else "wrong" for number in range(1, 41)]


def test_no_more_workers_than_asked_for(judge: Judge) -> None:
    before = descendants(os.getpid())
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: judge.judge(ECHO, [SAME]), range(40)))
    assert len(judge.idle) <= 2
    assert len(descendants(os.getpid())) <= len(before) * 2


def test_a_dead_worker_is_replaced(judge: Judge) -> None:
    for _ in range(3):
        judge.idle[0].process.kill()
        judge.idle[0].process.wait()
        assert [v.status for v in judge.judge(ECHO, [SAME, SAME])] == ["correct", "correct"]


def test_a_worker_that_dies_in_the_middle_is_retried_once(judge: Judge) -> None:
    (worker,) = judge.idle
    before = descendants(worker.process.pid)
    slow = Program(source="import time\ntime.sleep(1)\nprint('done')")

    def kill_when_it_runs() -> None:
        wait_until(lambda: descendants(worker.process.pid) > before)
        worker.process.kill()

    killer = threading.Thread(target=kill_when_it_runs)
    killer.start()
    (verdict,) = judge.judge(slow, [StdinTest(input="", output="done")])
    killer.join()
    assert verdict.status == "correct"
    assert worker not in judge.idle


def test_a_sandbox_that_always_breaks_is_crashed_not_wrong(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(self: JudgeWorker, *_: object) -> None:
        raise WorkerDied("out of order")

    monkeypatch.setattr(JudgeWorker, "run", die)
    monkeypatch.setattr(
        "foresail.judge.judge.start", lambda *_: judge.idle[0] if judge.idle else JudgeWorker("none")
    )
    verdicts = judge.judge(ECHO, [SAME])
    assert [(v.status, v.detail) for v in verdicts] == [("crashed", "out of order")]
    assert [v.status for v in judge.judge(ECHO, [SAME, SAME])] == ["crashed", "crashed"]


def test_a_fork_of_the_judges_process_gets_its_own_workers(judge: Judge) -> None:
    judge.judge(ECHO, [SAME])
    own = judge.idle[0].process.pid
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            right = judge.judge(ECHO, [SAME])[0].status == "correct"
            status = 0 if right and judge.idle[0].process.pid != own else 2
            judge.close()
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert judge.judge(ECHO, [SAME])[0].status == "correct"
    assert judge.idle[0].process.pid == own


@pytest.mark.parametrize("level", LEVELS)
def test_a_killed_judge_takes_its_sandboxes_along(level: str) -> None:
    open_judge(level).close()  # skips where the level cannot be had
    script = (
        "from foresail.judge.judge import *\n"
        f"judge = Judge(isolation={level!r})\n"
        "print(judge.idle[0].process.pid, flush=True)\n"
        "judge.judge(Program(source='while True: pass'), [StdinTest(input='', output='')], Limits(seconds=60))\n"
    )
    owner = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    zygote = int(owner.stdout.readline())
    wait_until(lambda: len(descendants(zygote) | {zygote}) >= (2 if level != "namespaces" else 3))
    everyone = descendants(zygote) | {zygote}
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    owner.stdout.close()
    wait_until(lambda: not any(is_running(pid) for pid in everyone))
    assert scratch_folders(owner.pid) == set()


def wait_until(true: object) -> None:
    """Polls; ten minutes are there only so that a test that hangs ends."""
    for _ in range(12_000):
        if true():  # type: ignore[operator]
            return
        time.sleep(0.05)
    pytest.fail("it did not come about")


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# The filter.


def test_ranges_join() -> None:
    assert join_ranges({0, 1, 2, 5, 7, 8}) == [(0, 2), (5, 5), (7, 8)]


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("permits", [Permits(), Permits(fork=True, execute=True), Permits(write=False)])
def test_the_filter_is_well_formed(permits: Permits, machine: str) -> None:
    """Every jump lands inside, and every path ends in a verdict: a run for each number says allow, deny or kill."""
    steps, own = assemble(permits, machine), ARCHITECTURES[machine]
    actions = {run_filter(steps, number, (0,) * 6, own) for number in range(600)}
    assert actions == {"allow", "deny", "absent"}
    assert run_filter(steps, 0x40000000 + 39, (0,) * 6, own) == "kill"
    assert run_filter(steps, 39, (0,) * 6, architecture=0x40000003) == "kill"


# The kernel's own tables, where its headers are installed.
HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}
RENAMED = {"newfstatat": "fstatat"}  # in the generic table, which has a name for 32 and 64 bits


def kernel_numbers(machine: str) -> dict[str, int]:
    if not HEADERS[machine].is_file():
        pytest.skip(f"the kernel's headers for {machine} are not here")
    found = re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", HEADERS[machine].read_text())
    return {name: int(number) for name, number in found}


@pytest.mark.parametrize("machine", MACHINES)
def test_call_numbers_are_the_kernels(machine: str) -> None:
    """Of the filter's calls, and of those that attacks make."""
    kernel = kernel_numbers(machine)
    listed = " ".join([PLAIN, WRITING, FORKING, EXECUTING, BUILDING, BY_ARGUMENTS])
    for name, number in [*numbers(listed, machine).items(), *numbers_on(machine).items()]:
        if name != "getpid by x32":
            assert kernel.get(name, kernel.get(RENAMED.get(name, ""))) == number, name


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", CALLS)
def test_the_filter_stops_attacks_on_both_machines(name: str, machine: str) -> None:
    """Simulated, so that the other machine's filter is tried here, too."""
    called, *arguments = eval(f"({CALLS[name].replace('%PID%', '7')},)", {"ctypes": ctypes})
    plain = [value if isinstance(value, int) else 0x1000 for value in arguments]  # a pointer for the rest
    words = tuple(value & (1 << 64) - 1 for value in [*plain, 0, 0, 0, 0, 0, 0][:6])
    for permits in (Permits(), Permits(execute=True), Permits(write=False, threads=False)):
        steps = assemble(permits, machine)
        action = run_filter(steps, numbers_on(machine)[called], words, ARCHITECTURES[machine])
        assert action in ("deny", "kill", "absent")


@pytest.mark.parametrize("machine", MACHINES)
def test_the_filter_means_the_same_on_both_machines(machine: str) -> None:
    kernel = kernel_numbers(machine)
    steps = assemble(Permits(), machine)

    def act(name: str, first: int = 0, architecture: int = ARCHITECTURES[machine]) -> str:
        return run_filter(steps, kernel[name], (first, 0, 0, 0, 0, 0), architecture)

    assert {act(name) for name in ("read", "openat", "mmap", "exit_group", "futex", "getrandom")} == {"allow"}
    assert {act(name) for name in ("socket", "ptrace", "mount", "bpf", "memfd_create", "execve")} == {"deny"}
    threads, process, namespace = 0x3D0F00, 0x11, 0x3D0F00 | 0x10000000
    assert [act("clone", flags) for flags in (threads, process, namespace)] == ["allow", "deny", "deny"]
    assert act("clone3") == "absent"
    (other,) = set(MACHINES) - {machine}
    assert act("read", architecture=ARCHITECTURES[other]) == "kill"
