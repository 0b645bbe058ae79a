"""The process of a session: runs pieces of code one after the other, in one namespace.

Each comes as a frame on the channel and is answered by one: what it printed, the value of its last expression, and
its exception. As all roles, this one is not trusted: code may rewrite it, and can then still only send bytes.
"""

from __future__ import annotations

import ast
import io
import json
import linecache
import os
import signal
import sys
import traceback
from types import FrameType
from typing import Any, NoReturn

from foresail.judge.sandbox.frames import read_frame, write_frame

PROGRAM, CHANNEL = 3, 4
LONGEST_ERROR = 2000  # characters of a traceback


class OutOfTime(BaseException):
    """Not an Exception: `except Exception` in a loop must not go on."""


class Printed(io.TextIOBase):
    """What was printed, up to a number of characters."""

    def __init__(self, max_size: int) -> None:
        self.max_size, self.size = max_size, 0
        self.parts: list[str] = []

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if self.size < self.max_size:
            self.parts.append(text[: self.max_size - self.size])
        self.size += len(text)
        return len(text)

    def text(self) -> str:
        more = self.size - self.max_size
        return "".join(self.parts) + (f"\n[… {more} more characters]" if more > 0 else "")


def run_session(namespace: dict[str, Any]) -> int:
    """Until the other side hangs up."""
    settings = json.loads(os.pread(PROGRAM, 1 << 16, 0))
    number = 0
    while (code := read_frame(CHANNEL)) is not None:
        number += 1
        text = run_cell(code.decode("utf-8", "replace"), namespace, number, **settings)
        write_frame(CHANNEL, text.encode("utf-8", "replace"))
    return 0


def run_cell(code: str, namespace: dict[str, Any], number: int, *, seconds: float, chars: int) -> str:
    """run_cell("x = 2\\nprint(x)\\nx + 1", {}, …) -> "2\\n3"."""
    printed = Printed(chars)
    usual = sys.stdout, sys.stderr
    sys.stdout = sys.stderr = printed
    try:
        signal.signal(signal.SIGPROF, end_cell)
        signal.setitimer(signal.ITIMER_PROF, seconds)
        try:
            value = execute(code, namespace, f"<call {number}>")
            if value is not None:
                printed.write(repr(value))
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    except SystemExit:
        pass
    except OutOfTime:
        printed.size = 0
        printed.write(f"\nerror: stopped after {seconds:g} s of processor time; variables are kept")
    except BaseException as error:
        printed.size = 0  # an error is reported, however much was printed
        printed.write("\n" * bool(printed.parts) + describe(error))
    finally:
        sys.stdout, sys.stderr = usual
    return printed.text().strip("\n")


def end_cell(number: int, frame: FrameType | None) -> NoReturn:
    raise OutOfTime


def execute(code: str, namespace: dict[str, Any], name: str) -> Any:
    """Runs it all; the value is that of the last statement, if it is an expression."""
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)  # for tracebacks
    tree = ast.parse(code, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec", dont_inherit=True), namespace)
    if last is None:
        return None
    assert isinstance(last, ast.Expr)
    return eval(compile(ast.Expression(last.value), name, "eval", dont_inherit=True), namespace)


def describe(error: BaseException) -> str:
    """The traceback without this file's frames; of a long one the end."""
    try:
        trace = error.__traceback__
        while trace is not None and not trace.tb_frame.f_code.co_filename.startswith("<call "):
            trace = trace.tb_next
        lines = traceback.format_exception(type(error), error, trace)
        text = "".join(lines if trace is not None else traceback.format_exception_only(error)).rstrip()
    except BaseException:
        text = type(error).__name__
    return text if len(text) <= LONGEST_ERROR else "…" + text[-LONGEST_ERROR:]
