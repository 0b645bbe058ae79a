"""Code that a problem gives beside its tests: imports and helpers of its prompt, helpers of its own solution.

Tests take names from here, and never from the program they judge.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence

from foresail.judge.programs.asserts import bound_names, unparse
from foresail.judge.programs.evalplus import root_name
from foresail.judge.programs.fences import TAGS, read_blocks
from foresail.judge.programs.syntax import parse
from foresail.judge.script_names import unexplained_names

IMPORTS = (ast.Import, ast.ImportFrom)
DEFINITIONS = (ast.FunctionDef, ast.ClassDef)
KEPT_IN_PRELUDE = (*IMPORTS, *DEFINITIONS, ast.Assign, ast.AnnAssign)


def read_prelude(prompt: str, entry_point: str) -> str:
    """Imports and helpers of a prompt that is Python, or of the fenced blocks of one that is prose.

    read_prelude("import math\\ndef area(r):\\n    '''…'''", "area") -> "import math".
    """
    root = root_name(entry_point)
    try:
        return unparse(all_but(root, parse(prompt).body))
    except ValueError:
        return unparse([statement for body in read_bodies(prompt) for statement in keep(body, root)])


def all_but(root: str, body: Sequence[ast.stmt]) -> list[ast.stmt]:
    return [s for s in body if isinstance(s, KEPT_IN_PRELUDE) and getattr(s, "name", None) != root]


def read_bodies(prompt: str) -> Iterator[list[ast.stmt]]:
    """What the Python blocks of a prose prompt hold; a signature at the end of one may lack its body."""
    for block in read_blocks(prompt):
        if block.tag and TAGS.get(block.tag) != "python":
            continue
        for text in (block.text, finish(block.text)):
            try:
                yield parse(text).body
            except ValueError:
                continue
            break


def finish(source: str) -> str:
    """finish("class A:\\n    def f(self):") -> the same with `pass` where a body should be."""
    lines = source.rstrip().splitlines()
    indent = len(lines[-1]) - len(lines[-1].lstrip()) + 4 if lines else 0
    return "\n".join([*lines, " " * indent + "pass"])


def keep(body: Sequence[ast.stmt], root: str) -> list[ast.stmt]:
    """Of the code around the entry point all that defines anything; of other blocks, which may be examples of use,
    only functions, classes and imports of the standard library."""
    if any(getattr(statement, "name", None) == root for statement in body):
        return all_but(root, body)
    return [s for s in body if isinstance(s, DEFINITIONS) or is_standard_import(s)]


def is_standard_import(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.ImportFrom):
        return (statement.module or "").partition(".")[0] in sys.stdlib_module_names
    return isinstance(statement, ast.Import) and all(
        part.name.partition(".")[0] in sys.stdlib_module_names for part in statement.names
    )


# The solution that comes with a problem.


def take_helpers(scripts: Sequence[str], setup: str, solution: str) -> tuple[str, str] | None:
    """The entry point of a row that names none, and what its tests need beside it, out of its own solution.

    MBPP has tests that build a `Node(1)`, which only the solution defines. None where nothing is wanting.
    """
    whole = [f"{setup}\n{script}" for script in scripts]
    unexplained = frozenset().union(*map(unexplained_names, whole))
    if len(unexplained) < 2:
        return None
    called = {name for script in scripts for name in outer_calls(parse(script), unexplained)}
    if len(called) != 1:
        return None
    (entry_point,) = called
    others = all_but(entry_point, parse(solution).body)
    return (entry_point, unparse(others)) if unexplained - {entry_point} <= bound_names(others) else None


def outer_calls(node: ast.AST, names: frozenset[str]) -> Iterator[str]:
    """Calls of these names that do not stand in another's arguments: `f` in `f(Node(1)) == 2`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
        yield node.func.id
        return
    for child in ast.iter_child_nodes(node):
        yield from outer_calls(child, names)
