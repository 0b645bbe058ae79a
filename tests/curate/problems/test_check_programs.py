"""`check_programs` on small problems with planted faults; `code_prompt`; guesses."""

from __future__ import annotations

import pytest

from foresail.curate.document import Document, Drop
from foresail.curate.problems.code_prompt import CodePrompt
from foresail.curate.problems.columns import prompt_of
from foresail.curate.problems.programs import CheckPrograms
from foresail.curate.rows.row import read_row
from foresail.judge.grader import CodeGrader
from foresail.records import Problem

MBPP = {
    "text": "Write a function to add two numbers.",
    "code": "def add(a, b):\r\n  return a + b",
    "test_setup_code": "",
    "test_list": ["assert add(1, 2) == 3", "assert add(2, 2) == 4", "assert add(0, -1) == -1"],
}
LEETCODE = {
    "task_id": "double",
    "prompt": "from typing import *\nimport math\n",
    "completion": "class Solution:\n    def double(self, x: int) -> int:\n        return 2 * x",
    "entry_point": "Solution().double",
    "test": "def check(candidate):\n    assert candidate(x = 2) == 4\n    assert candidate(x = 3) == 6\n",
    "meta": {
        "difficulty": "Easy",
        "question_title": "Given a number x, return twice the number.",
        "lang_code": "class Solution:\n    def double(self, x: int) -> int:",
    },
}
STDIN = {"problem": "Print the sum.", "tests": {"inputs": ["1 2\n", "3 4\n"], "outputs": ["3\n", "7\n"]}}
HUMAN = {
    "prompt": 'def inc(x):\n    """The next number."""\n',
    "canonical_solution": "    return x + 1\n",
    "entry_point": "inc",
    "test": "def check(candidate):\n    assert candidate(1) == 2\n    assert candidate(5) == 6\n",
}


def outcome(row: dict, **keys: object) -> Document | Drop:
    document = read_row(row, "a", "made", "problems")
    assert isinstance(document, Document)
    result = CheckPrograms(seconds=1.0, **keys).open()(document)
    assert isinstance(result, Document | Drop)
    return result


@pytest.mark.parametrize(
    "row", [MBPP, LEETCODE, STDIN, HUMAN], ids=["mbpp", "leetcode", "stdin", "humaneval"]
)
def test_sound_problems_stay(row):
    assert isinstance(outcome(row), Document)


FAULTS = {
    "no_tests": MBPP | {"test_list": [], "tests": [{"kind": "none"}]},
    "few_tests": MBPP | {"test_list": MBPP["test_list"][:1]},
    "gold_fails": MBPP | {"code": "def add(a, b):\n  return a - b"},
    "guessed": MBPP | {"test_list": ["assert add(1, 2) == 3", "assert add(2, 1) == 3"]},
}
CASES = {
    **FAULTS,
    "gold_hangs": MBPP | {"code": "def add(a, b):\n  while True: pass"},
    "gold_sleeps": MBPP | {"code": "import time\ndef add(a, b):\n  time.sleep(1000)"},
    "gold_is_no_python": MBPP | {"code": "def add(a, b:"},
    "the_argument": MBPP | {"test_list": ["assert add(3, 0) == 3", "assert add(4, 0) == 4"]},
    "none_expected": MBPP | {"code": "def add(a, b): pass", "test_list": ["assert add(3, 0) is None"] * 2},
    "one_output": STDIN | {"tests": {"inputs": ["1 2\n", "2 1\n"], "outputs": ["3\n", "3\n"]}},
    "an_echo": STDIN | {"tests": {"inputs": ["3\n", "4\n"], "outputs": ["3\n", "4\n"]}},
}
REASONS = {
    **{name: name for name in FAULTS},
    "gold_hangs": "gold_fails",
    "gold_sleeps": "gold_fails",
    "gold_is_no_python": "gold_fails",
    "the_argument": "guessed",
    "none_expected": "guessed",
    "one_output": "guessed",
    "an_echo": "guessed",
}


@pytest.mark.parametrize("case", CASES)
def test_a_planted_fault_is_caught(case):
    dropped = outcome(CASES[case])
    assert isinstance(dropped, Drop) and dropped.reason == REASONS[case] and dropped.detail


def test_a_gold_program_that_fails_now_and_then_is_caught():
    gold = "import os\ndef add(a, b):\n  return a + b + (os.urandom(1)[0] < 128) * 0 + (os.urandom(9)[0] & 1)"
    reasons = {getattr(outcome(MBPP | {"code": gold}, runs=10), "reason", "") for _ in range(3)}
    assert reasons <= {"gold_fails", "nondeterministic"}


def test_faults_can_be_flagged_and_maths_is_left_alone():
    flagged = outcome(FAULTS["guessed"], flag=("guessed",))
    assert isinstance(flagged, Document) and flagged.metadata == {"program_fault": "guessed"}
    assert isinstance(outcome({"problem": "2+2?", "answer": "4"}), Document)
    with pytest.raises(ValueError, match="there is no reason wrong"):
        CheckPrograms(flag=("wrong",))


@pytest.mark.parametrize("row", [MBPP, LEETCODE], ids=["mbpp", "leetcode"])
def test_a_completed_prompt_says_what_to_write_and_is_graded(row):
    document = read_row(row, "a", "made", "problems")
    assert isinstance(document, Document)
    complete = CodePrompt().open()(document)
    assert isinstance(complete, Document) and complete.row is not None
    prompt = prompt_of(complete.row)
    assert ("add(1, 2) == 3" in prompt) if row is MBPP else ("twice" in prompt and "def double" in prompt)
    assert isinstance(outcome(complete.row), Document)
    problem = Problem(id="a", prompt=(), answer="", extra=complete.row)
    gold = row.get("code") or row["completion"]
    assert CodeGrader()(problem, f"```python\n{gold}\n```").status == "correct"
    assert CodePrompt().open()(complete) == complete  # once is enough
