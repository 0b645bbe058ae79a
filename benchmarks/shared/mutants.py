"""Known-wrong programs: copies of a right one with one small mistake, each by a named operator.

    mutate("def f(x): return x < 1") -> [Mutant("compare", "def f(x):\\n    return x <= 1"), …]

Not every mutant is wrong: `while i < n` and `while i != n` often mean the same.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from itertools import islice
from typing import Any, NamedTuple

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.FloorDiv,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}


class Mutant(NamedTuple):
    """What was done, and the program it made."""

    operator: str
    source: str


def mutate(source: str) -> list[Mutant]:
    """Every mutant of a program, in the order of its syntax tree, each text once."""
    nodes = list(ast.walk(ast.parse(source)))
    seen = {ast.unparse(nodes[0])}
    mutants = []
    for operator, (kinds, change) in OPERATORS.items():
        for index in (index for index, node in enumerate(nodes) if isinstance(node, kinds)):
            altered = alter(source, index, change)
            if altered is not None and altered not in seen:
                seen.add(altered)
                mutants.append(Mutant(operator, altered))
    return mutants


def alter(source: str, index: int, change: Callable[[Any], bool]) -> str | None:
    """The program with its syntax node of that number changed; None where the operator does not apply."""
    tree = ast.parse(source)  # parsing again is cheaper than copying a tree
    if not change(next(islice(ast.walk(tree), index, None))):
        return None
    text = ast.unparse(ast.fix_missing_locations(tree))
    return text if is_python(text) else None


def is_python(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def swap_comparison(node: ast.Compare) -> bool:
    """`<` to `<=`, `==` to `!=`, `in` to `not in`."""
    node.ops[0] = COMPARISONS[type(node.ops[0])]()
    return True


def swap_arithmetic(node: ast.BinOp | ast.AugAssign) -> bool:
    """`+` to `-`, `//` to `*`, in `+=` too."""
    if type(node.op) not in ARITHMETIC:
        return False
    node.op = ARITHMETIC[type(node.op)]()
    return True


def shift_number(node: ast.Constant) -> bool:
    """An integer constant becomes one more."""
    if type(node.value) is not int:
        return False
    node.value += 1
    return True


def flip_boolean(node: ast.Constant) -> bool:
    if type(node.value) is not bool:
        return False
    node.value = not node.value
    return True


def drop_return_value(node: ast.Return) -> bool:
    """`return x` to `return`."""
    node.value = None
    return True


def swap_and_or(node: ast.BoolOp) -> bool:
    node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    return True


def negate_condition(node: ast.If | ast.IfExp) -> bool:
    """`if x` to `if not x`."""
    node.test = ast.UnaryOp(op=ast.Not(), operand=node.test)
    return True


def drop_statement(node: ast.FunctionDef | ast.For | ast.While | ast.If) -> bool:
    """The last assignment or call in a body becomes `pass`."""
    for place, statement in reversed(list(enumerate(node.body))):
        call = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
        if call or isinstance(statement, ast.Assign | ast.AugAssign):
            node.body[place] = ast.Pass()
            return True
    return False


OPERATORS: dict[str, tuple[tuple[type[ast.AST], ...], Callable[[Any], bool]]] = {
    "compare": ((ast.Compare,), swap_comparison),
    "arithmetic": ((ast.BinOp, ast.AugAssign), swap_arithmetic),
    "off by one": ((ast.Constant,), shift_number),
    "boolean": ((ast.Constant,), flip_boolean),
    "no return": ((ast.Return,), drop_return_value),
    "and/or": ((ast.BoolOp,), swap_and_or),
    "negated if": ((ast.If, ast.IfExp), negate_condition),
    "dropped line": ((ast.FunctionDef, ast.For, ast.While, ast.If), drop_statement),
}
