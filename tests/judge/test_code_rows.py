"""Rows of the usual code datasets, read as tasks."""

import base64
import gzip
import json
import pickle
import zlib
from dataclasses import replace
from pathlib import Path

import pytest

from foresail.judge.programs.program import AssertTest, CallTest, OutputComparison, StdinTest, Test
from foresail.judge.programs.rows import read_task
from foresail.judge.programs.task import CodeTask, encode_task

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


def test_none_is_absent_as_in_parquet():
    rows = encode_task(CodeTask(tests=(STDIN[0], ADD[0])))["tests"]
    names = {name for row in rows for name in row} | {"comparison"}
    filled = [{name: row.get(name) for name in names} for row in rows]
    filled[0]["comparison"] = {"mode": "bytes", "checker": None}
    first, second = read_task({"tests": filled, "prelude": None, "levels": None}).tests
    assert first == StdinTest(input="1 2\n", output="3\n", comparison=OutputComparison(mode="bytes"))
    assert second == ADD[0]
