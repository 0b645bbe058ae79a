"""Whether a test looks at what a call did to its argument: `move_zeroes(xs)` and then `assert xs == [1, 2, 0]`.

Values that a test hands over are copies, so a program cannot change them under it. A change is carried back only
where the text looks at the variable again, and never where it compares it with what the program returned: in
`assert f(xs) == sorted(xs)` the right side says what is expected, and a program that empties `xs` would choose it.

    f(xs); assert xs == [1, 2]                 carried back
    k = f(xs); assert xs[:k] == [1, 2]         carried back: both are compared with something of the test's
    assert f(xs) == sorted(xs)                 not: the program's value on one side, its argument on the other
    r = f(xs); w = sorted(xs); assert r == w   not: the same by way of a name
"""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from types import CellType, CodeType, FrameType, FunctionType
from typing import Any

from foresail.judge.sandbox.reading import Text, script_frames

MAX_VALUES = (
    100_000  # values looked through for one argument; a variable that holds more counts as holding it
)
LOOPS = (ast.For, ast.While, ast.AsyncFor)
SCRIPT = "__main__"  # the module of what a script defines
EMPTY = CellType()
HARMLESS = ("print", "range", "isinstance", "len")


def is_looked_at(text: Text, argument: Any, is_program: Callable[[Any], bool]) -> bool:
    """Whether a change of `argument`, by the call that the script is at, is to be seen by the script.

    Every function of the script that is under way counts: one of them may know the value by another name.
    """
    looked = False
    for frame in script_frames():
        node = text.node_at(frame)
        if node is None:
            return False
        variables = frame.f_locals
        names = {name for name, value in variables.items() if holds(value, argument)}
        if names:
            same = {name for name in names if variables[name] is argument}
            uses = Uses(text, node, names, same, Values(frame, is_program))
            if uses.compares_with_returned():
                return False
            looked = looked or uses.read()
    return looked


def holds(value: Any, target: Any) -> bool:
    """Whether a variable is the value, or a list, dict or object of the script's that holds it."""
    waiting, met = [value], set()
    while waiting:
        value = waiting.pop()
        if value is target:
            return True
        if id(value) not in met and (inner := parts_of(value)):
            met.add(id(value))
            waiting += inner
            if len(waiting) + len(met) > MAX_VALUES:
                return True
    return False


def parts_of(value: Any) -> list[Any]:
    if isinstance(value, list | tuple | set | frozenset | deque):
        return list(value)
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    if type(value).__module__ == SCRIPT and isinstance(getattr(value, "__dict__", None), dict):
        return list(vars(value).values())
    return []


class Values:
    """What names of a frame stand for while it runs."""

    def __init__(self, frame: FrameType, is_program: Callable[[Any], bool]) -> None:
        self.frame = frame
        self.is_program = is_program

    def value(self, name: str) -> Any:
        return self.frame.f_locals.get(name, self.frame.f_globals.get(name))

    def is_remote(self, name: str) -> bool:
        return self.is_program(self.value(name))

    def from_program(self, name: str) -> bool:
        """Whether a name is an object of the program's, or something of the script's that uses one."""
        return self.uses_program(self.value(name), set())

    def uses_program(self, value: Any, met: set[int]) -> bool:
        if id(value) in met:
            return False
        met.add(id(value))
        if isinstance(value, FunctionType):
            values = [self.frame.f_globals.get(name) for name in names_in(value.__code__)]
            cells = [cell.cell_contents for cell in value.__closure__ or () if cell != EMPTY]
            return any(self.uses_program(part, met) for part in [*values, *cells])
        if isinstance(value, type) and value.__module__ == SCRIPT:
            return any(self.uses_program(member, met) for member in vars(value).values())
        return self.is_program(value)

    def from_program_by_class(self, name: str) -> bool:
        return self.uses_program(type(self.value(name)), set())


def names_in(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from names_in(constant)


class Uses:
    """What becomes of `names` after the expression `node`, in the function around it.

    `changed` are names that the call may have changed, and what is made of them afterwards; `returned` are values
    of the program's, and what is made of those.
    """

    def __init__(self, text: Text, node: ast.AST, names: set[str], same: set[str], values: Values) -> None:
        self.text = text
        self.node = node
        self.same = same  # those that are the argument itself, and do not only hold it
        self.values = values
        self.scope = text.scope(node)
        self.around = {parent for _, parent in text.way_up(node)}
        self.after = self.find_after()
        self.changed = set(names)
        self.returned: set[str] = set()
        self.spread()

    def find_after(self) -> set[ast.AST]:
        """Whatever may run after the call: its own statement, what stands behind it, loops around it, and
        functions that are defined inside."""
        zone: ast.AST = self.node
        for _, parent in self.text.way_up(self.node):
            if isinstance(parent, LOOPS) or not isinstance(zone, ast.stmt):
                zone = parent
        start, end = first(zone), last(zone)
        nodes = list(ast.walk(self.scope))
        inside = {
            inner
            for node in nodes
            if isinstance(node, ast.FunctionDef | ast.Lambda) and node is not self.scope
            for inner in ast.walk(node)
        }
        return inside | {
            node
            for node in nodes
            if hasattr(node, "lineno")
            and (first(node) >= end or (start <= first(node) and last(node) <= end))
        }

    def spread(self) -> None:
        """A name takes after what is assigned to it; until nothing is added."""
        bound = [
            ({part.id for part in ast.walk(target) if isinstance(part, ast.Name)}, value, self.is_later(node))
            for node in ast.walk(self.scope)
            for target, value in assignments(node)
        ]
        size = -1
        while size != len(self.changed) + len(self.returned):
            size = len(self.changed) + len(self.returned)
            for names, value, later in bound:
                if self.has_returned(value):
                    self.returned |= names
                if later and self.has_changed(value):
                    self.changed |= names

    def is_later(self, node: ast.AST) -> bool:
        """Whether it binds its names after the call; the next turn of a loop around it takes the next case."""
        return node not in self.around and (node in self.after or isinstance(node, ast.comprehension))

    # Questions about expressions.

    def has_changed(self, node: ast.AST) -> bool:
        return any(name in self.changed for name in names_of(node))

    def has_returned(self, node: ast.AST) -> bool:
        if any(name in self.returned or self.values.from_program(name) for name in names_of(node)):
            return True
        return any(isinstance(inner, ast.Call) and self.asks_program(inner.func) for inner in ast.walk(node))

    def asks_program(self, called: ast.AST) -> bool:
        """Whether a method of the script's own objects, `harness.run(xs)`, uses the program."""
        if not isinstance(called, ast.Attribute) or called.attr.startswith("assert"):
            return False
        return any(self.values.from_program_by_class(name) for name in names_of(called))

    def read(self) -> bool:
        """Whether a changed name is read afterwards, but for the call itself."""
        own = set(ast.walk(self.node))
        return any(
            isinstance(node, ast.Name)
            and isinstance(node.ctx, ast.Load)
            and node.id in self.changed
            and node not in own
            for node in self.after
        )

    def compares_with_returned(self) -> bool:
        """Whether anything compares what the program may have changed with what it returned."""
        return any(self.are_mixed(self.sides(node)) or self.steers(node) for node in self.after)

    def sides(self, node: ast.AST) -> list[ast.AST]:
        """What a node compares or combines: the sides of `==` and `-`, the arguments of a call that is not the
        program's own, the alternatives of `or` in a condition."""
        if isinstance(node, ast.Compare):
            return [node.left, *node.comparators]
        if isinstance(node, ast.BinOp):
            return [node.left, node.right]
        if isinstance(node, ast.Call):
            owners = set(names_of(node.func))
            if owners & set(HARMLESS) or any(map(self.values.is_remote, owners)):
                return []
            own = isinstance(node.func, ast.Attribute) and not node.func.attr.startswith("assert")
            owner = [node.func] if own and owners & (self.returned | self.changed) else []
            return [*owner, *node.args, *(keyword.value for keyword in node.keywords)]
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or) and is_condition(node, self.text):
            return list(node.values)
        return []

    def are_mixed(self, sides: Sequence[ast.AST]) -> bool:
        """Whether one of them was changed by the program, and another returned by it."""
        changed = [self.has_changed(side) for side in sides]
        returned = [self.has_returned(side) for side in sides]
        places = range(len(sides))
        return any(changed[i] and returned[j] for i in places for j in places if i != j)

    def steers(self, node: ast.AST) -> bool:
        """Whether what was changed decides if a returned value is looked at: `if xs: assert r == 1`."""
        if isinstance(node, ast.For):
            names = set(names_of(node.iter))
            condition = names & self.same if node in self.around else names & self.changed
        elif isinstance(node, ast.If | ast.While | ast.IfExp):
            condition = set(names_of(node.test)) & self.changed
        else:
            return False
        return bool(condition) and any(
            isinstance(inner, ast.Assert | ast.Compare) and self.has_returned(inner)
            for part in (node.body, getattr(node, "orelse", []))
            for child in (part if isinstance(part, list) else [part])
            for inner in ast.walk(child)
        )


def first(node: Any) -> tuple[int, int]:
    return node.lineno, node.col_offset


def last(node: Any) -> tuple[int, int]:
    return node.end_lineno, node.end_col_offset


def assignments(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """(target, value) of whatever binds names."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield target, node.value
    elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr) and node.value is not None:
        yield node.target, node.value
    elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
        yield node.target, node.iter


def names_of(node: ast.AST) -> Iterator[str]:
    """Names an expression is made of; places in a list do not count: `want[k]` is the test's, whatever `k` is."""
    if isinstance(node, ast.Name):
        yield node.id
    for name, value in ast.iter_fields(node):
        if name == "slice":
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from names_of(child)


def is_condition(node: ast.AST, text: Text) -> bool:
    """Whether it is asked for its truth: `assert a or b`, and not for its value: `x = a or b`."""
    parent = text.parents.get(node)
    while isinstance(parent, ast.BoolOp | ast.UnaryOp):
        node, parent = parent, text.parents.get(parent)
    return getattr(parent, "test", None) is node or isinstance(parent, ast.Call | ast.Return)
