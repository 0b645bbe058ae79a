import base64
import gzip
import json
import math
import pickle
import zlib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.rewards.programs.asserts import split_check, split_script
from foresail.rewards.programs.program import AssertTest, CallTest, Comparison, StdinTest, Test
from foresail.rewards.programs.rows import read_task
from foresail.rewards.programs.task import CodeTask, encode_task, read_literal, write_literal

DATA = Path(__file__).parents[2] / "../shared/data/code"


def rows(name: str) -> list[dict]:
    path = DATA / f"{name}.jsonl.gz"
    if not path.is_file():
        pytest.skip(f"../shared/data/code/{name}.jsonl.gz is not here")
    with gzip.open(path, "rt") as file:
        return [json.loads(line) for line in file]


def run_plainly(test: Test, program: str) -> bool:
    """What a test means, by Python itself: the oracle for splitting scripts. Trusted programs only."""
    names: dict = {}
    exec(program, names)
    try:
        if isinstance(test, AssertTest):
            exec(test.script, names)
            return True
        assert isinstance(test, CallTest)
        return eval(test.function, names)(*test.arguments, **test.keywords) == test.expected
    except Exception:
        return False


# Asserts.


@pytest.mark.parametrize(
    ("script", "call"),
    [
        ("assert f(1, [2]) == {3}", CallTest(function="f", arguments=(1, [2]), expected={3})),
        ("assert f(a=1) == None", CallTest(function="f", keywords={"a": 1}, expected=None)),
        ("assert f(-1.5) == True, 'no'", CallTest(function="f", arguments=(-1.5,), expected=True)),
        ("assert 3 == f({'a': {1, 2}})", CallTest(function="f", arguments=({"a": {1, 2}},), expected=3)),
        ("assert sum(10, 15) == 6", CallTest(function="sum", arguments=(10, 15), expected=6)),
        ("assert f(1) == [(2,)]", CallTest(function="f", arguments=(1,), expected=[(2,)])),
        ("assert f(11 * 13 * 7) == 2.0 / 3.0", CallTest(function="f", arguments=(1001,), expected=2.0 / 3.0)),
        ("assert (f(set())) == ''", CallTest(function="f", arguments=(set(),), expected="")),
    ],
)
def test_plain_comparisons_become_calls(script: str, call: CallTest):
    assert split_script(script) == [replace(call, strict=True)]


@pytest.mark.parametrize(
    "script",
    [
        "assert f(1)",
        "assert not f(1)",
        "assert f(1) is True",
        "assert f(1) != 2",
        "assert f(1) < 2",
        "assert 1 < f(1) == 2",
        "assert abs(f(1) - 0.5) < 1e-06",
        "assert set(f(1)) == {1}",
        "assert f(x) == 1",
        "assert f(2 ** 99) == 2",
        "assert f([1] * 3) == 2",
        "assert f(1) == 1 / 0",
        "assert f(*[1]) == 1",
        "assert f(**{'a': 1}) == 1",
        "assert f(1) == f(2)",
        "assert f.g(1) == 2",
        "assert f(lambda x: x) == 1",
    ],
)
def test_everything_else_stays_a_script(script: str):
    assert split_script(script) == [AssertTest(script=script)]


def test_names_of_the_setup_are_not_the_programs():
    (test,) = split_script("assert sqrt(4) == 2", "from math import sqrt")
    assert test == AssertTest(script="from math import sqrt\nassert sqrt(4) == 2")


def test_a_check_is_split_into_its_asserts():
    check = """
METADATA = {}

def double(x):
    return 2 * x

def check(candidate):
    '''words'''
    assert candidate(1) == 2, "first"
    assert True
    assert candidate(double(2)) == 8
"""
    first, second = split_check(check, "Solution().twice", "import math")
    assert first == CallTest(function="Solution().twice", arguments=(1,), expected=2, strict=True)
    assert second == AssertTest(
        script="import math\ndef double(x):\n    return 2 * x\ncandidate = Solution().twice\n"
        "assert candidate(double(2)) == 8",
        names=("Solution",),
    )


@pytest.mark.parametrize(
    "body",
    [
        "cache = candidate(2)\n    cache.put(1)\n    assert cache.get(1) == 1\n    assert cache.size() == 1",
        "numbers = [2, 1]\n    assert candidate(numbers) == 1\n    assert candidate(numbers) == 2",
        "for i in range(3):\n        assert candidate(i) == i\n    assert candidate(i) == 2",
        "total = 0\n    for i in range(3):\n        total += candidate(i)\n    assert total == 3",
        "with open('x') as file:\n        assert candidate(file) == 1\n    assert candidate(1) == 1",
        "print(1)",
        "pass",
    ],
)
def test_a_check_that_carries_state_stays_whole(body: str):
    check = f"def check(candidate):\n    {body}"
    assert split_check(check, "f") == [AssertTest(script=f"{check}\ncheck(f)", names=("f",))]


def test_values_prepared_for_one_assert_go_with_it():
    lines = [
        "def check(candidate):",
        "import math",
        "n = 5",
        "assert candidate(1) == 1",
        "assert candidate(n) == n",
    ]
    check = "\n    ".join(lines)
    first, second = split_check(check, "f")
    assert first == CallTest(function="f", arguments=(1,), expected=1, strict=True)
    assert isinstance(second, AssertTest)
    assert second.script.endswith("n = 5\nassert candidate(n) == n")


def test_evalplus_pairs_become_calls_with_its_tolerance():
    script = """
import numpy as np
def assertion(out, exp, atol):
    pass
inputs = [[[1, 2]], [[0.5, 0.5]]]
results = [3, 1.0]
for i, (inp, exp) in enumerate(zip(inputs, results)):
    assertion(add(*inp), exp, 0)
"""
    assert split_script(script) == [
        CallTest(function="add", arguments=([1, 2],), expected=3, strict=True),
        CallTest(
            function="add", arguments=([0.5, 0.5],), expected=1.0, relative=1e-7, absolute=1e-6, strict=True
        ),
    ]
    lists = script.replace("results = [3, 1.0]", "results = [[3], (0.5, 0.5)]")
    whole, floats = split_script(lists)
    assert (whole.expected, whole.absolute, whole.strict) == ([3], 0.0, True)
    assert (floats.expected, floats.absolute, floats.strict) == ((0.5, 0.5), 1e-6, True)
    changed = script.replace("assertion(add(*inp), exp, 0)", "assertion(set(add(*inp)), set(exp), 0)")
    assert split_script(changed) == [AssertTest(script=changed.strip("\n"))]


# Rows.


@pytest.mark.filterwarnings("ignore:invalid escape sequence")
@pytest.mark.parametrize("name", ["humaneval/HumanEval", "mbpp/mbpp", "leetcodedataset/v0.2.0-train"])
def test_split_tests_say_what_the_whole_script_says(name: str):
    """Of gold solutions (one of LeetCode's depends on the order of a set) and of a program that is empty."""
    right = 0
    chosen = [row for row in rows(name)[:150] if row["task_id"] != 123]  # which computes for seconds
    for row in chosen:
        task = read_task(row)
        gold = row.get("code") or row.get("completion") or row["prompt"] + row["canonical_solution"]
        program = f"{task.prelude}\n{gold}"
        whole = all(run_plainly(AssertTest(script=script), program) for script in whole_scripts(row))
        assert all(run_plainly(test, program) for test in task.tests) == whole, row["task_id"]
        assert not any(run_plainly(test, "") for test in task.tests), row["task_id"]
        right += whole
    assert right >= len(chosen) - 1


def whole_scripts(row: dict) -> list[str]:
    """The tests as their data set means them to be run, after the program."""
    if "test_list" in row:
        return [f"{row['test_setup_code']}\n{script}" for script in row["test_list"]]
    return [f"{row['test']}\ncheck({row['entry_point']})"]


@pytest.mark.parametrize("name", ["humanevalplus/HumanEvalPlus", "mbppplus/MbppPlus"])
def test_evalplus_rows_are_answered_by_their_solution(name: str):
    for row in rows(name)[:40]:
        task = read_task(row)
        gold = row["prompt"] + row["canonical_solution"]
        tests = task.tests[:: max(len(task.tests) // 5, 1)]
        assert all(run_plainly(test, gold) for test in tests), row["task_id"]
        wrong = f"def {row['entry_point']}(*arguments): return ..."
        assert not any(run_plainly(test, wrong) for test in tests), row["task_id"]


def test_tuples_that_json_lost_are_restored():
    row = next(row for row in rows("mbppplus/MbppPlus") if row["entry_point"] == "similar_elements")
    assert "similar_elements((3, 4, 5, 6)" in row["assertion"]
    script = read_task(row).tests[0].script
    assert "given = similar_elements(*((3, 4, 5, 6), (5, 7, 4, 10)))" in script


def test_contest_rows_are_standard_input_and_output():
    task = read_task(rows("rllm_deepcoder/test_code_contests")[0])
    assert task.tests == (StdinTest(input="5 2\nAA\nAB\nBB\nBA\nAZ\n", output="5 2 1 3 4 \n"),)


CASES = {"inputs": ["1 2\n", ["3", "4"]], "outputs": ["3\n", ["7"]]}
STDIN = (StdinTest(input="1 2\n", output="3\n"), StdinTest(input="3\n4", output="7"))
ADD = (
    CallTest(function="add", arguments=(1, 2), expected=3),
    CallTest(function="add", arguments=(0, 0), expected=0),
)


def packed(cases: list[dict]) -> str:
    return base64.b64encode(zlib.compress(pickle.dumps(json.dumps(cases)))).decode()


@pytest.mark.parametrize(
    ("row", "tests"),
    [
        ({"tests": CASES}, STDIN),
        ({"tests": json.dumps(CASES)}, STDIN),
        ({"input_output": json.dumps(CASES)}, STDIN),
        ({"reward_model": {"ground_truth": json.dumps(CASES)}}, STDIN),
        ({"answer": json.dumps(CASES), "prompt": "Add."}, STDIN),
        ({"tests": [{"input": "1 2\n", "output": "3\n"}, {"input": ["3", "4"], "output": ["7"]}]}, STDIN),
        (
            {
                "public_tests": {"input": ["1 2\n"], "output": ["3\n"]},
                "private_tests": {"input": ["3\n4"], "output": ["7"]},
                "generated_tests": None,
            },
            STDIN,
        ),
        ({"input_output": {"inputs": [[1, 2], [0, 0]], "outputs": [3, 0], "fn_name": "add"}}, ADD),
        (
            {
                "public_test_cases": json.dumps([{"input": "1\n2", "output": "3", "testtype": "functional"}]),
                "private_test_cases": packed([{"input": "0\n0", "output": "0", "testtype": "functional"}]),
                "metadata": json.dumps({"func_name": "add"}),
            },
            ADD,
        ),
        (
            {"test_cases": ["assert add(1, 2) == 3", "assert add(0, 0) == 0"]},
            tuple(replace(test, strict=True) for test in ADD),
        ),
        (
            {"tests": [{"type": "function_call", "fn_name": "add", "input": [1, 2], "output": 3}]},
            ADD[:1],
        ),
    ],
)
def test_cases_in_every_layout(row: dict, tests: tuple):
    assert read_task(row).tests == tests


def test_starter_code_makes_a_method_of_the_function():
    row = {
        "tests": {"inputs": [[1]], "outputs": [3], "fn_name": "f"},
        "starter_code": "class Solution:\n  def f",
    }
    assert read_task(row).tests == (CallTest(function="Solution().f", arguments=(1,), expected=3),)


def test_outputs_that_may_be_wrapped_are_accepted_either_way():
    row = {"input_output": {"inputs": [[1, 2], [0, 0]], "outputs": [[3], [0]], "fn_name": "add"}}
    for test in read_task(row).tests:
        assert run_plainly(test, "def add(a, b): return a + b")
        assert run_plainly(test, "def add(a, b): return [a + b]")
        assert run_plainly(test, "class Solution:\n    def add(self, a, b): return a + b")
        assert not run_plainly(test, "def add(a, b): return a + b + 1")
    lists = {"input_output": {"inputs": [[1], [2]], "outputs": [[1], [1, 2]], "fn_name": "divisors"}}
    assert [test.expected for test in read_task(lists).tests] == [[1], [1, 2]]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({}, "no tests among the fields"),
        ({"question": "?", "answer": ""}, "answer, question; give one of: test with entry_point, test_list"),
        ({"test": "def check(candidate):\n    assert candidate(1) == 1"}, "'entry_point' is missing"),
        ({"test": "x = 1", "entry_point": "f"}, r"no check\(candidate\)"),
        ({"test": "def check(", "entry_point": "f"}, "not Python"),
        ({"test_list": ["assert f("]}, "not Python"),
        ({"test_list": "assert f(1) == 1"}, "must be a list of asserts"),
        ({"test": ["assert f(1) == 1"]}, "it is a list"),
        ({"tests": {"inputs": ["1"]}}, "'tests' has no list of outputs"),
        ({"tests": {"inputs": ["1"], "outputs": []}}, "1 inputs but 0 outputs"),
        ({"tests": [{"input": "1"}]}, r"'tests\[0\]' has no output"),
        ({"tests": [{"input": "1", "output": "2", "testtype": "functional"}]}, "give fn_name"),
        ({"tests": "1 2"}, "neither tests nor JSON"),
        ({"tests": []}, "without tests"),
        ({"tests": {"inputs": [[1, 2]], "outputs": [3]}}, "name the function with fn_name"),
        ({"tests": [{"kind": "call", "function": "f"}]}, "no field 'arguments'"),
        (
            {"tests": [{"kind": "call", "function": "f", "arguments": "g()", "expected": "1"}]},
            "cannot be read",
        ),
        ({"tests": [{"kind": "riddle"}]}, "stdin, call and assert"),
        ({"tests": CASES, "levels": [0]}, "1 levels for 2 tests"),
        ({"base_input": [[1]], "entry_point": "f", "prompt": "def f(x):"}, "canonical_solution is missing"),
    ],
)
def test_what_is_missing_is_named(row: dict, message: str):
    with pytest.raises(ValueError, match=message):
        read_task(row)


def test_packed_tests_never_run_code():
    class Evil:
        def __reduce__(self) -> tuple:
            return (print, ("run",))

    text = base64.b64encode(zlib.compress(pickle.dumps(Evil()))).decode()
    with pytest.raises(ValueError, match="neither tests nor JSON"):
        read_task({"private_test_cases": text})


def test_a_prompt_of_prose_gives_no_prelude():
    row = {"test": "def check(c):\n    assert c(1) == 1", "entry_point": "f"}
    assert read_task({**row, "prompt": "Write f."}).prelude == ""
    assert read_task({**row, "prompt": "hello"}).prelude == ""
    assert read_task({**row, "prompt": "import math\ndef f(x):\n    'Doc'"}).prelude == "import math"


POLY = """import math

def poly(xs: list, x: float):
    return sum(c * math.pow(x, i) for i, c in enumerate(xs))

def find_zero(xs: list):
    ""\" A zero of the polynomial. ""\"
"""
CHECK = "def check(candidate):\n    assert abs(poly([1, 2], candidate([1, 2]))) < 1e-4"


@pytest.mark.parametrize(
    "prompt",
    [
        POLY,
        f"Complete this function.\n```python\n{POLY}```\nThink first.",
        f"Complete this function.\n\n```\n{POLY.rpartition('def')[0]}def find_zero(xs: list):\n```",
        f"Given:\n```python\n{POLY.rpartition('def')[0]}```\nWrite `find_zero(xs)`.",
    ],
)
def test_helpers_of_a_prompt_are_the_tests_own(prompt: str):
    task = read_task({"test": CHECK, "entry_point": "find_zero", "prompt": prompt})
    assert "def poly" in task.prelude
    assert "find_zero" not in task.prelude
    (test,) = task.tests
    assert test.names == ("find_zero",)
    assert "def poly" in test.script


def test_examples_in_a_prompt_are_not_run():
    prompt = (
        "Write f.\n```python\nimport numpy as np\nx = f(np.ones(3))\nprint(x)\n```\n```text\nimport os\n```"
    )
    assert read_task({"test": CHECK, "entry_point": "find_zero", "prompt": prompt}).prelude == ""


def test_helpers_of_a_rows_solution_are_the_tests_own():
    """MBPP builds trees of a class that only the solution has."""
    row = {
        "test_list": ["assert height(root) == 2"],
        "test_setup_code": "root = Node(1)\nroot.left = Node(2)",
        "code": "class Node:\n    def __init__(self, v): self.v, self.left = v, None\n"
        "def height(n): return 0 if n is None else 1 + height(n.left)",
    }
    (test,) = read_task(row).tests
    assert test.names == ("height",)
    assert "class Node" in test.script
    assert "def height" not in test.script
    (without,) = read_task({**row, "code": None}).tests
    assert without == AssertTest(script=f"{row['test_setup_code']}\n{row['test_list'][0]}")


def test_a_check_calls_its_entry_point_and_no_other():
    tests = split_check("def check(c):\n    assert helper(1) == 2\n    assert c(1) == 2", "f")
    assert tests[0].names == ("f",)
    assert tests[1] == CallTest(function="f", arguments=(1,), expected=2, strict=True)


# The plain form.

atoms = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(2**20_000), 2**20_000),
    st.floats(allow_nan=False),
    st.text(),
    st.binary(),
    st.complex_numbers(allow_nan=False, allow_infinity=False),
)
hashable = st.recursive(atoms, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=4)
values = st.recursive(
    st.one_of(atoms, st.sets(hashable, max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(hashable, inner, max_size=3),
    ),
    max_leaves=8,
)


def shape(value: object) -> object:
    """The value with its types: 1, 1.0 and True are equal, and -0.0 equals 0.0."""
    if isinstance(value, list | tuple):
        return type(value).__name__, [shape(part) for part in value]
    if isinstance(value, dict):
        return "dict", [(shape(key), shape(part)) for key, part in value.items()]
    if isinstance(value, float):
        return "float", math.copysign(1, value), value
    return type(value).__name__, value


@given(values)
def test_literals_come_back_as_they_were(value: object):
    assert shape(read_literal(write_literal(value))) == shape(value)


@pytest.mark.parametrize("value", [math.nan, [math.nan], object(), range(3), frozenset({1})])
def test_what_is_not_plain_is_refused(value: object):
    with pytest.raises(ValueError, match=r"plain data|NaN"):
        write_literal(value)


@given(st.lists(values, max_size=3), values, st.dictionaries(st.text(max_size=3), values, max_size=2))
def test_a_task_survives_json(arguments: list, expected: object, keywords: dict):
    task = CodeTask(
        tests=(
            CallTest(
                function="f", arguments=tuple(arguments), keywords=keywords, expected=expected, absolute=0.5
            ),
            StdinTest(input="1", output="2", comparison=Comparison(mode="numbers", relative=0.1)),
            AssertTest(script="assert f"),
        ),
        prelude="import math",
        levels=(1, 0, 0),
    )
    assert read_task(json.loads(json.dumps(encode_task(task)))) == task


def test_none_is_absent_as_in_parquet():
    rows = encode_task(CodeTask(tests=(STDIN[0], ADD[0])))["tests"]
    names = {name for row in rows for name in row} | {"comparison"}
    filled = [{name: row.get(name) for name in names} for row in rows]
    filled[0]["comparison"] = {"mode": "bytes", "checker": None}
    first, second = read_task({"tests": filled, "prelude": None, "levels": None}).tests
    assert first == StdinTest(input="1 2\n", output="3\n", comparison=Comparison(mode="bytes"))
    assert second == ADD[0]
