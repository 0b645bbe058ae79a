"""One test of one program: starts the processes, reads what they left, and decides. All of it in the judge.

The program's process gets code and input. Expected outputs stay here, or go to a process that runs only the test's
own code.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
from dataclasses import dataclass

from foresail.judge.programs.compare import same_output, same_value
from foresail.judge.programs.program import AssertTest, CallTest, Limits, StdinTest, Test
from foresail.judge.sandbox.memory_files import collect, collecting, holding
from foresail.judge.sandbox.script import BAD_SCRIPT, PASSED
from foresail.judge.sandbox.worker import ExitReport, JudgeWorker, Spawn
from foresail.judge.wire import WireError, encode
from foresail.records import Verdict

SHOWN = 80  # characters of an output that `detail` keeps
CORRECT = Verdict(status="correct", score=1.0)
DEV_NULL = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)


@dataclass(frozen=True, kw_only=True)
class Runnable:
    """A program ready to run: a descriptor with its source, its bytecode or its binary."""

    descriptor: int
    compiled: bool
    role: str  # of the process that reads standard input: "main" or "binary"

    def close(self) -> None:
        os.close(self.descriptor)


def run_test(worker: JudgeWorker, *, program: Runnable, test: Test, limits: Limits) -> Verdict:
    if isinstance(test, StdinTest):
        return run_stdin(worker, program, test, limits)
    if isinstance(test, CallTest):
        return run_call(worker, program, test, limits)
    return run_asserts(worker, program, test, limits)


# Standard input and output.


def run_stdin(worker: JudgeWorker, program: Runnable, test: StdinTest, limits: Limits) -> Verdict:
    with holding(to_bytes(test.input)) as (input_file,), collecting(2) as (out, errors):
        descriptors = (program.descriptor, input_file, out, errors)
        spawn = Spawn(role=program.role, limits=limits, descriptors=descriptors, compiled=program.compiled)
        (ended,) = worker.run(spawn)
        printed = collect(out, limits.output_bytes)
        fault = find_fault(ended, errors, limits)
    if printed is None:
        return wrong(f"output limit {limits.output_bytes} bytes")
    if fault:
        return wrong(fault)
    if test.comparison.mode == "checker":
        return run_checker(worker, test, printed, limits)
    if same_output(printed, test.output, test.comparison):
        return CORRECT
    return wrong(f"printed {shorten(printed.decode('utf-8', 'replace'))}, expected {shorten(test.output)}")


def run_checker(worker: JudgeWorker, test: StdinTest, printed: bytes, limits: Limits) -> Verdict:
    """In a process of its own, which never sees the program."""
    word = secrets.token_hex(8)
    request = {
        "word": word,
        "script": test.comparison.checker,
        "input": test.input,
        "output": printed.decode("utf-8", "replace"),
        "expected": test.output,
    }
    with holding(json.dumps(request).encode()) as (script,), collecting(1) as (said,):
        (ended,) = worker.run(
            Spawn(role="checker", limits=limits, descriptors=(script, DEV_NULL, DEV_NULL, said))
        )
        return judge_script(ended, read_text(said), word)


# Calls.


def run_call(worker: JudgeWorker, program: Runnable, test: CallTest, limits: Limits) -> Verdict:
    try:
        expected = encode(test.expected)
        request = {"function": test.function, "with": encode([list(test.arguments), test.keywords])}
    except WireError as error:
        return Verdict(status="ungradable", score=0.0, detail=f"the test holds {error}")
    with holding(json.dumps(request).encode()) as (request_file,), collecting(2) as (errors, answer):
        descriptors = (program.descriptor, request_file, DEV_NULL, errors, answer)
        (ended,) = worker.run(
            Spawn(role="call", limits=limits, descriptors=descriptors, compiled=program.compiled)
        )
        returned = collect(answer, limits.output_bytes)
        fault = find_fault(ended, errors, limits)
    if fault:
        return wrong(fault)
    if returned is None:
        return wrong(f"output limit {limits.output_bytes} bytes")
    try:
        if same_value(returned, expected, test.relative, test.absolute, test.strict):
            return CORRECT
    except WireError as error:
        return wrong(f"returned {error}")
    return wrong(f"returned {shorten(returned.decode('utf-8', 'replace'))}, expected {show(test.expected)}")


# Assert scripts.


def run_asserts(worker: JudgeWorker, program: Runnable, test: AssertTest, limits: Limits) -> Verdict:
    """Two processes: one runs the script, one the program, and only data passes between them."""
    word = secrets.token_hex(8)
    request = json.dumps({"word": word, "script": test.script, "names": list(test.names)}).encode()
    with holding(request) as (script,), collecting(2) as (errors, said):
        descriptors = (program.descriptor, DEV_NULL, DEV_NULL, errors)
        served, ran = worker.run(
            Spawn(role="serve", limits=limits, descriptors=descriptors, compiled=program.compiled),
            Spawn(role="script", limits=limits, descriptors=(script, DEV_NULL, DEV_NULL, said)),
        )
        verdict = judge_script(ran, read_text(said), word)
        fault = find_fault(served, errors, limits)
    late = served.seconds > limits.seconds
    by_itself = verdict.status == "wrong" and fault and "signal 9" not in fault  # with which we end a server
    return wrong(fault) if fault and (late or by_itself) else verdict


def judge_script(ran: ExitReport, said: str, word: str) -> Verdict:
    """The verdict of a process that ran trusted code: it passed only if it ran to its end, and said so."""
    if ran.exit == PASSED:
        return CORRECT if said.endswith(word) else wrong("the test script ended before its end")
    if ran.exit == BAD_SCRIPT:
        return Verdict(status="ungradable", score=0.0, detail=said)
    return wrong("time limit" if ran.timed_out else said or f"the test script ended with status {ran.status}")


# How a program ended.


def find_fault(ended: ExitReport, errors: int, limits: Limits) -> str | None:
    """What the program did wrong beyond its answer; None when it ended as it should."""
    said = shorten(read_text(errors), 2 * SHOWN)
    if ended.timed_out or ended.seconds > limits.seconds:
        return f"time limit {limits.seconds:g} s"
    out_of_memory = bool(ended.status) and ("MemoryError" in said or "bad_alloc" in said)
    if out_of_memory or ended.peak_kb > limits.memory_mb << 10:
        return f"memory limit {limits.memory_mb} MB"
    if ended.exit is None:
        number = os.WTERMSIG(ended.status)
        if number == signal.SIGXFSZ or os.fstat(errors).st_size > limits.output_bytes:
            return f"output limit {limits.output_bytes} bytes"
        return f"killed by signal {number}"
    return f"exit {ended.exit}: {said}" if ended.exit else None


def read_text(descriptor: int) -> str:
    """The end of what was written, where an error's message stands."""
    size = os.fstat(descriptor).st_size
    return os.pread(descriptor, 2000, max(0, size - 2000)).decode("utf-8", "replace").strip()


def show(value: object) -> str:
    try:
        return shorten(repr(value))
    except ValueError:  # an integer of more digits than Python likes to print
        return f"a huge {type(value).__name__}"


def to_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def shorten(text: str, limit: int = SHOWN) -> str:
    text = " ".join(text[: 4 * limit].split()) if len(text) > limit else text.strip()
    return text if len(text) <= limit else text[: limit - 1] + "…"


def wrong(detail: str) -> Verdict:
    return Verdict(status="wrong", score=0.0, detail=detail)
