"""The attack suite: no program gets out, none is judged correct, and the judge is as good as new after each."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from attack_programs import BREACH, CALLS, HANGING, PRELUDE, PROGRAMS
from process_table import descendants, scratch_folders

from foresail.judge.judge import Judge
from foresail.judge.programs.program import Limits, Program, StdinTest
from foresail.records import RunStopped

LIMITS = Limits(seconds=0.5, idle_seconds=0.5, memory_mb=128, output_bytes=1 << 20, file_mb=8, files=64)
SHORT = Limits(seconds=0.2, idle_seconds=0.2, memory_mb=128)
AMPLE = Limits(seconds=5, memory_mb=128)  # a virtual machine's clocks may jump
GOOD = Program(source="print(sum(map(int, input().split())))")
TOKEN = "token-" + secrets.token_hex(8)


LEVELS = ["namespaces", "landlock", *(["bubblewrap"] if shutil.which("bwrap") else [])]


@pytest.fixture(scope="module", params=LEVELS)
def judge(request: pytest.FixtureRequest) -> Iterator[Judge]:
    try:
        with Judge(isolation=request.param) as judge:
            yield judge
    except RunStopped as error:
        pytest.skip(f"{request.param} cannot be had here: {error}")


class Outside:
    """What the judge's owner has and no program may touch."""

    def __init__(self, folder: Path) -> None:
        self.secret = folder / "secret.txt"
        self.secret.write_text(BREACH)
        self.mode = self.secret.stat()
        self.server = socket.create_server(("127.0.0.1", 0))
        self.abstract = f"foresail-{secrets.token_hex(8)}"
        self.unix = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.unix.bind("\0" + self.abstract)
        for listening in (self.server, self.unix):
            listening.setblocking(False)

    def fill_in(self, source: str) -> str:
        words = {
            "SECRET": str(self.secret),
            "FOLDER": str(self.secret.parent),
            "PID": str(os.getpid()),
            "PORT": str(self.server.getsockname()[1]),
            "ABSTRACT": self.abstract,
            "TOKEN": TOKEN,
        }
        for word, value in words.items():
            source = source.replace(f"%{word}%", value)
        return source

    def assert_untouched(self) -> None:
        assert self.secret.read_text() == BREACH
        now = self.secret.stat()
        assert (now.st_mode, now.st_uid, now.st_mtime) == (
            self.mode.st_mode,
            self.mode.st_uid,
            self.mode.st_mtime,
        )
        assert os.listdir(self.secret.parent) == [self.secret.name]
        with pytest.raises(BlockingIOError):
            self.server.accept()
        with pytest.raises(BlockingIOError):
            self.unix.recv(1)

    def close(self) -> None:
        self.server.close()
        self.unix.close()


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outside]:
    folder = tmp_path_factory.mktemp("outside")
    folder.chmod(0o755)
    os.environ["FORESAIL_TEST_SECRET"] = TOKEN
    outside = Outside(folder)
    yield outside
    outside.close()
    del os.environ["FORESAIL_TEST_SECRET"]


def assert_as_good_as_new(judge: Judge, zygotes: set[int], files: set[str]) -> None:
    """The same zygote, nobody else, no new file where temporary files go, and right verdicts."""
    assert descendants(os.getpid()) == zygotes
    assert scratch_folders(os.getpid()) == files
    right, not_right = judge.judge(
        GOOD, [StdinTest(input="1 2", output="3"), StdinTest(input="1 2", output="4")], AMPLE
    )
    assert (right.status, not_right.status) == ("correct", "wrong")


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_attack_succeeds(judge: Judge, outside: Outside, name: str) -> None:
    zygotes = descendants(os.getpid())
    files = scratch_folders(os.getpid())
    program = Program(source=PRELUDE + outside.fill_in(PROGRAMS[name]))
    expected = TOKEN if "expected output" in name else BREACH
    test = StdinTest(input="", output=expected)
    verdicts = judge.judge(program, [test, test], SHORT if name in HANGING else LIMITS)
    # wrong, not crashed: a program must not be able to pass its failure off as ours
    assert [verdict.status for verdict in verdicts] == ["wrong", "wrong"], verdicts
    outside.assert_untouched()
    assert_as_good_as_new(judge, zygotes, files)


def test_there_are_many_and_they_differ() -> None:
    assert len(PROGRAMS) >= 100
    assert len(set(PROGRAMS.values())) == len(PROGRAMS)


@pytest.mark.parametrize(
    "name",
    [
        "read a file outside",
        "read the password file",
        "climb out by dots",
        "read the judge's environment",
        "make a file outside",
        "fork",
        "daemonise",
        "start a shell",
        "connect to the judge's port",
        "connect to an abstract socket",
        "call: unshare a user namespace",
        "call: memory file",
        "call: socket",
    ],
)
def test_attacks_are_real(tmp_path: Path, name: str) -> None:
    """Unconfined, the same programs do succeed: what fails above fails because of the sandbox."""
    outside = Outside(tmp_path)
    with Judge(isolation="none") as judge:
        program = Program(source=PRELUDE + outside.fill_in(PROGRAMS[name]))
        (verdict,) = judge.judge(program, [StdinTest(input="", output=BREACH)], AMPLE)
        assert verdict.status == "correct", verdict
        assert descendants(judge.idle[0].process.pid) == set()  # and still nobody is left behind
    outside.close()


def test_calls_are_named_once() -> None:
    assert len(set(CALLS.values())) == len(CALLS)
