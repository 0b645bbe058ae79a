"""What a confined process does: run a program, call one of its functions, serve a test script, compile.

By the time a role begins, its descriptors are 0 (input), 1 and 2 (output), 3 (the program), 4 (the channel, where
the role has one), and nothing else. A role returns the exit status. Nothing here is trusted by the judge: model
code may rewrite all of it, and can then still only print bytes and send data.
"""

from __future__ import annotations

import atexit
import builtins
import json
import marshal
import os
import re
import signal
import sys
import threading
import types
from collections.abc import Callable
from functools import partial
from typing import Any

from foresail.judge.sandbox.cells import run_session
from foresail.judge.sandbox.peer import Peer
from foresail.judge.sandbox.probe import probe
from foresail.judge.sandbox.protocol import BUILD
from foresail.judge.sandbox.script import PASSED, run_checker, run_script, say
from foresail.judge.script_names import find_sources
from foresail.judge.wire import ValueDecoder, ValueEncoder

PROGRAM, CHANNEL = 3, 4
NOT_COMPILED = 43
IGNORED = (signal.SIGXFSZ, signal.SIGPIPE)  # by Python; what it executes must die of too much output
FLAGS = ("-O2", "-std=gnu++17", "-pipe", "-w", "-fmax-errors=3", "-fdiagnostics-color=never")


def read_all(descriptor: int) -> bytes:
    """From the start, whatever the offset: descriptors of one program are shared by its tests."""
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0)


# Python programs.


def load_program(compiled: bool) -> types.CodeType:
    text = read_all(PROGRAM)
    os.close(PROGRAM)
    return marshal.loads(text) if compiled else compile(text, "program.py", "exec", dont_inherit=True)


def new_namespace(name: str) -> dict[str, Any]:
    module = types.ModuleType(name)
    module.__dict__["__builtins__"] = builtins
    sys.modules[name] = module
    sys.argv = ["program.py"]
    return module.__dict__


def run_main(compiled: bool) -> int:
    """As `python program.py < input > output` would."""
    return finish(lambda: exec(load_program(compiled), new_namespace("__main__")))


def finish(run: Callable[[], Any]) -> int:
    """Runs, then ends like an interpreter: threads are waited for, exit handlers called, streams flushed."""
    status = guard(run)
    if len(sys._current_frames()) > 1:
        status = guard(threading._shutdown) or status  # type: ignore[attr-defined]
    if atexit._ncallbacks():
        status = guard(atexit._run_exitfuncs) or status
    return guard(flush) or status


def flush() -> None:
    """What the program prints through now, and what it printed through at first."""
    for stream in (sys.stdout, sys.__stdout__):
        if stream is not None:
            stream.flush()


def guard(run: Callable[[], Any]) -> int:
    try:
        run()
    except SystemExit as end:
        if end.code is None:
            return 0
        return end.code & 0xFF if isinstance(end.code, int) else say(1, str(end.code))
    except BaseException as error:
        return say(1, describe(error))
    return 0


def describe(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"[:500]
    except BaseException:
        return type(error).__name__


def warm_up() -> None:
    """Runs a harmless program, many times, in the zygote: the interpreter rewrites code that runs often, and what
    it has rewritten there it need not write, and so copy, in every child."""
    main, command_line = sys.modules["__main__"], sys.argv
    for _ in range(100):
        code = marshal.loads(marshal.dumps(compile("print(len(str(7 ** 7)))", "program.py", "exec")))
        finish(partial(exec, code, new_namespace("__main__")))
        request = json.loads(
            json.dumps({"function": "f", "with": ValueEncoder().encode([[1, "a", [2.5]], {}])})
        )
        arguments, keywords = ValueDecoder({}).decode(request["with"])
        value = find_function(request["function"], {"f": lambda *parts: list(parts)})(*arguments, **keywords)
        ValueEncoder().encode(value).encode()
        find_sources("assert f(1, [2]) == {'a': (3,)}")
    sys.modules["__main__"], sys.argv = main, command_line


# Functions of Python programs.


def run_call(compiled: bool) -> int:
    """Descriptor 0 holds the call; the value it returns goes to the channel as a table."""

    def call() -> None:
        request = json.loads(read_all(0))
        namespace = new_namespace("program")
        exec(load_program(compiled), namespace)
        classes = {name: kind for name, kind in namespace.items() if isinstance(kind, type)}
        arguments, keywords = ValueDecoder(classes).decode(request["with"])
        value = find_function(request["function"], namespace)(*arguments, **keywords)
        answer = ValueEncoder().encode(value).encode()
        while answer:
            answer = answer[os.write(CHANNEL, answer) :]

    return guard(call)


def find_function(path: str, namespace: dict[str, Any]) -> Any:
    """find_function("Solution().twoSum", …): names, attributes and calls without arguments."""
    first, *steps = re.findall(r"\w+|\(\)", path)
    if first not in namespace:
        raise NameError(f"the program does not define {first}")
    value = namespace[first]
    for step in steps:
        value = value() if step == "()" else getattr(value, step)
    return value


def serve(compiled: bool) -> int:
    """Answers a test script's calls until it hangs up."""

    def run() -> None:
        namespace = new_namespace("program")
        exec(load_program(compiled), namespace)
        Peer(CHANNEL, open_to_all=True, namespace=namespace, lost=lambda _: os._exit(0)).serve()

    return guard(run)


def run_test_script(compiled: bool) -> int:
    request = json.loads(read_all(PROGRAM))
    return confirm(run_script(request["script"], request["names"], CHANNEL), request)


def run_test_checker(compiled: bool) -> int:
    request = json.loads(read_all(PROGRAM))
    status = run_checker(request["script"], request["input"], request["output"], request["expected"])
    return confirm(status, request)


def confirm(status: int, request: dict[str, Any]) -> int:
    """A test that has run to its end prints the judge's secret word: exit status 0 is not enough, since what a test
    is given may make it call `os._exit(0)`."""
    return say(status, request["word"]) if status == PASSED else status


# C++ programs.


def run_binary(compiled: bool) -> int:
    os.set_inheritable(PROGRAM, False)
    for number in IGNORED:
        signal.signal(number, signal.SIG_DFL)
    os.execve(PROGRAM, ["program"], {"LANG": "C.UTF-8"})


def build_binary(compiled: bool) -> int:
    """Compiles what is on the program's descriptor, and copies the result to the channel."""
    os.dup2(PROGRAM, 0)
    arguments = ["g++", *FLAGS, "-x", "c++", "-", "-o", "program"]
    environment = {"PATH": os.environ["PATH"], "TMPDIR": os.getcwd(), "LANG": "C"}
    compiler = os.posix_spawnp("g++", arguments, environment, setsigdef=IGNORED)
    _, status = os.waitpid(compiler, 0)
    if status:
        return NOT_COMPILED
    with open("program", "rb") as binary, open(CHANNEL, "wb", closefd=False) as out:
        out.write(binary.read())
    return 0


# Compiling Python.


def compile_python(compiled: bool) -> int:
    """Bytecode of the program, for all of its tests. Whoever loads it is as confined as this process."""
    try:
        code = load_program(False)
    except BaseException as error:
        return say(NOT_COMPILED, describe(error))
    with open(CHANNEL, "wb", closefd=False) as out:
        out.write(marshal.dumps(code))
    return 0


# Sessions.


def session(compiled: bool) -> int:
    """Runs what comes on the channel, as one program that is written piece by piece."""
    try:
        return run_session(new_namespace("__main__"))
    except OSError:  # the other side is gone
        return 0


ROLES: dict[str, Callable[[bool], int]] = {
    "main": run_main,
    "call": run_call,
    "serve": serve,
    "script": run_test_script,
    "checker": run_test_checker,
    "binary": run_binary,
    BUILD: build_binary,
    "compile": compile_python,
    "probe": probe,
    "session": session,
}
