"""The process that runs a trusted test script. It never runs model code.

Every name the script takes from the program stands for a call into the other process. The verdict is how this
process ends: 0 only after the script's last line.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import os
import symtable
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from foresail.rewards.sandbox.peer import Peer, Remote

PASSED, FAILED, PROGRAM_GONE, BAD_SCRIPT = 0, 1, 40, 41


def run_script(script: str, names: list[str], channel: int) -> int:
    """run_script("assert add(1, 2) == 3", [], channel) -> PASSED when the program behind `channel` adds."""
    try:
        code = compile(script, "<test>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return say(BAD_SCRIPT, f"the test script does not compile: {error}")
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    namespace = main.__dict__
    # A script may catch anything, so it is not told of the program's end: it ends as well.
    peer = Peer(
        channel, open_to_all=False, namespace=namespace, lost=lambda why: os._exit(say(PROGRAM_GONE, why))
    )
    try:
        namespace.update(borrow(peer, read_names(script), names))
        exec(code, namespace)
    except SystemExit as error:
        return PASSED if error.code in (None, 0) else say(FAILED, f"the script exits with {error.code}")
    except BaseException as error:
        return say(FAILED, describe_failure(error, script))
    return PASSED


def describe_failure(error: BaseException, script: str) -> str:
    """The exception and the script's own line that raised it."""
    lines = [step.tb_lineno for step in walk_traceback(error) if step.tb_frame.f_code.co_filename == "<test>"]
    where = script.splitlines()[lines[-1] - 1].strip() if lines else ""
    return f"{type(error).__name__}: {error}"[:300].rstrip(": ") + f" at `{where[:150]}`" * bool(where)


def walk_traceback(error: BaseException) -> Iterator[types.TracebackType]:
    step = error.__traceback__
    while step is not None:
        yield step
        step = step.tb_next


def run_checker(script: str, given: str, output: str, expected: str) -> int:
    """The script defines `check(input, output, expected)`: false or an exception means wrong."""
    namespace: dict[str, Any] = {"__name__": "checker"}
    try:
        exec(compile(script, "<checker>", "exec", dont_inherit=True), namespace)
        check = namespace["check"]
    except BaseException as error:
        return say(
            BAD_SCRIPT,
            f"the checker must define check(input, output, expected): {type(error).__name__} {error}",
        )
    try:
        return PASSED if check(given, output, expected) else say(FAILED, "the checker says no")
    except BaseException as error:
        return say(FAILED, f"the checker: {type(error).__name__}: {error}"[:500])


def say(status: int, message: str) -> int:
    os.write(2, message.encode("utf-8", "replace"))
    return status


# Names.


@dataclass(frozen=True, kw_only=True)
class Names:
    """Global names of a script."""

    defined: set[str]
    used: set[str]
    dotted: set[str]  # used only as `name.attribute`, as modules are


def read_names(script: str) -> Names:
    """read_names("def check(f): assert math.sqrt(f(4)) == 2") -> defined {check}, used {math, f}, dotted {math}."""
    tree = ast.parse(script)
    loads = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
    owners = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    top = symtable.symtable(script, "<test>", "exec")
    defined = {
        symbol.get_name() for symbol in top.get_symbols() if symbol.is_assigned() or symbol.is_imported()
    }
    plain = {node.id for node in loads if id(node) not in owners}
    used = {node.id for node in loads}
    return Names(defined=defined, used=used, dotted=used - plain)


def borrow(peer: Peer, own: Names, names: list[str]) -> dict[str, Any]:
    """What the script takes from the program: the given names, else all it uses without defining them.

    A program must not sit in judgement on itself by bringing its own `abs`, `all` or `math`. So a builtin's name
    is borrowed only where the script uses no other free name (`assert sum(10, 15) == 6`), and then only if the
    program has just one; and what looks like a module of the standard library is imported here.
    """
    free = own.used - own.defined
    modules = {} if names else {name: name for name in free & own.dotted & sys.stdlib_module_names}
    wanted = set(names) or {name for name in free - set(modules) if not hasattr(builtins, name)}
    asked = wanted or {name for name in free if hasattr(builtins, name)}
    found, theirs = peer.ask({"do": "names", "names": sorted(asked), "classes": sorted(own.defined)})
    if type(found) is not dict or type(theirs) is not list:  # an honest program answers with plain data
        raise TypeError("the program does not say what it defines")
    peer.shared_classes = frozenset(theirs)
    if not wanted and len(found) > 1:
        raise NameError(
            f"the program redefines {', '.join(sorted(found))}: which of them is meant is unclear"
        )
    lent = {name: value[0] for name, value in found.items() if name in asked}
    for name, value in lent.items():
        if isinstance(value, Remote):
            # By its name, as the script spells it: the program must not choose what counts as a class.
            value.__dict__.update(_has_methods=True, _is_class=name[0].isupper())
    return lent | {name: importlib.import_module(name) for name in modules}
