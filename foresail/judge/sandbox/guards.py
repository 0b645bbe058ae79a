"""Builtins as a test script sees them, where the real ones would let a program's values steer or run the test."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from foresail.judge.sandbox.expected_errors import expects_end
from foresail.judge.sandbox.reading import Text
from foresail.judge.wire import Drained

# `eval` of what a program returned may compute, and no more: no calls, no attributes.
ARITHMETIC = (
    ast.Expression, ast.Constant, ast.Name, ast.Load, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp,
    ast.List, ast.Tuple, ast.Set, ast.Dict, ast.Subscript, ast.Slice,
    ast.operator, ast.unaryop, ast.boolop, ast.cmpop,
)  # fmt: skip
PLAIN = (int, float, complex, str, bytes, bool, list, tuple, dict, set, frozenset, type(None))


def guarded_builtins(text: Text, fail: Callable[[str], NoReturn]) -> dict[str, Callable[..., Any]]:
    """`fail` ends the test: what would only be raised could be caught."""

    def guarded_next(iterator: Any, *default: Any) -> Any:
        """The end of an iterator of the program's must not end a loop of the test's."""
        if type(iterator) is Drained and not iterator.left and not default and not expects_end(text):
            fail("the program's iterator has no more values")
        return next(iterator, *default)

    def guarded_eval(source: Any, names: Any = None, more: Any = None, /) -> Any:
        names, more = surroundings(names, more)
        if not is_own(source) and not is_arithmetic(source, {**names, **more}):
            fail("the test would evaluate what the program wrote")
        return eval(source, names, more)

    def guarded_exec(source: Any, names: Any = None, more: Any = None, /) -> None:
        names, more = surroundings(names, more)
        if not is_own(source):
            fail("the test would execute what the program wrote")
        exec(source, names, more)

    def is_own(source: Any) -> bool:
        """Whether it stands in the test as a literal, or was compiled by it."""
        return not isinstance(source, str) or repr(source) in text.script

    return {"next": guarded_next, "eval": guarded_eval, "exec": guarded_exec}


def surroundings(names: Any, more: Any) -> tuple[Any, Any]:
    """The namespaces of whoever called, where none are given."""
    if names is None:
        caller = sys._getframe(2)
        names, more = caller.f_globals, caller.f_locals if more is None else more
    return names, names if more is None else more


def is_arithmetic(source: str, names: dict[str, Any]) -> bool:
    """is_arithmetic("(1 + 2) * x", {"x": 3}) -> True; is_arithmetic("exit()", {}) -> False."""
    try:
        nodes = list(ast.walk(ast.parse(source.strip(), mode="eval")))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True  # evaluating it raises, as it should
    used = [names.get(node.id) for node in nodes if isinstance(node, ast.Name)]
    return all(isinstance(node, ARITHMETIC) for node in nodes) and all(type(v) in PLAIN for v in used)
