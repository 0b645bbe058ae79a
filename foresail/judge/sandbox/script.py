"""The process that runs a trusted test script. It never runs model code.

The script's entry point is a call into the other process. The exit status is the verdict: 0 only after the script's
last line. An exception of the program's ends this process at once, unless the text expects it: raised inside the
test, it could be caught.
"""

from __future__ import annotations

import ast
import importlib
import os
import sys
import traceback
import types
from functools import partial
from typing import Any, NoReturn

from foresail.judge.sandbox.expected_errors import asks_for_attribute, expects
from foresail.judge.sandbox.guards import guarded_builtins
from foresail.judge.sandbox.in_place import is_looked_at
from foresail.judge.sandbox.peer import Peer
from foresail.judge.sandbox.reading import TEST, Text, script_frames
from foresail.judge.sandbox.remote import Remote, remote_object
from foresail.judge.script_names import NameSources, UselessTest, find_sources

PASSED, FAILED, PROGRAM_GONE, BAD_SCRIPT = 0, 1, 40, 41


def run_script(script: str, names: list[str], channel: int) -> int:
    """run_script("assert add(1, 2) == 3", [], channel) -> PASSED when the program behind `channel` adds."""
    try:
        code = compile(script, TEST, "exec", dont_inherit=True)
        sources = find_sources(script, names)
        imported = import_names(sources)
    except UselessTest as error:
        return say(BAD_SCRIPT, str(error))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return say(BAD_SCRIPT, f"the test script does not compile: {error}")
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    sys.argv = ["test.py"]
    namespace = main.__dict__
    text = Text(script)
    peer = Peer(
        channel,
        open_to_all=False,
        namespace=namespace,
        lost=partial(end, PROGRAM_GONE),
        admit=partial(admit, text),
        carry_back=lambda value: is_looked_at(text, value, is_remote),
    )
    namespace.update(imported | guarded_builtins(text, partial(end, FAILED)))
    namespace.update(borrow(peer, sources, text))
    try:
        exec(code, namespace)
    except SystemExit as error:
        return PASSED if error.code in (None, 0) else say(FAILED, f"the script exits with {error.code}")
    except ImportError as error:  # one of the program's would have ended this process before
        return say(BAD_SCRIPT, f"the test imports what is not here: {error}")
    except BaseException as error:
        return say(FAILED, describe_failure(error, script))
    if peer.num_asked < 2 and all(isinstance(namespace.get(name), Remote) for name in sources.borrowed):
        return say(BAD_SCRIPT, "the test never calls the program")
    return PASSED


def end(status: int, why: str) -> NoReturn:
    """Ends the process at once: an exception might be caught by the script."""
    os._exit(say(status, why))


def admit(text: Text, error: BaseException, request_kind: str) -> None:
    """Returns only where the test's text expects this exception of the program's."""
    if request_kind == "get" and isinstance(error, AttributeError) and asks_for_attribute(text):
        return
    if not expects(text, type(error)):
        frames = script_frames()
        where = text.line(frames[0]) if frames else ""
        end(FAILED, f"{shown(error)}, raised by the program" + f" at `{where[:150]}`" * bool(where))


def is_remote(value: Any) -> bool:
    return issubclass(type(value), Remote)


def describe_failure(error: BaseException, script: str) -> str:
    """The exception and the script's own line that raised it."""
    steps = traceback.walk_tb(error.__traceback__)
    lines = [line for frame, line in steps if frame.f_code.co_filename == TEST]
    where = script.splitlines()[lines[-1] - 1].strip() if lines else ""
    return shown(error) + f" at `{where[:150]}`" * bool(where)


def shown(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:300].rstrip(": ")


def run_checker(script: str, test_input: str, output: str, expected: str) -> int:
    """The script defines `check(input, output, expected)`: false or an exception means wrong."""
    namespace: dict[str, Any] = {"__name__": "checker"}
    namespace |= guarded_builtins(Text(script or ""), partial(end, FAILED))
    try:
        exec(compile(script, "<checker>", "exec", dont_inherit=True), namespace)
        check = namespace["check"]
    except BaseException as error:
        return say(
            BAD_SCRIPT,
            f"the checker must define check(input, output, expected): {type(error).__name__} {error}",
        )
    try:
        return PASSED if check(test_input, output, expected) else say(FAILED, "the checker says no")
    except BaseException as error:
        return say(FAILED, f"the checker: {type(error).__name__}: {error}"[:500])


def say(status: int, message: str) -> int:
    os.write(2, message.encode("utf-8", "replace"))
    return status


# Names.


def import_names(sources: NameSources) -> dict[str, Any]:
    modules = {name: importlib.import_module(module) for name, module in sources.modules.items()}
    members = {name: getattr(importlib.import_module(m), name) for name, m in sources.members.items()}
    return modules | members


def borrow(peer: Peer, sources: NameSources, text: Text) -> dict[str, Any]:
    """The entry point, from the program. Other names that the program offers are ignored."""
    borrowed = sources.borrowed
    answer = peer.ask({"do": "names", "names": sorted(borrowed), "classes": sorted(sources.defined)})
    lent_by_name, theirs = answer if type(answer) is list and len(answer) == 2 else (None, None)
    if (
        type(lent_by_name) is not dict
        or type(theirs) is not list
        or not all(type(v) is list for v in lent_by_name.values())
    ):
        end(PROGRAM_GONE, "the program does not say what it defines")
    lent = {name: value[0] for name, value in lent_by_name.items() if name in borrowed and len(value) == 1}
    if not lent:
        end(FAILED, f"the program does not define {' or '.join(sorted(borrowed))}")
    peer.shared_classes = frozenset(name for name in theirs if type(name) is str)
    for name, value in lent.items():
        if isinstance(value, Remote):
            # By its name, as the script spells it: the program must not choose what counts as a class.
            remote_object(value).has_methods, remote_object(value).is_class = True, name[0].isupper()
        elif is_passed_on(name, text):
            end(FAILED, f"{name} is a {type(value).__name__} and cannot be called")
    return lent


def is_passed_on(name: str, text: Text) -> bool:
    """Whether the script calls a name, gives it to a function, or calls it something else: then data will not do,
    and a TypeError of ours could be caught."""
    uses = [node for node in ast.walk(text.tree) if isinstance(node, ast.Name) and node.id == name]
    return any(
        isinstance(text.parents[node], ast.Call | ast.Attribute | ast.Assign | ast.keyword) for node in uses
    )
