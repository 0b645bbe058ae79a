r"""sympy in a process of its own, for right answers that hold a sum, an integral or a limit.

Only the right answer can send work here: a response that restates such a thing instead of working it out is
wrong already. The process stays warm, gets trees (never text to evaluate) and is killed when it takes too
long. What it cannot decide is a failure (`timeout`, `crashed`, `ungradable`) and never a score.
"""

from __future__ import annotations

import atexit
import json
import os
import selectors
import subprocess
import sys
import threading
import time
from fractions import Fraction
from typing import Any

from foresail.records import Status
from foresail.rewards.notation.tree import Node

SECONDS = 0.8  # for one question, the start of the process included


class Undecided(Exception):
    """Nobody can say; `status` tells whose fault that is, and it is never the response's."""

    def __init__(self, status: Status, why: str) -> None:
        super().__init__(why)
        self.status = status


class Assistant:
    """One worker process and the pipe to it; started at the first question, and again after a kill or a fork."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.process: subprocess.Popen[bytes] | None = None
        self.owner = 0

    def same(self, given: Node, gold: Node, seconds: float = SECONDS) -> bool:
        """Whether sympy finds both equal. Raises Undecided where it cannot say or takes too long."""
        deadline = time.monotonic() + seconds
        question = json.dumps([_to_json(given), _to_json(gold)]).encode() + b"\n"
        with self.lock:
            process = self.ready()
            try:
                answer = _ask(process, question, deadline)
            except TimeoutError:
                self.kill()
                raise Undecided(
                    "timeout", f"sympy took longer than {seconds:g} s on the right answer"
                ) from None
            except OSError as error:
                self.kill()
                raise Undecided("crashed", f"the sympy process died: {error}") from None
        if answer == b"unknown\n":
            raise Undecided("ungradable", "sympy cannot work out the right answer")
        return answer == b"same\n"

    def ready(self) -> subprocess.Popen[bytes]:
        if self.process is None or self.owner != os.getpid() or self.process.poll() is not None:
            if self.process is not None and self.owner == os.getpid():
                self.kill()
            serve = "from foresail.rewards.meaning.symbolic import serve; serve()"
            program = f"import sys; sys.path[:] = {sys.path!r}; {serve}"
            self.process = subprocess.Popen(
                [sys.executable, "-c", program],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            self.owner = os.getpid()
        return self.process

    def kill(self) -> None:
        process, self.process = self.process, None
        if process is None or self.owner != os.getpid():
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


def _ask(process: subprocess.Popen[bytes], question: bytes, deadline: float) -> bytes:
    assert process.stdin is not None and process.stdout is not None
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
    return answer


def _to_json(node: Any) -> Any:
    if isinstance(node, Node):
        return [node.head, *map(_to_json, node.args)]
    # hexadecimal: Python refuses to write, and to read, more than 4,300 decimal digits
    return [f"{node.numerator:x}", f"{node.denominator:x}"] if isinstance(node, Fraction) else node


ASSISTANT = Assistant()
atexit.register(ASSISTANT.kill)
os.register_at_fork(after_in_child=lambda: setattr(ASSISTANT, "lock", threading.Lock()))
