"""EvalPlus' checks (HumanEval+, MBPP+), in both forms that it publishes.

Scripts with a list of inputs, a list of results, and a loop over both (`split_pairs`):

    for i, (inp, exp) in enumerate(zip(inputs, results)):
        assertion(candidate(*inp), exp, 0)

Rows with inputs only, where the reference solution says what is expected (`read_inputs`). Each input becomes a
test of its own, and none needs the numpy that the scripts import.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from foresail.judge.programs.program import AssertTest, CallTest, Test
from foresail.judge.programs.syntax import parse
from foresail.judge.programs.task import write_literal

RELATIVE, ABSOLUTE = 1e-7, 1e-6  # what its `assertion` gives to numpy.allclose when floats are expected

LOOP = """
for i, (inp, exp) in enumerate(zip(inputs, results)):
    assertion({function}(*inp), exp, {absolute})
"""
TABLES = ("inputs", "results")


def split_pairs(body: Sequence[ast.stmt], aliases: Mapping[str, str]) -> list[Test] | None:
    """The tests of such a check; None where the statements are anything else, if only by a word."""
    tables = {
        statement.targets[0].id: statement.value
        for statement in body
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)
    }
    loop = body[-1] if body else None
    if set(tables) != set(TABLES) or not isinstance(loop, ast.For):
        return None
    rest = [statement for statement in body[:-1] if not isinstance(statement, ast.Assign)]
    if any(not isinstance(statement, ast.Import | ast.ImportFrom | ast.FunctionDef) for statement in rest):
        return None
    names = [name for node in ast.walk(loop) if (name := called_name(node))]
    numbers = [node.value for node in ast.walk(loop) if isinstance(node, ast.Constant)]
    if len(names) != 4 or len(numbers) != 1 or not isinstance(numbers[0], int | float):
        return None
    function, absolute = names[-1], numbers[0]
    if ast.unparse(loop) != ast.unparse(ast.parse(LOOP.format(function=function, absolute=absolute))):
        return None
    try:
        inputs, results = (ast.literal_eval(tables[name]) for name in TABLES)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None
    return [
        pair_test(aliases.get(function, function), arguments, expected, float(absolute))
        for arguments, expected in zip(inputs, results, strict=False)  # as the loop itself zips
    ]


def root_name(path: str) -> str:
    """root_name("Solution().add") -> "Solution"."""
    return path.partition(".")[0].removesuffix("()")


def called_name(node: ast.AST) -> str | None:
    """called_name of `add(1)` -> "add"; None for `x.add(1)` and whatever is no call."""
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else None


def pair_test(function: str, arguments: Sequence[Any], expected: Any, absolute: float) -> Test:
    """Exact, unless floats are expected or the problem names a tolerance."""
    tolerance = absolute or (ABSOLUTE if is_floats(expected) else 0.0)
    return CallTest(
        function=function,
        arguments=tuple(arguments),
        expected=expected,
        relative=RELATIVE if tolerance else 0.0,
        absolute=tolerance,
        strict=True,
    )


def is_floats(value: Any) -> bool:
    """Whether `numpy.allclose` is what compares it: is_floats([1.0, (2.0,)]) -> True; is_floats([1]) -> False."""
    return isinstance(value, float) or (isinstance(value, list | tuple) and all(map(is_floats, value)))


def compare_script(function: str, source: str, arguments: Sequence[Any], absolute: float) -> str:
    """Compares what the program returns with what the reference's `source` does, as `assertion` would.

    Floats are compared as by `numpy.allclose`, everything else by `==`.
    """
    given = write_literal(tuple(arguments))
    return f"""reference = {{}}
exec({source!r}, reference)
def is_close(given, wanted):
    if isinstance(wanted, (list, tuple)):
        same = type(given) is type(wanted) and len(given) == len(wanted)
        return same and all(map(is_close, given, wanted))
    return abs(given - wanted) <= {absolute or ABSOLUTE} + {RELATIVE} * abs(wanted)

def is_floats(value):
    return isinstance(value, float) or isinstance(value, (list, tuple)) and all(map(is_floats, value))

wanted = reference[{function!r}](*{given})
given = {function}(*{given})
assert given == wanted or ({absolute} or is_floats(wanted)) and is_close(given, wanted)
"""


def read_inputs(columns: Mapping[str, Any]) -> list[Test]:
    """Scripts that ask the reference first and compare the program's answer with its."""
    function = columns["entry_point"]
    source = columns["prompt"] + columns["canonical_solution"]
    examples = example_arguments(columns.get("assertion") or "", function)
    inputs = [*(columns.get("base_input") or ()), *(columns.get("plus_input") or ())]
    absolute = columns.get("atol") or 0
    return [
        AssertTest(
            script=compare_script(function, source, restore(arguments, examples), absolute),
            names=(root_name(function),),
        )
        for arguments in inputs
    ]


def example_arguments(assertion: str, function: str) -> list[list[Any]]:
    """What the row's own asserts give to the function, by place: their tuples show what JSON made lists."""
    places: list[list[Any]] = []
    for node in ast.walk(parse(assertion)):
        if not isinstance(node, ast.Call) or called_name(node) != function:
            continue
        for place, argument in enumerate(node.args):
            places.extend([] for _ in range(place + 1 - len(places)))
            with suppress(ValueError, TypeError):
                places[place].append(ast.literal_eval(argument))
    return places


def restore(arguments: Sequence[Any], examples: Sequence[Sequence[Any]]) -> list[Any]:
    """restore([[1, 2]], [[(3, 4)]]) -> [(1, 2)]: one argument, of which one example is a tuple."""
    return [
        restore_value(value, examples[place] if place < len(examples) else ())
        for place, value in enumerate(arguments)
    ]


def restore_value(value: Any, examples: Sequence[Any], otherwise: type = list) -> Any:
    """A list as the examples in its place have it, or, where there are none, as what it stands in."""
    if isinstance(value, list):
        alike = [example for example in examples if isinstance(example, list | tuple | set)]
        kinds = {type(example) for example in alike} or {otherwise}
        kind = kinds.pop() if len(kinds) == 1 else list
        inner = [part for example in alike for part in example]
        return kind(restore_value(part, inner, tuple if kind is tuple else list) for part in value)
    if isinstance(value, dict):
        inner = [part for example in examples if isinstance(example, dict) for part in example.values()]
        return {key: restore_value(part, inner) for key, part in value.items()}
    if isinstance(value, str) and examples and not any(isinstance(example, str) for example in examples):
        return restore_number(value)
    return value


def restore_number(text: str) -> complex | str:
    """restore_number("2j") -> 2j, which JSON had to write as text."""
    with suppress(ValueError):
        number = complex(text)
        return number if "j" in text else number.real
    return text
