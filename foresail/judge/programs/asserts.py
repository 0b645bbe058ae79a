"""From assert scripts to single tests: the way HumanEval, MBPP and LeetCode data write what they expect.

`assert f(1, 2) == 3` says no more than a call and its value, so it becomes a strict `CallTest`. Everything else
stays a script. A list of asserts is split, one test each, wherever that cannot change what they mean; a script
that builds up state from line to line stays whole.
"""

from __future__ import annotations

import ast
import operator
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from foresail.judge.programs.evalplus import called_name, root_name, split_pairs
from foresail.judge.programs.program import AssertTest, CallTest, Test
from foresail.judge.programs.syntax import parse

_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip
_LARGEST = 10**30

# Builtins that leave nothing behind and call nothing of the program's.
_PURE = frozenset(
    """abs bool dict enumerate float frozenset int len list max min range reversed round set sorted str sum
    tuple zip""".split()
)


class Script(NamedTuple):
    """Statements to be tested one by one, after `opening`; `names` are what the opening defines."""

    opening: str
    names: frozenset[str]
    body: list[ast.stmt]
    whole: str
    takes: tuple[str, ...]  # from the program


def split_script(script: str, setup: str = "", takes: tuple[str, ...] = ()) -> list[Test]:
    """split_script("assert add(1, 2) == 3") -> [CallTest(function="add", arguments=(1, 2), expected=3)].

    `takes` is what scripts may take from the program; empty: the one name that nothing else explains.
    """
    opening = join(setup)
    names = bound_names(parse_test(opening).body)
    return split(Script(opening, names, parse_test(script).body, join(opening, script), takes))


def split_check(test: str, entry_point: str, setup: str = "") -> list[Test]:
    """The asserts inside `def check(candidate): …`, on the function that the entry point names.

    split_check("def check(f):\\n assert f(1) == 2", "inc") -> [CallTest(function="inc", arguments=(1,), …)].
    """
    module = parse_test(test).body
    check = next((s for s in module if isinstance(s, ast.FunctionDef) and s.name == "check"), None)
    if check is None or len(check.args.args) != 1:
        raise ValueError("field 'test' defines no check(candidate); give it one")
    candidate = check.args.args[0].arg
    helpers = [statement for statement in module if statement is not check and not is_metadata(statement)]
    opening = join(setup, unparse(helpers), f"{candidate} = {entry_point}")
    names = bound_names(parse_test(join(setup)).body) | bound_names(helpers)
    whole = join(setup, test, f"check({entry_point})")
    takes = (root_name(entry_point),)
    tests = split(Script(opening, names, check.body, whole, takes), {candidate: entry_point})
    return tests if tests else [AssertTest(script=whole, names=takes)]


def split(script: Script, aliases: dict[str, str] | None = None) -> list[Test]:
    aliases = aliases or {}
    if (pairs := split_pairs(script.body, aliases)) is not None:
        return pairs
    body = [statement for statement in script.body if not says_nothing(statement)]
    if not is_splittable(body):
        return [AssertTest(script=script.whole, names=script.takes)]
    tests: list[Test] = []
    before: list[ast.stmt] = []
    for statement in body:
        if is_preparation(statement):
            before.append(statement)
            continue
        own = script.names | bound_names(before)
        call = to_call(statement, aliases, own)
        if call is not None and (not script.takes or root_name(call.function) in script.takes):
            tests.append(call)
        else:
            lines = join(script.opening, unparse(before), unparse([statement]))
            tests.append(AssertTest(script=lines, names=script.takes))
    return tests


def to_call(statement: ast.stmt, aliases: dict[str, str], own: frozenset[str]) -> CallTest | None:
    """The call and value that an assert compares, if it does just that; `own` names are not the program's."""
    if not isinstance(statement, ast.Assert) or not isinstance(statement.test, ast.Compare):
        return None
    compare = statement.test
    if len(compare.ops) != 1 or not isinstance(compare.ops[0], ast.Eq):
        return None
    left, right = compare.left, compare.comparators[0]
    if isinstance(right, ast.Call) and not isinstance(left, ast.Call):
        left, right = right, left
    name = called_name(left)
    if name is None or name in own or not isinstance(left, ast.Call):
        return None
    try:
        arguments = tuple(read_data(argument) for argument in left.args)
        keywords = {k.arg: read_data(k.value) for k in left.keywords if k.arg is not None}
        expected = read_data(right)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None  # an expression, not data
    if len(keywords) < len(left.keywords):
        return None  # f(**table)
    function = aliases.get(name, name)  # {"candidate": "Solution().add"}
    return CallTest(function=function, arguments=arguments, keywords=keywords, expected=expected, strict=True)


def read_data(node: ast.expr) -> Any:
    """A literal, or arithmetic on plain numbers: `2.0 / 3.0` -> 0.666…; `x + 1` is a ValueError."""
    operation = _ARITHMETIC.get(type(node.op)) if isinstance(node, ast.BinOp) else None
    if operation is None or not isinstance(node, ast.BinOp):
        return ast.literal_eval(node)
    left, right = read_data(node.left), read_data(node.right)
    if not all(type(value) in (int, float) and abs(value) < _LARGEST for value in (left, right)):
        return ast.literal_eval(node)  # 1 + 2j
    try:
        return operation(left, right)
    except ArithmeticError as error:
        raise ValueError(str(error)) from None


def is_splittable(body: Sequence[ast.stmt]) -> bool:
    """Whether every test statement means the same on its own: none leaves anything behind that another reads.

    A prepared value that two tests read may be changed in place by the first, so it ties them together.
    """
    tests = [statement for statement in body if not is_preparation(statement)]
    if not all(is_test(statement) for statement in tests):
        return False
    if len(tests) < 2:
        return True
    left_behind = [bound_names([s]) if isinstance(s, ast.For) else frozenset() for s in tests]
    read = [read_names(statement) for statement in tests]
    if any(left & names for i, left in enumerate(left_behind) for names in read[i + 1 :]):
        return False
    prepared = bound_names([s for s in body if isinstance(s, ast.Assign | ast.AnnAssign)])
    readers = Counter(name for names in read for name in names & prepared)
    return all(count == 1 for count in readers.values())


def is_preparation(statement: ast.stmt) -> bool:
    """An import, or a name bound to a value computed from builtins, imports and other such names alone."""
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return True
    if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
        return False
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    calls = [node.func for node in ast.walk(statement.value) if isinstance(node, ast.Call)]
    known = all(isinstance(func, ast.Name) and func.id in _PURE for func in calls)
    return known and all(isinstance(target, ast.Name) for target in targets)


def is_test(statement: ast.stmt) -> bool:
    """An assert, or a loop of them."""
    if not isinstance(statement, ast.Assert | ast.For):
        return False
    return any(isinstance(node, ast.Assert) for node in ast.walk(statement))


def says_nothing(statement: ast.stmt) -> bool:
    """`pass`, a docstring, `assert True`."""
    if isinstance(statement, ast.Assert):
        return isinstance(statement.test, ast.Constant) and bool(statement.test.value)
    return isinstance(statement, ast.Pass) or (
        isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    )


def is_metadata(statement: ast.stmt) -> bool:
    """HumanEval's `METADATA = {…}`."""
    return isinstance(statement, ast.Assign) and unparse(statement.targets) == "METADATA"


def bound_names(statements: Sequence[ast.stmt]) -> frozenset[str]:
    """Names that statements define, import or assign: `import math as m; x = 1` -> {"m", "x"}."""
    return frozenset(name for statement in statements for name in walk_bound(statement))


def walk_bound(statement: ast.stmt) -> Iterator[str]:
    for node in ast.walk(statement):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).partition(".")[0]
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def read_names(statement: ast.stmt) -> frozenset[str]:
    return frozenset(
        node.id
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    )


def unparse(nodes: Sequence[ast.AST]) -> str:
    return "\n".join(ast.unparse(node) for node in nodes)


def join(*pieces: str) -> str:
    """Pieces of a script one under another; Windows line ends and blank pieces go."""
    return "\n".join(piece.replace("\r\n", "\n").strip("\n") for piece in pieces if piece.strip())


def parse_test(source: str) -> ast.Module:
    try:
        return parse(source.replace("\r\n", "\n"))
    except ValueError as error:
        raise ValueError(f"a test is not Python ({error}): {source.strip()[:80]!r}") from error
