"""Assert scripts as a problem has them, split into tests that can pass or fail one by one."""

from dataclasses import replace

import pytest

from foresail.judge.programs.asserts import split_check, split_script
from foresail.judge.programs.program import AssertTest, CallTest


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


def test_a_check_calls_its_entry_point_and_no_other():
    tests = split_check("def check(c):\n    assert helper(1) == 2\n    assert c(1) == 2", "f")
    assert tests[0].names == ("f",)
    assert tests[1] == CallTest(function="f", arguments=(1,), expected=2, strict=True)
