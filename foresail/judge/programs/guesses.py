"""Programs that pass tests without solving anything: they return a constant or an argument.

guesses(task) -> [Guess(name="None", program=Program("def add(*args, **names): …")), …]

Also the values that the first test expects: a task whose tests all expect the same needs no solution.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from foresail.judge.programs.program import AssertTest, CallTest, Program, StdinTest
from foresail.judge.programs.task import CodeTask, write_literal
from foresail.judge.script_names import unexplained_names

CONSTANTS = ("None", "True", "False", "0", "1", "-1", "''", "[]", "{}", "()")
ARGUMENTS = {
    "the first argument": "passed[0] if passed else None",
    "the last argument": "passed[-1] if passed else None",
    "the length of the first argument": "len(passed[0]) if passed and hasattr(passed[0], '__len__') else 0",
}
LONGEST = 2000  # characters of an expected value


@dataclass(frozen=True, kw_only=True)
class Guess:
    """`name` says what it returns or prints."""

    name: str
    program: Program


def guesses(task: CodeTask) -> Iterator[Guess]:
    if all(isinstance(test, StdinTest) for test in task.tests):
        yield from printed(task)
        return
    entry = entry_of(task)
    if entry is None:
        return
    # a constant passes calls only if it is what the first of them expects
    constants = () if all(isinstance(test, CallTest) for test in task.tests) else CONSTANTS
    values = [*constants, *(value for value in expected(task) if value not in constants)]
    for value in values:
        yield Guess(name=value[:60], program=returning(entry, value))
    for name, expression in ARGUMENTS.items():
        yield Guess(name=name, program=returning(entry, expression))


def printed(task: CodeTask) -> Iterator[Guess]:
    """The first expected output, which any constant that passes must be, and the input itself."""
    first = task.tests[0]
    assert isinstance(first, StdinTest)
    if len(first.output) <= LONGEST:
        text = first.output.rstrip("\n")
        yield Guess(name=f"prints {text[:50]!r}", program=Program(source=f"print({text!r})"))
    yield Guess(name="prints its input", program=Program(source="import sys\nprint(sys.stdin.read())"))


def entry_of(task: CodeTask) -> str | None:
    """The function that the tests call, "add" or "Solution().add"; None where it is not one function."""
    names = {name for test in task.tests for name in called_by(test)}
    return names.pop() if len(names) == 1 else None


def called_by(test: object) -> list[str]:
    if isinstance(test, CallTest):
        return [test.function]
    if not isinstance(test, AssertTest):
        return []
    tree = parsed(test.script)
    if tree is None:
        return []
    for node in ast.walk(tree):  # candidate = Solution().twoSum
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and node.targets[0].id == "candidate"
        ):
            return [ast.unparse(node.value)]
    return [*(test.names or unexplained_names(test.script))]


def expected(task: CodeTask) -> list[str]:
    """As Python: what the first test of each kind expects."""
    values: list[str] = []
    for test in task.tests[:1]:
        if isinstance(test, CallTest):
            try:
                values.append(write_literal(test.expected))
            except ValueError:
                continue
        elif isinstance(test, AssertTest) and (tree := parsed(test.script)) is not None:
            values += [ast.unparse(side) for side in compared(tree)]
    return [value for value in values if len(value) <= LONGEST]


def compared(tree: ast.Module) -> Iterator[ast.expr]:
    """Literals that an assert compares a call with."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert) and isinstance(node.test, ast.Compare):
            for side in node.test.comparators:
                try:
                    ast.literal_eval(side)
                except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
                    continue
                yield side


def parsed(script: str) -> ast.Module | None:
    try:
        return ast.parse(script)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def returning(entry: str, value: str) -> Program:
    """A function, or a class with a method: returning("Solution().add", "0")."""
    holder, dot, method = entry.partition("().")
    if not dot:
        return Program(source=function(entry, value))
    return Program(source=f"class {holder}:\n" + indent(function(method, value, "self, ")))


def function(name: str, value: str, first: str = "") -> str:
    return f"def {name}({first}*args, **names):\n    passed = [*args, *names.values()]\n    return {value}\n"


def indent(source: str) -> str:
    return "".join(f"    {line}\n" for line in source.splitlines())
