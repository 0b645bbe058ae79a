"""Where a test script's names come from: itself, the builtins, real modules, and one from the program.

    find_sources("assert math.isclose(f(4), 2)") -> borrowed ("f",), modules {"math": "math"}

A program must not judge itself by bringing its own `abs`, `np` or `is_same_list`. So only the entry
point is the program's: the names a test gives, or, where it gives none, the only one that nothing else explains.
Any other name without a source makes the test useless: that is reported, and the name never taken from the program.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import importlib.util
import symtable
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

# As people import them.
ALIASES = {
    "np": "numpy",
    "pd": "pandas",
    "scipy": "scipy",
    "sympy": "sympy",
    "torch": "torch",
    "dt": "datetime",
}
# Whose members tests use as if they were builtins; the first that has the name gives it.
LIBRARIES = (
    "typing collections itertools functools math heapq bisect copy re string operator random fractions decimal"
    " datetime statistics dataclasses contextlib enum abc unittest io json time"
).split()
# Of those, functions that make a value for a test to hand over.
MAKERS = "copy date datetime deepcopy defaultdict deque namedtuple time timedelta".split()


class UselessTest(ValueError):
    """A test that needs what neither it nor its problem nor an installed module has."""


@dataclass(frozen=True, kw_only=True)
class Names:
    """Global names of a script."""

    defined: frozenset[str]
    free: frozenset[str]  # used and not defined; builtins among them
    dotted: frozenset[str]  # of those, used only as `name.attribute`, as modules are


@dataclass(frozen=True, kw_only=True)
class NameSources:
    """What a script is given before it runs."""

    defined: frozenset[str]  # by itself
    borrowed: tuple[str, ...]  # from the program
    modules: dict[str, str] = field(default_factory=dict)  # name -> module
    members: dict[str, str] = field(default_factory=dict)  # name -> module that has it


def read_names(script: str) -> Names:
    """read_names("def check(f): assert math.sqrt(f(4)) == x") -> defined {check}, free {math, x}, dotted {math}."""
    top = symtable.symtable(script, "<test>", "exec")
    defined = {s.get_name() for s in top.get_symbols() if s.is_assigned() or s.is_imported()}
    used: set[str] = set()
    for table in walk_tables(top):
        for symbol in table.get_symbols():
            if symbol.is_referenced() and (table is top or symbol.is_global()):
                used.add(symbol.get_name())
            if symbol.is_declared_global() and symbol.is_assigned():
                defined.add(symbol.get_name())
    free = used - defined
    if "import *" in script:
        free -= starred_names(script)
    return Names(defined=frozenset(defined), free=frozenset(free), dotted=dotted_names(script, free))


def walk_tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for child in table.get_children():
        yield from walk_tables(child)


def dotted_names(script: str, free: set[str]) -> frozenset[str]:
    if not any(f"{name}." in script for name in free):
        return frozenset()
    nodes = list(ast.walk(ast.parse(script)))
    owners = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    return frozenset(free) - {n.id for n in nodes if isinstance(n, ast.Name) and id(n) not in owners}


def starred_names(script: str) -> set[str]:
    """What `from math import *` and its like bring, of modules that are here."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(script)):
        if isinstance(node, ast.ImportFrom) and node.module and any(part.name == "*" for part in node.names):
            with suppress(ImportError):
                names |= public_names(node.module)
    return names


def public_names(module: str) -> set[str]:
    members = vars(importlib.import_module(module))
    return set(members.get("__all__") or (name for name in members if not name.startswith("_")))


def find_sources(script: str, names: Sequence[str] = ()) -> NameSources:
    """Raises UselessTest where a name has no source, or where it is unclear which is the program's."""
    own = read_names(script)
    free = {name for name in own.free if not hasattr(builtins, name)}
    borrowed = set(names) or {choose_entry_point(script, own, free)}
    modules = {name: module for name in free - borrowed if (module := as_module(name, own))}
    left = free - borrowed - set(modules)
    members = {name: library for name in left if (library := as_member(name))}
    if missing := sorted(left - set(members)):
        raise UselessTest(
            f"the test uses {', '.join(missing)}, which neither it nor the prompt's code defines; "
            "add that to the test, whose names are never taken from the program beside its entry point"
        )
    return NameSources(
        defined=own.defined, borrowed=tuple(sorted(borrowed)), modules=modules, members=members
    )


def choose_entry_point(script: str, own: Names, free: set[str]) -> str:
    """The one name that nothing but the program can explain: `f` in `assert Counter(f(1)) == np.ones(3)`.

    A builtin is that only where nothing else is used: `assert sum(10, 15) == 6`.
    """
    unexplained = explain(own, free)
    if not free:
        unexplained = {name for name in own.free if callable(getattr(builtins, name, None))}
    if len(unexplained) == 1:
        (entry_point,) = unexplained
        unexplained |= find_rivals(script, entry_point, free - unexplained)
    if len(unexplained) == 1:
        return unexplained.pop()
    if unexplained:
        listed = ", ".join(sorted(unexplained))
        raise UselessTest(
            f"the test uses {listed} without defining them; only its entry point may be the program's: "
            "say which that is (`names`, or `entry_point` in a row) and define the others"
        )
    raise UselessTest("the test takes nothing from the program, so it says nothing of it; give it `names`")


def find_rivals(script: str, entry_point: str, others: set[str]) -> set[str]:
    """Functions that a library has, too, and whose values are given to the presumed entry point.

    In `is_same(accumulate([1, 2]), [1, 3])` the one to be judged may be either.
    """
    if not others:
        return set()
    calls = [node for node in ast.walk(ast.parse(script)) if isinstance(node, ast.Call)]
    inner = [
        part.func.id
        for call in calls
        if isinstance(call.func, ast.Name) and call.func.id == entry_point
        for argument in [*call.args, *call.keywords]
        for part in ast.walk(argument)
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Name)
    ]
    return {name for name in inner if name in others and name[0].islower() and name not in MAKERS}


def explain(own: Names, free: set[str]) -> set[str]:
    """What is left of the free names when modules and, of several, their members are taken away."""
    unexplained = {name for name in free if not as_module(name, own)}
    if len(unexplained) > 1:
        unexplained = {name for name in unexplained if not as_member(name)}
    return unexplained


def unexplained_names(script: str) -> frozenset[str]:
    """unexplained_names("assert f(Node(1)) == math.inf") -> {f, Node}."""
    own = read_names(script)
    return frozenset(explain(own, {name for name in own.free if not hasattr(builtins, name)}))


def as_module(name: str, own: Names) -> str | None:
    """The module that a name stands for where it is only used as `name.attribute`."""
    if name not in own.dotted:
        return None
    module = name if name in sys.stdlib_module_names else ALIASES.get(name)
    return module if module and is_installed(module) else None


def is_installed(module: str) -> bool:
    with suppress(ImportError, ValueError):
        return importlib.util.find_spec(module) is not None
    return False


def as_member(name: str) -> str | None:
    """as_member("Counter") -> "collections"."""
    return next((library for library in LIBRARIES if name in public_names(library)), None)
