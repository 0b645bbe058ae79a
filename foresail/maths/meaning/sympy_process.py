r"""sympy in a process of its own, for right answers that hold a sum, an integral or a limit.

Only the right answer can send work here: a response that restates such a thing instead of working it out is
wrong already. The process stays warm and gets trees, never text to evaluate; `symbolic.py` is what runs in it.
What it cannot decide of the right answer alone is a failure (`timeout`, `crashed`, `ungradable`) and never a score.

Three limits, so that a verdict does not depend on how busy the machine is:

    CALLS           of functions, for one question: decides alone in all but freak cases; about half a second. All
                    questions of a verdict together may make no more: they are part of its budget
    CPU_SECONDS     for one question: several times that, for a question that makes few calls and long ones
    WALL_SECONDS    for one question: reached only where the process hardly gets a core, or hangs
"""

from __future__ import annotations

import atexit
import json
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from fractions import Fraction
from typing import Any, NamedTuple

from foresail.maths.meaning.symbolic import READY
from foresail.maths.notation.tree import Node
from foresail.records import Status

CALLS = 600_000
CPU_SECONDS = 2.0
WALL_SECONDS = 60.0
START_SECONDS = 300.0  # wall clock; two CPU seconds are usual, and many processes may start at once


class Undecided(Exception):
    """Nobody can say; `status` tells whose fault that is, and it is never the response's."""

    def __init__(self, status: Status, why: str) -> None:
        super().__init__(why)
        self.status = status


class SympyAnswer(NamedTuple):
    """What sympy says, and the calls that it took: `same`, `different`, `unknown`, `timeout` or `died`."""

    words: str
    calls: int

    def decided(self) -> bool:
        """Whether both are equal. Raises Undecided where sympy cannot say or takes too long."""
        if self.words in _FAILURES:
            raise Undecided(*_FAILURES[self.words])
        return self.words == "same"


_FAILURES: dict[str, tuple[Status, str]] = {
    "timeout": ("timeout", "sympy needs too long for the right answer"),
    "died": ("crashed", "the sympy process died, perhaps for want of memory"),
    "unknown": ("ungradable", "sympy cannot work out the right answer"),
}


class SympyProcess:
    """One worker process and the pipe to it; started at the first question, and again after a kill or a fork."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.process: subprocess.Popen[bytes] | None = None
        self.owner = 0

    def ask(
        self, candidate: Node, gold: Node, *, calls: int = CALLS, cpu_seconds: float = CPU_SECONDS
    ) -> SympyAnswer:
        """Whether sympy finds both equal. Raises Undecided where the process fails."""
        question = json.dumps([calls, cpu_seconds, _to_json(candidate), _to_json(gold)]).encode() + b"\n"
        with self.lock:
            try:
                answer = _ask(self.ready(), question, WALL_SECONDS)
            except TimeoutError:
                self.kill()
                raise Undecided("timeout", f"sympy gave no answer within {WALL_SECONDS:g} s") from None
            except OSError as error:
                self.kill()
                raise Undecided("crashed", f"the sympy process died: {error}") from None
            except BaseException:  # Ctrl-C: its answer would be taken for that of the next question
                self.kill()
                raise
        words, _, used = answer.partition(" ")
        return SympyAnswer(words, int(used) if used else calls)

    def ready(self) -> subprocess.Popen[bytes]:
        """The process, started where there is none and with its tables filled."""
        if self.process is None or self.owner != os.getpid() or self.process.poll() is not None:
            if self.process is not None and self.owner == os.getpid():
                self.kill()
            serve = "from foresail.maths.meaning.symbolic import serve; serve()"
            self.process = subprocess.Popen(
                [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}; {serve}"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONHASHSEED": "0"},  # else the number of calls differs from run to run
                start_new_session=True,
            )
            self.owner = os.getpid()
            if _ask(self.process, b"", START_SECONDS) != READY:
                raise OSError("it said something else than that it is ready")
        return self.process

    def kill(self) -> None:
        process, self.process = self.process, None
        if process is None or self.owner != os.getpid():
            return
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)  # with the fork that works on the question
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


def _ask(process: subprocess.Popen[bytes], question: bytes, seconds: float) -> str:
    """The line that comes back, without its end."""
    assert process.stdin is not None and process.stdout is not None
    deadline = time.monotonic() + seconds
    process.stdin.write(question)
    process.stdin.flush()
    answer = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while not answer.endswith(b"\n"):
            if not selector.select(max(0.0, deadline - time.monotonic())):
                raise TimeoutError
            chunk = os.read(process.stdout.fileno(), 64)
            if not chunk:
                raise OSError("the pipe closed")
            answer += chunk
    return answer.decode().strip()


def _to_json(node: Any) -> Any:
    if isinstance(node, Node):
        return [node.head, *map(_to_json, node.args)]
    # hexadecimal: Python refuses to write, and to read, more than 4,300 decimal digits
    return [f"{node.numerator:x}", f"{node.denominator:x}"] if isinstance(node, Fraction) else node


SYMPY = SympyProcess()
atexit.register(SYMPY.kill)
os.register_at_fork(after_in_child=lambda: setattr(SYMPY, "lock", threading.Lock()))
