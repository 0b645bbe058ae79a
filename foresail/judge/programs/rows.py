"""Reading a code problem's tests from the columns that public data sets give them.

What a row holds decides, never the name of its data set:

    test, entry_point                      HumanEval, LeetCode: def check(candidate): …
    test_list                              MBPP: a list of asserts
    base_input, plus_input, entry_point,   EvalPlus: inputs, and the solution that answers them
      canonical_solution
    inputs and outputs, under any of       APPS, TACO, CodeContests, LiveCodeBench, DeepCoder, verl:
      the names in CASE_COLUMNS            standard input and output, or calls where a function is named
    tests, each with a kind                what `task.encode_task` wrote
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from foresail.judge.programs.asserts import join, split_check, split_script
from foresail.judge.programs.cases import read_cases
from foresail.judge.programs.evalplus import read_inputs, root_name
from foresail.judge.programs.prelude import read_prelude, take_helpers
from foresail.judge.programs.program import Test
from foresail.judge.programs.task import CodeTask, decode_tests, is_encoded
from foresail.recipe.tables.inputs import reach

# Where cases are looked for, in this order; a dot reaches into a column. Of the first two lines all are joined.
CASE_COLUMNS = (
    ("public_tests", "private_tests", "generated_tests"),
    ("public_test_cases", "private_test_cases"),
    ("tests",),
    ("input_output",),
    ("test_cases",),
    ("reward_model.ground_truth",),
    ("ground_truth",),
    ("answer",),
)


# What columns of rows from anywhere may hold wrongly: an object for a name, a list nested a thousand times.
FOREIGN_FAULTS = (TypeError, AttributeError, LookupError, SyntaxError, ArithmeticError, RecursionError)


def read_task(columns: Mapping[str, Any]) -> CodeTask:
    """read_task({"test_list": ["assert add(1, 2) == 3"]}).tests -> (CallTest(function="add", …),).

    ValueError for a row whose tests cannot be read, whatever its columns hold.
    """
    try:
        return task_of(columns)
    except FOREIGN_FAULTS as error:
        raise ValueError(f"its tests cannot be read: {type(error).__name__}: {error}"[:200]) from error


def task_of(columns: Mapping[str, Any]) -> CodeTask:
    tests: Sequence[Test]
    if is_encoded(columns.get("tests")):
        tests, prelude = decode_tests(columns["tests"]), columns.get("prelude") or ""
    elif columns.get("base_input"):
        tests, prelude = read_answered(columns)
    elif columns.get("test"):
        tests, prelude = read_check(columns)
    elif columns.get("test_list"):
        tests, prelude = read_asserts(columns), ""
    else:
        tests, prelude = find_cases(columns), ""
    levels = columns.get("levels")
    return CodeTask(tests=tuple(tests), prelude=prelude, levels=None if levels is None else tuple(levels))


def read_check(columns: Mapping[str, Any]) -> tuple[list[Test], str]:
    """HumanEval's and LeetCode's columns; the prompt's imports and helpers stand before every program."""
    test, entry_point = columns["test"], columns.get("entry_point")
    if not isinstance(test, str):
        raise ValueError(f"field 'test' must be a script, in text; it is a {type(test).__name__}")
    if entry_point is None and "def check(" not in test:
        return split_script(test), ""  # EvalPlus' MBPP+: the script calls the function by its name
    if not entry_point:
        raise ValueError(
            "field 'entry_point' is missing; it names the function that check(candidate) is given"
        )
    prelude = read_prelude(str(columns.get("prompt") or ""), entry_point)
    return split_check(test, entry_point, prelude), prelude


def read_answered(columns: Mapping[str, Any]) -> tuple[list[Test], str]:
    missing = [name for name in ("prompt", "entry_point", "canonical_solution") if not columns.get(name)]
    if missing:
        raise ValueError(
            f"base_input is there but {', '.join(missing)} is missing; nothing says what is expected"
        )
    return read_inputs(columns), read_prelude(columns["prompt"], columns["entry_point"])


def read_asserts(columns: Mapping[str, Any]) -> list[Test]:
    """MBPP's columns; `test_imports` and `test_setup_code` stand before each assert."""
    scripts = columns["test_list"]
    if isinstance(scripts, str) or not all(isinstance(script, str) for script in scripts):
        raise ValueError("field 'test_list' must be a list of asserts, each in text")
    setup = join(*(columns.get("test_imports") or ()), columns.get("test_setup_code") or "")
    entry_point, solution = columns.get("entry_point"), columns.get("code")
    takes = (root_name(entry_point),) if isinstance(entry_point, str) and entry_point else ()
    if not takes and isinstance(solution, str) and (helpers := take_helpers(scripts, setup, solution)):
        takes, setup = (helpers[0],), join(helpers[1], setup)
    return [test for script in scripts for test in split_script(script, setup, takes)]


def find_cases(columns: Mapping[str, Any]) -> list[Test]:
    """The tests of the first group of columns that is there."""
    for names in CASE_COLUMNS:
        cases = [(name, value) for name in names if (value := reach(columns, name)) not in (None, "")]
        if cases:
            return [test for name, value in cases for test in read_cases(value, name, columns)]
    known_columns = ", ".join(name for names in CASE_COLUMNS for name in names)
    raise ValueError(
        f"no tests among the fields {', '.join(sorted(columns)) or '(none)'}; give one of: test with entry_point, "
        f"test_list, {known_columns}"
    )
