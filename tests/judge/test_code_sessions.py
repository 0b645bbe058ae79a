"""Sessions: names are kept between calls, limits hold for each, and the sandbox holds as for programs."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest
from process_table import descendants

from foresail.judge.judge import Judge
from foresail.judge.programs.program import Limits, Program, StdinTest
from foresail.judge.sandbox.protocol import KILL, NO_CALL
from foresail.judge.sandbox.worker import WorkerDied
from foresail.judge.session import LOST, JudgeSession, SessionLimits
from foresail.records import RunStopped

LEVELS = ["namespaces", "landlock", *(["bubblewrap"] if shutil.which("bwrap") else [])]
SHORT = SessionLimits(
    seconds=0.3, chars=1000, session=Limits(seconds=5, idle_seconds=0.5, memory_mb=128, file_mb=8)
)
AMPLE = SessionLimits(seconds=5, chars=1000, session=Limits(seconds=30, idle_seconds=30, memory_mb=128))


@pytest.fixture(scope="module", params=LEVELS)
def judge(request: pytest.FixtureRequest) -> Iterator[Judge]:
    try:
        with Judge(isolation=request.param, workers=2) as judge:
            yield judge
    except RunStopped as error:
        pytest.skip(f"{request.param} cannot be had here: {error}")


@pytest.fixture
def session(judge: Judge) -> Iterator[JudgeSession]:
    session = JudgeSession(judge, AMPLE)
    yield session
    session.close()
    works_still(judge)


def works_still(judge: Judge) -> None:
    """No worker is lost, and each judges."""
    good = Program(source="print(int(input()) * 2)")
    for _ in range(judge.workers):
        assert judge.judge(good, [StdinTest(input="2", output="4")])[0].status == "correct"


def test_names_are_kept_and_the_last_expression_comes_back(session: JudgeSession) -> None:
    assert session.run("x = 2\nimport math") == ""
    assert session.run("print('a')\nx + 1") == "a\n3"
    assert session.run("def f(n):\n    return n * math.pi\n") == ""
    assert session.run("f(x)") == "6.283185307179586"
    assert session.run("None") == "" and session.run("") == "" and session.run("# é \ud83d") == ""
    assert session.run("for i in range(3): print(i, end='')") == "012"
    assert session.run("class A: pass\nA.__module__, __name__") == "('__main__', '__main__')"


def test_an_exception_is_told_with_its_line_and_the_names_stay(session: JudgeSession) -> None:
    session.run("x = 1")
    said = session.run("def f():\n    return 1 / 0\nprint('before')\nf()")
    assert said.startswith("before\n\nTraceback") and said.endswith("ZeroDivisionError: division by zero")
    assert 'File "<call 2>", line 2, in f\n    return 1 / 0' in said and "foresail" not in said
    assert session.run("x =") == '  File "<call 3>", line 1\n    x =\n       ^\nSyntaxError: invalid syntax'
    assert "RecursionError" in session.run("def g(): g()\ng()")
    assert len(session.run("raise ValueError('a' * 10**6)")) < 2200
    assert session.run("class E(Exception):\n    def __str__(self): raise E\nraise E").endswith("failed>")
    assert session.run("import sys; sys.exit(3)") == "" and session.run("x") == "1"
    assert "EOFError" in session.run("input()")


def test_what_is_printed_is_cut_and_an_error_after_it_is_not(session: JudgeSession) -> None:
    said = session.run("print('a' * 5000)")
    assert said == "a" * 1000 + "\n[… 4001 more characters]"
    assert session.run("'b' * 5000").count("b") == 999
    said = session.run("for i in range(10**5): print(i)\n1 / 0")
    assert said.endswith("ZeroDivisionError: division by zero") and len(said) < 2000


def test_code_that_runs_too_long_is_stopped_and_the_names_stay(judge: Judge) -> None:
    session = JudgeSession(judge, SHORT)
    assert session.run("x = 0\nwhile True:\n    try:\n        x += 1\n    except Exception: pass").startswith(
        "error: stopped after 0.3 s"
    )
    assert session.run("x > 0") == "True"
    session.close()


@pytest.mark.parametrize(
    "code",
    [
        "import signal; signal.signal(signal.SIGPROF, signal.SIG_IGN)\nwhile True: pass",
        "while True:\n    try:\n        for i in range(10**9): i + 1\n    except BaseException: pass",
        "import time; time.sleep(10**6)",
        "import threading; threading.Event().wait()",
        "import os; os.read(4, 1)",  # the channel
    ],
)
def test_code_that_will_not_stop_is_ended(judge: Judge, code: str) -> None:
    session = JudgeSession(judge, SHORT)
    session.run("x = 1")
    assert session.run(code) == f"error: the Python process was ended: time limit 0.3 s; {LOST}"
    assert "NameError" in session.run("x")
    session.close()
    works_still(judge)


def test_all_calls_together_have_a_limit(judge: Judge) -> None:
    limits = SessionLimits(seconds=0.4, session=Limits(seconds=0.8, idle_seconds=30, memory_mb=128))
    session = JudgeSession(judge, limits)
    said = [session.run("while True: pass") for _ in range(4)]
    assert any("0.8 s of processor time in all are spent" in each for each in said)
    session.close()


def test_a_session_may_wait_for_its_next_call(judge: Judge) -> None:
    session = JudgeSession(judge, SHORT)
    session.run("x = 1")
    threading.Event().wait(1.5)  # three times as long as a call may be idle
    assert session.run("x") == "1"
    session.close()


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import os; os._exit(3)", "has ended with status 3"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)\nos._exit(9)", "ended"),
        ("import os; os.close(4)", "ended"),
        ("x = bytearray(10**9)", "MemoryError"),
        ("x = [0] * 10**9", "MemoryError"),
    ],
)
def test_a_process_that_ends_itself_or_wants_too_much_is_told_so(
    session: JudgeSession, code: str, said: str
) -> None:
    session.run("y = 1")
    assert said in session.run(code)
    assert session.run("2 + 2") == "4"


@pytest.mark.parametrize(
    "code",
    [
        "open('/etc/passwd').read()",
        "import os; os.listdir('/root')",
        "import os; os.listdir('/proc')",
        "import socket; socket.socket().connect(('127.0.0.1', 9))",
        "import os; os.fork()",
        "import subprocess; subprocess.run(['ls'])",
        "import os; os.kill(os.getppid() or -1, 9)",
        "open('/var/tmp/x', 'w')",
        "import os; os.execv('/bin/sh', ['sh'])",
    ],
)
def test_the_sandbox_holds(session: JudgeSession, code: str) -> None:
    said = session.run(code)
    assert any(
        kind in said for kind in ("PermissionError", "FileNotFoundError", "OSError", "ConnectionRefused")
    ), said
    assert session.run("1") == "1"


def test_only_its_own_descriptors_are_open(session: JudgeSession) -> None:
    code = "import os\ndef is_open(n):\n    try: os.fstat(n); return True\n    except OSError: return False\n"
    assert session.run(code + "[n for n in range(200) if is_open(n)]") == "[0, 1, 2, 3, 4]"


@pytest.mark.parametrize(
    "frame",
    ["b'\\xff' * 10**5", "(10**6).to_bytes(4, 'big') + b'x' * 10", "(2).to_bytes(4, 'big') + b'\\xff\\xff'"],
)
def test_forged_answers_are_only_answers(judge: Judge, frame: str) -> None:
    session = JudgeSession(judge, SHORT)
    said = [session.run(f"import os, threading; os.write(4, {frame})"), session.run("1"), session.run("2")]
    assert all(isinstance(each, str) and len(each) < 10**7 for each in said)
    session.close()
    works_still(judge)


def test_closing_ends_a_call_that_runs(judge: Judge) -> None:
    session = JudgeSession(judge, AMPLE)
    session.run("1")
    said: list[str] = []
    thread = threading.Thread(target=lambda: said.append(session.run("import time; time.sleep(20)")))
    thread.start()
    while session.number < 2:
        threading.Event().wait(0.01)
    session.close()
    thread.join()
    assert said == [f"error: the session was closed; {LOST}"]
    session.close()
    assert session.run("1") == f"the session is closed; {LOST}"
    works_still(judge)


def test_the_order_to_end_is_not_written_over_by_a_call_that_begins(judge: Judge) -> None:
    session = JudgeSession(judge, AMPLE)
    with session.lock:  # as a call would hold it
        closing = threading.Thread(target=session.close)
        closing.start()
        while not session.closing:
            threading.Event().wait(0.001)
        for number in (2, NO_CALL):
            session.announce(number)
            assert int.from_bytes(os.pread(session.calls, 8, 0), "little") == KILL
    closing.join()


def test_sessions_share_nothing_and_leave_nothing(judge: Judge) -> None:
    first, second = JudgeSession(judge, AMPLE), JudgeSession(judge, AMPLE)
    assert first.run("x = 1") == "" and "NameError" in second.run("x")
    first.close()
    third = JudgeSession(judge, AMPLE)
    assert "NameError" in third.run("x")
    before = len(descendants(os.getpid()))
    second.close()
    third.close()
    assert len(descendants(os.getpid())) == before - 2
    works_still(judge)


def test_a_sandbox_that_dies_is_no_fault_of_the_code() -> None:
    with Judge(workers=1) as judge:
        session = JudgeSession(judge, AMPLE)
        session.run("1")
        assert session.process is not None
        worker = session.process.worker.process
        all_of_it = {worker.pid, *descendants(worker.pid)}
        for number in (signal.SIGSTOP, signal.SIGKILL):  # stopped first: none tells of another's end
            for pid in all_of_it:
                with suppress(ProcessLookupError):  # it was about to end
                    os.kill(pid, number)
        worker.wait()
        with pytest.raises(WorkerDied):
            session.run("1")
        session.close()
        works_still(judge)
