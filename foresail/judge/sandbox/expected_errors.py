"""Whether a test expects the exception that the program has just raised. Any other ends the test, as failed.

An exception that crossed into the test unasked would steer it: `all(map(…))` takes a StopIteration for its end, an
`except IndexError: break` meant for a list takes the program's for its own. So the text must say that a raise is
what it wants, in one of these ways:

    with self.assertRaises(ValueError): f(-1)               and its like: raises, suppress
    try: f(-1); assert False                                 going on would have failed the test
    except ValueError: pass
    try: f(-1)                                               the value is thrown away, nothing else is skipped
    except ValueError: raised = True
    try: x = f(-1)                                           a raise is worth no more than returning None
    except ValueError: x = None
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Sequence
from types import FrameType
from typing import Any, TypeGuard

from foresail.judge.sandbox.reading import Text, script_frames

RAISES = ("assertRaises", "assertRaisesRegex", "raises")
TOLERATES = ("suppress",)
FAILS = ("fail",)
EXITS = ("exit", "quit", "_exit", "SystemExit")
# `list(f(1))` and `print(f(1))` throw a value away as much as `f(1)` does.
WRAPPERS = "bool dict float int len list next print repr set str sum tuple".split()
# These steer loops and generators, or end a process: no test wants one of a program's.
NEVER = (StopIteration, StopAsyncIteration, GeneratorExit, SystemExit, KeyboardInterrupt)


def expects(text: Text, kind: type[BaseException]) -> bool:
    """Whether the innermost place that would catch the program's exception is one that wants it."""
    if issubclass(kind, NEVER) or not issubclass(kind, Exception):
        return False
    return is_wanted(text, kind, script_frames())


def expects_end(text: Text) -> bool:
    """Whether `next(…)` may find that an iterator of the program's has ended: only in a `try` around it."""
    return is_wanted(text, StopIteration, script_frames()[:1])


def asks_for_attribute(text: Text) -> bool:
    """Whether a missing attribute is an answer: `hasattr(stack, "size")`, `getattr(stack, "size", 0)`."""
    frames = script_frames()
    node = text.node_at(frames[0]) if frames else None
    return is_call_of(node, ("hasattr",)) or (is_call_of(node, ("getattr",)) and len(node.args) == 3)


def is_wanted(text: Text, kind: type[BaseException], frames: Sequence[FrameType]) -> bool:
    for frame in frames:
        node = text.node_at(frame)
        if node is None:
            return False
        if is_call_of(node, RAISES) and len(node.args) > 1:  # assertRaises(ValueError, f, -1)
            return catches(node.args[0], kind, frame)
        for child, parent in text.way_up(node):
            if isinstance(parent, ast.Try) and child in parent.body:
                if (handler := find_handler(parent, kind, frame)) is not None:
                    return wants(parent, handler, child, node, text)
            elif isinstance(parent, ast.With) and child in parent.body:
                return wants_by_context(parent, child, node, kind, frame)
            elif isinstance(parent, ast.TryStar | ast.AsyncWith):
                return False
        if not lets_through(node, text):
            return False
    return False


def lets_through(node: ast.AST, text: Text) -> bool:
    """Whether the exception may leave a function, for one further out to catch: it judges nothing by itself."""
    for child, parent in text.way_up(node):
        if isinstance(child, ast.stmt):
            plain = isinstance(child, ast.Expr | ast.Return | ast.If | ast.For | ast.While)
            if not plain or not all(is_inert(statement) for statement in following(child, parent)):
                return False
    return True


def following(statement: ast.stmt, parent: ast.AST) -> list[ast.stmt]:
    """What follows a statement in its block."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(parent, name, None)
        if isinstance(block, list) and statement in block:
            return block[block.index(statement) + 1 :]
    return []


# Which handler it would meet.


def find_handler(block: ast.Try, kind: type[BaseException], frame: FrameType) -> ast.ExceptHandler | None:
    catching = (h for h in block.handlers if h.type is None or catches(h.type, kind, frame))
    return next(catching, None)


def catches(named: ast.expr, kind: type[BaseException], frame: FrameType) -> bool:
    """Whether `except named` would catch it. `named` is a name, a dotted name, or a tuple of them."""
    if isinstance(named, ast.Tuple):
        return any(catches(part, kind, frame) for part in named.elts)
    exceptions = look_up(named, frame)
    if exceptions is None:  # something to be computed: take it that it would
        return True
    if isinstance(exceptions, tuple):
        return any(isinstance(part, type) and issubclass(kind, part) for part in exceptions)
    return isinstance(exceptions, type) and issubclass(kind, exceptions)


def look_up(named: ast.expr, frame: FrameType) -> Any:
    if isinstance(named, ast.Name):
        for names in (frame.f_locals, frame.f_globals, vars(builtins)):
            if named.id in names:
                return names[named.id]
    if isinstance(named, ast.Attribute):
        return getattr(look_up(named.value, frame), named.attr, None)
    return None


# Whether that is what the test is about.


def wants(block: ast.Try, handler: ast.ExceptHandler, at: ast.AST, node: ast.AST, text: Text) -> bool:
    assert isinstance(at, ast.stmt)
    after = block.body[block.body.index(at) + 1 :]
    if must_raise(block, handler, text):
        return is_plain(at)
    if block.orelse:
        return False
    if discards(at, node):
        skipped = [*after, *(skipped_by(block, handler, text) if leaves(handler.body) else [])]
        return all(is_inert(statement) for statement in skipped)
    return len(block.body) == 1 and equals_returning_constant(at, handler)


def wants_by_context(
    block: ast.With, at: ast.AST, node: ast.AST, kind: type[BaseException], frame: FrameType
) -> bool:
    assert isinstance(at, ast.stmt)
    for item in block.items:
        context = item.context_expr
        if is_call_of(context, (*RAISES, *TOLERATES)) and any(catches(a, kind, frame) for a in context.args):
            if is_call_of(context, RAISES):
                return is_plain(at)
            return discards(at, node) and all(map(is_inert, block.body[block.body.index(at) + 1 :]))
    return False


def must_raise(block: ast.Try, handler: ast.ExceptHandler, text: Text) -> bool:
    """Whether the test fails when the body runs through: at its end, in `else`, or right after the `try`."""
    if fails(block.body[-1]) or (block.orelse and fails(block.orelse[-1])):
        return True
    if not leaves(handler.body):
        return False
    skipped = skipped_by(block, handler, text)
    return bool(skipped) and fails(skipped[0])


def skipped_by(block: ast.Try, handler: ast.ExceptHandler, text: Text) -> list[ast.stmt]:
    """What a handler that leaves would skip: up to the end of the loop for `continue`, else of the function."""
    only_continues = not any(
        isinstance(node, ast.Return | ast.Break) or is_call_of(node, EXITS) for node in ast.walk(handler)
    )
    statements: list[ast.stmt] = []
    for child, parent in text.way_up(block):
        if isinstance(child, ast.stmt):
            statements += following(child, parent)
        if only_continues and isinstance(parent, ast.For | ast.While | ast.AsyncFor):
            break
    return statements


def fails(statement: ast.stmt) -> bool:
    """`raise ValueError`, `assert False`, `self.fail()`, `sys.exit(1)`; not an exit that may be one of success."""
    if isinstance(statement, ast.Assert):
        return isinstance(statement.test, ast.Constant) and not statement.test.value
    value = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(statement, ast.Raise):
        value = statement.exc
        named = value.func if isinstance(value, ast.Call) else value
        if not (isinstance(named, ast.Name) and issubclass(getattr(builtins, named.id, Exception), NEVER)):
            return True
    elif value is None or not is_call_of(value, (*FAILS, *EXITS)):
        return False
    if is_call_of(value, FAILS):
        return True
    status = value.args[0] if isinstance(value, ast.Call) and value.args else None
    return isinstance(status, ast.Constant) and status.value not in (0, None)


def is_plain(statement: ast.stmt) -> bool:
    """One step that judges nothing by itself."""
    return isinstance(statement, ast.Expr | ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Return)


def is_inert(statement: ast.stmt) -> bool:
    """What may be skipped: `raised = False`, `return False`, `pass`, and steps that would fail."""
    if isinstance(statement, ast.Assign | ast.Return):
        return statement.value is None or isinstance(statement.value, ast.Constant)
    return isinstance(statement, ast.Pass) or fails(statement)


def discards(statement: ast.stmt, node: ast.AST) -> bool:
    """Whether the value of `node` is thrown away: `f(1)` or `list(f(1))` as a statement of its own."""
    if not isinstance(statement, ast.Expr):
        return False
    value: ast.AST = statement.value
    while value is not node:
        if not (is_call_of(value, WRAPPERS) and isinstance(value.func, ast.Name) and len(value.args) == 1):
            return False
        value = value.args[0]
    return True


def leaves(statements: Sequence[ast.stmt]) -> bool:
    """Whether they may skip what follows: `return`, `continue`, `break`, `sys.exit(0)`."""
    nodes = [node for statement in statements for node in ast.walk(statement)]
    return any(
        isinstance(node, ast.Return | ast.Continue | ast.Break) or is_call_of(node, EXITS) for node in nodes
    )


def equals_returning_constant(statement: ast.stmt, handler: ast.ExceptHandler) -> bool:
    """`x = f(1)` with a handler that says `x = None`, or `return f(1)` with `return None`."""
    if len(handler.body) != 1 or type(handler.body[0]) is not type(statement):
        return False
    other = handler.body[0]
    if isinstance(statement, ast.Assign) and isinstance(other, ast.Assign):
        same = list(map(ast.dump, statement.targets)) == list(map(ast.dump, other.targets))
        return same and is_about_error(other.value, handler.name)
    return isinstance(other, ast.Return) and (
        other.value is None or is_about_error(other.value, handler.name)
    )


def is_about_error(value: ast.expr, error: str | None) -> bool:
    """A constant, or the exception described: `type(error).__name__`, `str(error)`."""
    known = {"type", "str", "repr", error}
    return all(
        isinstance(node, ast.Constant | ast.Call | ast.Load)
        or (isinstance(node, ast.Attribute) and node.attr == "__name__")
        or (isinstance(node, ast.Name) and node.id in known)
        for node in ast.walk(value)
    )


def is_call_of(node: ast.AST | None, names: Sequence[str]) -> TypeGuard[ast.Call]:
    """is_call_of(`self.assertRaises(…)`, ["assertRaises"]) -> True."""
    if not isinstance(node, ast.Call):
        return False
    called = node.func
    name = called.id if isinstance(called, ast.Name) else getattr(called, "attr", None)
    return name in names
